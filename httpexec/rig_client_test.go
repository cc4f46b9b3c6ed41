package httpexec

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// client is a task with the executor that carries it, and what people get to see of its replies.
type client struct {
	*sender
	t        *testing.T
	task     *task.Task
	out, err bytes.Buffer
	attempts int
}

// asking returns one for a GET. The executor lets go of everything at the end of the test.
func asking(t *testing.T, url string, change func(*client)) *client {
	t.Helper()
	c := &client{sender: sending(t, "GET", url, nil), t: t}
	c.task = &task.Task{ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: request.Kind}
	c.task.Target = c.Request
	c.Output = Output{Stdout: &c.out, Stderr: &c.err}
	if change != nil {
		change(c)
	}
	t.Cleanup(c.Close)
	return c
}

// attempt runs one.
func (c *client) attempt() task.Outcome {
	c.attempts++
	return c.Execute(c.t.Context(), c.task, runner.Call{Number: c.attempts})
}

// comes tells the executor what the task came to, and what that is worth: the error of passing a reply on.
func (c *client) comes(to task.Status) error {
	c.t.Helper()
	c.task.Status = to
	sig, err := c.Flush(c.task, nil)
	if sig != nil {
		c.t.Errorf("stopped by %v", sig)
	}
	return err
}

// saw fails unless just this reached stdout and stderr.
func (c *client) saw(out, err string) {
	c.t.Helper()
	if c.out.String() != out || c.err.String() != err {
		c.t.Errorf("on stdout %q, want %q\non stderr %q, want %q", c.out.String(), out, c.err.String(), err)
	}
}

// into has the reply go to a file in a directory of its own, whose path it returns.
func (c *client) into(name string) string {
	c.t.Helper()
	request.Of(c.task).Output = filepath.Join(c.t.TempDir(), name)
	return request.Of(c.task).Output
}

// holds fails unless a directory has just these files, and a file this content.
func holds(t *testing.T, path, content string, names ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("the file holds %q, %v; want %q", brief(got), err, brief([]byte(content)))
	}
	only(t, filepath.Dir(path), names...)
}

// only fails unless a directory has just these files.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	got := map[string]bool{}
	for _, entry := range entries {
		got[entry.Name()] = true
	}
	for _, name := range names {
		if !got[name] {
			t.Errorf("there is no %s", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is left", name)
	}
}

func brief(text []byte) []byte { return text[:min(len(text), 60)] }

func aPart(text string) []request.Part { return []request.Part{{Text: []byte(text)}} }

func lines(text ...string) []string { return text }
