package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// A file that is cut short while it is read, as a log that is rotated by copying, is not taken for whole, nor is one
// that is rewritten in place. One that grows has what it had.
func TestFileThatChangesWhileItIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"cut":       {func(path string) error { return os.Truncate(path, 2000) }, "cut short"},
		"rewritten": {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, "has changed"},
		"grown":     {func(path string) error { return os.Truncate(path, 1<<20+1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			testkit.Must(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
			file, err := os.Open(path)
			testkit.Must(t, err)
			defer func() { _ = file.Close() }()
			begun, err := file.Stat()
			testkit.Must(t, err)
			_, err = file.Read(make([]byte, 1000))
			testkit.Must(t, err, tt.change(path))
			_, err = io.Copy(io.Discard, file)
			testkit.Must(t, err)
			err = stdio.NewReader(file).CheckEnd(begun, false)
			if got := fmt.Sprint(err); (err != nil) != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			_, err = file.Seek(0, io.SeekStart)
			testkit.Must(t, err)
			if _, err := testHost().readInput(stdio.NewReader(file)); err != nil {
				t.Errorf("read again: got %v, want no error", err)
			}
		})
	}
}

// What ends retry a moment after the writer of a request's body may have ended that, too: a resume does not take the
// part for the whole.
func TestSignalAfterTheEndOfABody(t *testing.T) {
	proc.NoteSignals(true) // not in the bubble, which it would outlive
	tests := []struct {
		name  string
		after time.Duration
		file  bool
		want  error
	}{
		{name: "at once", after: endsTogether / 2, want: state.ErrInputLost},
		{name: "later", after: 2 * endsTogether},
		{name: "at once, of a file", after: endsTogether / 2, file: true},
	}
	for _, tt := range tests {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := newTask()
		tk.Kind = request.Kind
		tk.Target = &request.Request{Method: "POST", Body: []request.Part{{File: request.StdinFile}}}
		testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
		source := piped(t, "half")
		if tt.file {
			source = fileWith(t, "half")
		}
		synctest.Test(t, func(t *testing.T) {
			stopping, stop := context.WithCancel(t.Context())
			g.Stopping = stopping
			host := testHost()
			body, err := host.readInput(stdio.NewReader(source))
			testkit.Must(t, err)
			_, keep, done, err := g.body(tk, ExecOptions{Body: body}, host.inputEnded, false)
			testkit.Must(t, err, keep(tk))
			time.Sleep(tt.after)
			synctest.Wait()
			found, err := g.Journal.Input(tk) // as after a SIGKILL
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: before the signal: got %v, want %v", tt.name, err, tt.want)
			}
			_ = found.Close()
			stop()
			done()
		})
		found, err := g.Journal.Input(tk)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: after the signal: got %v, want %v", tt.name, err, tt.want)
		}
		_ = found.Close()
	}
}

// What ends retry add a moment after the writer leaves no task that a worker would run with a part of its stdin.
func TestAddOutlivesTheWriter(t *testing.T) {
	proc.NoteSignals(true) // not in the bubble, which it would outlive
	tests := []struct {
		name   string
		source *os.File
		want   time.Duration
	}{
		{"a pipe", piped(t, "half"), endsTogether},
		{"a file", fileWith(t, "whole"), 0},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			host := testHost()
			host.Stdin = tt.source
			queue, err := OpenQueue(t.Context(), host, dir)
			testkit.Must(t, err)
			tk := newTask("cat")
			tk.Options.Stdin = task.StdinReplay
			begin := time.Now()
			_, err = (&Wrapper{}).enqueue(t.Context(), host, queue, tk, begin, newRecorder())
			testkit.Must(t, err)
			if got := time.Since(begin); got != tt.want {
				t.Errorf("%s: added after %v, want %v", tt.name, got, tt.want)
			}
			testkit.Must(t, queue.Close())
		})
	}
}

// A task that somebody made due before its stdin was stored has failed, and is not acknowledged.
func TestAddOfWhatHasFailedMeanwhile(t *testing.T) {
	for _, test := range []struct {
		status task.Status
		class  task.ErrorClass
		added  bool
	}{
		{task.Failed, task.ErrorStart, false}, {task.Failed, task.ErrorLocal, false},
		{task.Failed, "", true}, {task.Succeeded, "", true}, {task.Cancelled, "", true},
	} {
		dir := t.TempDir()
		queue, err := OpenQueue(t.Context(), testHost(), dir)
		testkit.Must(t, err)
		tk := newTask("cat")
		tk.Queue = task.QueueWorker
		_, err = queue.Add(t.Context(), []*task.Task{tk})
		testkit.Must(t, err)
		db, err := sql.Open("sqlite3", filepath.Join(dir, "journal.db"))
		testkit.Must(t, err)
		_, err = db.Exec("UPDATE tasks SET status = ?, finished_at = 1, attempt_count = 1", string(test.status))
		_, err2 := db.Exec(`INSERT INTO attempts (task, number, started_at, exit, error, decision)
			VALUES (1, 1, 1, 125, nullif(?, ''), 'failed')`, string(test.class))
		testkit.Must(t, err, err2, db.Close())
		if id, err := idOfTaken(t.Context(), queue, tk); (err == nil) != test.added || (id == tk.ID) != test.added {
			t.Errorf("%s %s: got %q, %v, want the id: %v", test.status, test.class, id, err, test.added)
		}
		testkit.Must(t, queue.Close())
	}
}

func fileWith(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	testkit.Write(t, path, text)
	file, err := os.Open(path)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// What has ended the writer of an input has a moment to stop this process, too.
func TestAwaitWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			ended, want time.Duration // before now; the wait
		}{
			"just now": {0, stdio.EndGrace}, "a moment ago": {stdio.EndGrace / 2, stdio.EndGrace / 2},
			"long ago": {time.Hour, 0},
		} {
			now := time.Now()
			host := &Host{inputEnded: now.Add(-test.ended)}
			testkit.Must(t, host.awaitWriter(&Journal{}))
			if got := time.Since(now); got != test.want {
				t.Errorf("%s: got a wait of %v, want %v", name, got, test.want)
			}
		}
	})
}

// A line sends a file that has changed as a new request where that cannot do anything twice.
func TestFilesChanged(t *testing.T) {
	upload := func(r request.Request, size int64, status task.Status, once bool) *task.Task {
		r.Body = []request.Part{{File: "/dump", Size: size}}
		return &task.Task{Kind: request.Kind, Target: &r, Status: status, Once: once}
	}
	put, post := request.Request{Method: "PUT"}, request.Request{Method: "POST"}
	keyed := request.Request{Method: "POST", Keyed: true}
	for name, tt := range map[string]struct {
		request request.Request
		size    int64
		status  task.Status
		once    bool
		want    bool
	}{
		"a PUT":               {put, 2, task.InFlight, true, true},
		"the same file":       {put, 1, task.InFlight, false, false},
		"a POST that waits":   {post, 2, task.Pending, false, true},
		"one with --once":     {post, 2, task.Pending, true, false},
		"a POST in flight":    {post, 2, task.InFlight, false, false},
		"a key of the user's": {keyed, 2, task.Pending, false, false},
	} {
		got := filesChanged(upload(tt.request, 1, tt.status, tt.once), upload(tt.request, tt.size, task.Pending, tt.once))
		if got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// What a worker alone carries whole is not run by requeue --run.
func TestCheckCarrier(t *testing.T) {
	for name, test := range map[string]struct {
		kind    task.Kind
		target  task.Target
		options task.Options
		want    string
	}{
		"a command":               {},
		"a request":               {kind: request.Kind, target: &request.Request{}},
		"a request of the API":    {request.Kind, &request.Request{Guarded: true}, task.Options{}, "is sent by a worker"},
		"a call":                  {kind: grpcexec.Kind, target: &grpcexec.Call{}},
		"a call of the API":       {grpcexec.Kind, &grpcexec.Call{Guarded: true}, task.Options{}, "is sent by a worker"},
		"one that is followed up": {options: task.Options{Exhausted: "{}"}, want: "its onExhausted is made by a worker"},
	} {
		tk := newTask()
		tk.Options = test.options
		if test.target != nil {
			tk.Kind, tk.Target = test.kind, test.target
		}
		err := CheckCarrier(tk)
		if got := fmt.Sprint(err); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
