package httpexec

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// A pipe gets the body once it is whole; nobody opens it before.
func TestNamedPipe(t *testing.T) {
	path := ""
	text := strings.Repeat("x", 1<<20) + "end"
	s := serve(t, closes(cutReply), replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	c := asking(t, s.url("http"), func(c *client) { path = c.into("pipe") })
	ok(t, syscall.Mkfifo(path, 0o600))
	c.attempt()
	ok(t, c.comes(task.Pending))
	c.attempt()
	read := make(chan string)
	go func() {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		read <- string(got)
	}()
	ok(t, c.comes(task.Succeeded))
	if got := <-read; got != text {
		t.Errorf("%d bytes came through the pipe, want %d", len(got), len(text))
	}
	only(t, filepath.Dir(path), "pipe")
}

// A reader of a pipe who never comes does not keep a signal from ending the wait.
func TestNamedPipeThatNobodyReads(t *testing.T) {
	path := ""
	c := asking(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("pipe") })
	ok(t, syscall.Mkfifo(path, 0o600))
	c.attempt()
	c.task.Status = task.Succeeded
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	sig, err := c.Flush(c.task, signals)
	if sig != syscall.SIGTERM || !errors.Is(err, task.ErrStopped) {
		t.Errorf("%v, %v", sig, err)
	}
	go func() { _, _ = os.ReadFile(path) }() // lets the writer go
}

// Devices are written to, and a full one is told.
func TestDevices(t *testing.T) {
	for path, want := range map[string]error{"/dev/null": nil, "/dev/full": syscall.ENOSPC} {
		c := asking(t, serve(t, replies(okReply)).url("http"), func(c *client) { request.Of(c.task).Output = path })
		c.attempt()
		if err := c.comes(task.Succeeded); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// /dev/stdout and the like lead to what is open already: where that is a file, what is there stays, and it remains the same file.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	ok(t, err)
	_, err = io.WriteString(file, "before ")
	ok(t, err)
	if err := CheckOutput("/proc/self/fd/" + strconv.Itoa(int(file.Fd()))); !errors.Is(err, errDescriptor) {
		t.Errorf("a file that nobody handed us: %v", err)
	}
	number, err := syscall.Dup(int(file.Fd())) // as if inherited: it stays open for programs that are started
	ok(t, err)
	defer func() { ok(t, syscall.Close(number)) }()
	link := filepath.Join(t.TempDir(), "stdout")
	ok(t, os.Symlink("/proc/self/fd/"+strconv.Itoa(number), link))
	c := asking(t, serve(t, replies(okReply)).url("http"), func(c *client) { request.Of(c.task).Output = link })
	c.attempt()
	ok(t, c.comes(task.Succeeded))
	holds(t, path, "before hello", "file")
	here, err := file.Stat()
	ok(t, err)
	there, err := os.Stat(path)
	if err != nil || !os.SameFile(here, there) {
		t.Error("it is another file now", err)
	}
	ok(t, file.Close())
}

// A full disk is told as curl does; the old file stays, and nothing else.
func TestFullDisk(t *testing.T) {
	dir := small(t)
	path := filepath.Join(dir, "file")
	ok(t, os.WriteFile(path, []byte("old"), 0o600))
	big := strings.Repeat("x", 4<<20)
	for _, include := range []bool{false, true} {
		s := serve(t, replies("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", tagged, len(big), big))
		c := asking(t, s.url("http"), func(c *client) {
			request.Of(c.task).Output, request.Of(c.task).Include = path, include
			c.Temporary = func() (*os.File, error) { return spool.Temporary(dir) }
		})
		o := c.attempt()
		if o.Exit != 23 || o.Error != task.ErrorLocal || !strings.Contains(o.Message, "no space left on device") || describe(o.Reply.Default) != "stop" {
			t.Errorf("%+v", o)
		}
		ok(t, c.comes(task.Failed))
		c.saw("", "")
		holds(t, path, "old", "file")
	}
}

// Where there is no room for what is passed on, that is told, too.
func TestFullDiskInTheEnd(t *testing.T) {
	path := filepath.Join(small(t), "file")
	ok(t, os.WriteFile(path, []byte("old"), 0o600))
	big := strings.Repeat("x", 2<<20)
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(big), big))
	c := asking(t, s.url("http"), func(c *client) { request.Of(c.task).Output, request.Of(c.task).Include = path, true })
	if o := c.attempt(); o.Exit != 0 {
		t.Errorf("%+v", o)
	}
	if err := c.comes(task.Succeeded); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	holds(t, path, "old", "file")
}

// A file that its owner has made read-only is not replaced.
func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(path, nil, 0o400))
	err := CheckOutput(path)
	if want := os.Geteuid() != 0; (err != nil) != want || (want && !errors.Is(err, os.ErrPermission)) {
		t.Errorf("%v", err)
	}
}

// small mounts a file system of a MiB.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=700,size=1m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
