package httpexec

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

const failedReply = "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops"

// TestBodyOutput checks where the body of the last reply is written.
func TestBodyOutput(t *testing.T) {
	tests := []struct {
		name           string
		reply          string
		status         task.Status
		file, hideFail bool
		out, err       string
		content        string // of the file, which held "old"
	}{
		{"success", okReply, task.Succeeded, false, false, "hello", "", ""},
		{"success to a file", okReply, task.Succeeded, true, false, "", "", "hello"},
		{"an error", failedReply, task.Failed, false, false, "oops", "", ""},
		{"an error beside a file", failedReply, task.Exhausted, true, false, "", "oops\n", "old"},
		{"an error that ends its line", "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\noops\n", task.Exhausted, true, false, "",
			"oops\n", "old"},
		{"an error without a body", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", task.Exhausted, true, false, "", "",
			"old"},
		{"an error that is hidden", failedReply, task.Failed, false, true, "", "", ""},
		{"an error that is hidden beside a file", failedReply, task.Failed, true, true, "", "", "old"},
		{"an error that the policy calls a success", failedReply, task.Succeeded, true, false, "", "", "oops"},
		{"a success that the policy calls an error", okReply, task.Failed, true, false, "", "hello\n", "old"},
		{"there is another attempt", okReply, task.Pending, true, false, "", "", "old"},
		{"a body that was cut", cutReply, task.Exhausted, false, false, "", "", ""},
		{"a body that was cut, beside a file", cutReply, task.Exhausted, true, false, "", "", "old"},
		{"a cut body that the policy calls a success", cutReply, task.Succeeded, true, false, "", "", "old"},
		{"no body at all", "HTTP/1.1 204 No Content\r\n\r\n", task.Succeeded, true, false, "", "", ""},
		{"a redirect that is not followed", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 4\r\n\r\nthen",
			task.Succeeded, true, false, "", "", "then"},
		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", task.Succeeded, true,
			false, "", "", "hello"},
		{"cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", task.Exhausted, true, false, "",
			"", "old"},
		{"cut before the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", task.Exhausted,
			true, false, "", "", "old"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := ""
			c := newClient(t, serve(t, closes(tt.reply)).url("http"), func(c *client) {
				request.Of(c.task).HideFail = tt.hideFail
				if tt.file {
					path = c.into("file")
					testkit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
				}
			})
			c.attempt()
			testkit.Must(t, c.flush(tt.status))
			c.saw(tt.out, tt.err)
			if tt.file {
				checkFile(t, path, tt.content, "file")
			}
		})
	}
}

// A new file has the usual mode. A file that is replaced keeps its mode.
func TestModeOfTheFile(t *testing.T) {
	usual := filepath.Join(t.TempDir(), "usual")
	file, err := os.Create(usual)
	testkit.Must(t, err)
	testkit.Must(t, file.Close())
	info, err := os.Stat(usual)
	testkit.Must(t, err)
	for _, had := range []os.FileMode{0, 0o600, 0o666, 0o755} {
		want, path := info.Mode(), ""
		c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("file") })
		if had != 0 {
			want = had
			testkit.Must(t, os.WriteFile(path, nil, had))
			testkit.Must(t, os.Chmod(path, had))
		}
		c.attempt()
		testkit.Must(t, c.flush(task.Succeeded))
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("mode %v: got %v, %v, want %v", had, info.Mode(), err, want)
		}
	}
}

// A symbolic link stays, and its target is written through it or made. A file in the target's place would show that
// retry followed the link by itself, where fs.protected_symlinks asks the kernel.
func TestFileBehindLinks(t *testing.T) {
	for _, there := range []bool{true, false} {
		path := ""
		c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("link") })
		dir := filepath.Dir(path)
		testkit.Must(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
		testkit.Must(t, os.Symlink("below/second", path))
		testkit.Must(t, os.Symlink("../target", filepath.Join(dir, "below", "second")))
		target := filepath.Join(dir, "target")
		if there {
			testkit.Must(t, os.WriteFile(target, []byte("old and longer"), 0o600))
		}
		before, absent := os.Stat(target)
		c.attempt()
		checkDir(t, filepath.Join(dir, "below"), "second")
		testkit.Must(t, c.flush(task.Succeeded))
		if after, err := os.Stat(target); err != nil || absent == nil && !os.SameFile(before, after) {
			t.Errorf("got another file, %v, want the one that the link leads to", err)
		}
		checkFile(t, target, "hello", "target", "below", "link")
		if link, err := os.Readlink(path); link != "below/second" {
			t.Errorf("got link to %q, %v, want below/second", link, err)
		}
	}
}

// An invalid output is reported before anything is sent.
func TestInvalidOutput(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for name, want := range map[string]string{
		"missing/file": "there is no directory " + dir + "/missing\nhint: make it first: mkdir -p " + dir + "/missing",
		".":            "it is a directory\nhint: add the name of a file",
		"loop":         "too many levels of symbolic links",
		"file/below":   "not a directory",
	} {
		path := filepath.Join(dir, name)
		err := CheckOutput(path)
		if text := fmt.Sprintf("write the reply to %s: %s", path, want); err == nil || err.Error() != text {
			t.Errorf("check %s: %v\nwant %s", name, err, text)
		}
		s := serve(t)
		o := newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Output = path }).attempt()
		s.saw(0)
		if o.Exit != 23 || o.Error != task.ErrorLocal || o.Message != strings.ReplaceAll(err.Error(), "\nhint: ", "; ") ||
			describe(o.Reply.Default) != "stop" {
			t.Errorf("%s: got %+v, %+v, want exit 23 and no retry", name, o, o.Reply)
		}
	}
	for _, fine := range []string{"file", "new"} {
		if err := CheckOutput(filepath.Join(dir, fine)); err != nil {
			t.Errorf("%s: got %v, want no error", fine, err)
		}
	}
}

// A part file of an earlier run is removed, and a link in its place is not followed. A long name of the file is cut.
func TestPartFile(t *testing.T) {
	for _, name := range []string{"file", strings.Repeat("n", 250)} {
		path := ""
		c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into(name) })
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		testkit.Must(t, os.WriteFile(elsewhere, []byte("old"), 0o600))
		left := download.PartFileName(path, c.task.ID, "")
		testkit.Must(t, os.Symlink(elsewhere, left))
		c.attempt()
		checkDir(t, filepath.Dir(path), filepath.Base(left))
		testkit.Must(t, c.flush(task.Succeeded))
		checkFile(t, path, "hello", name)
		checkFile(t, elsewhere, "old", "elsewhere")
	}
	if got := download.PartFileName("/dir/file",
		"01a1fb79-5735-7565-b3a1-977a5b9a39db", ""); got != filepath.FromSlash("/dir/.file.5b9a39db.part") {
		t.Error(got)
	}
}

// No part file is left, however the run ends, but for a task that a journal has and a resume can continue.
func TestCloseLeavesNothing(t *testing.T) {
	for _, number := range []int64{0, 1} {
		path := ""
		c := newClient(t, serve(t, closes("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 50\r\n\r\nhello")).url("http"),
			func(c *client) { path = c.into("file") })
		c.attempt()
		testkit.Must(t, c.flush(task.Pending))
		part := []string{".file.5b9a39db.part"}
		checkDir(t, filepath.Dir(path), part...) // for another attempt
		c.task.Number = number
		c.Close(c.task)
		checkDir(t, filepath.Dir(path), part[:number]...)
	}
}

// While retry waits, no useless file is in the directory.
func TestNoFilesWhileWaiting(t *testing.T) {
	for _, include := range []bool{false, true} {
		path := ""
		c := newClient(t, serve(t, closes(failedReply), closes(begun(tagged)),
			closes(rest("bytes 5-11/12", tagged, ", world"))).url("http"), func(c *client) {
			path = c.into("file")
			request.Of(c.task).Include = include
		})
		c.attempt()
		testkit.Must(t, c.flush(task.Pending))
		checkDir(t, filepath.Dir(path))
		c.attempt()
		testkit.Must(t, c.flush(task.Pending))
		if include { // the header is not known yet
			checkDir(t, filepath.Dir(path))
		}
		c.attempt()
		testkit.Must(t, c.flush(task.Succeeded))
		checkDir(t, filepath.Dir(path), "file")
		if got, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(got), full) {
			t.Errorf("got %q, %v, want %q at the end", got, err, full)
		}
	}
}

// A signal that stops Flush changes the task, but not where the body is written meanwhile.
func TestASignalStopsFlush(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the signal is received before anything is written
	path := ""
	c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("file") })
	c.attempt()
	c.task.Status = task.Succeeded
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	sig, err := c.Flush(c.task, signals)
	c.task.Status = task.Pending
	if sig != syscall.SIGTERM || !errors.Is(err, task.ErrStopped) {
		t.Errorf("got %v, %v, want SIGTERM, %v", sig, err, task.ErrStopped)
	}
	for end := time.Now().Add(30 * time.Second); len(partFiles(t, path)) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	c.saw("", "")
	checkFile(t, path, "hello", "file")
}

// partFiles returns what lies beside a file that is not complete.
func partFiles(t *testing.T, path string) []string {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.part"))
	testkit.Must(t, err)
	return found
}

// A failed write is reported.
func TestFlushFails(t *testing.T) {
	path := ""
	c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("file") })
	c.attempt()
	testkit.Must(t, os.Mkdir(path, 0o700)) // meanwhile
	if err := c.flush(task.Succeeded); err == nil || !strings.HasPrefix(err.Error(), "write the reply to "+path) ||
		!errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want an error about an existing file", err)
	}
	checkDir(t, filepath.Dir(path), "file")
}

// Where nobody reads what --write-out says either, the error is that about the file: a reader that has gone is no
// failure.
func TestFlushFailsTwice(t *testing.T) {
	path := ""
	c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("file") })
	request.Of(c.task).WriteOut, c.Output.Stdout = "%{http_code}", unread{}
	c.attempt()
	testkit.Must(t, os.Mkdir(path, 0o700)) // meanwhile
	if err := c.flush(task.Succeeded); !errors.Is(err, os.ErrExist) || errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want an error about the file alone", err)
	}
}

// unread is a pipe whose reader has gone.
type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestCapture(t *testing.T) {
	long := strings.Repeat("x", 3*task.StoredTail)
	for _, tt := range []struct {
		capture task.CaptureMode
		status  int
		want    int
	}{
		{"", 200, 0}, {task.CaptureNone, 500, 0}, {task.CaptureStderr, 200, 0}, {task.CaptureStderr, 404, task.StoredTail},
		{task.CaptureBoth, 200, task.StoredTail},
	} {
		s := serve(t, replies("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", tt.status, len(long), long))
		o := newClient(t, s.url("http"), func(c *client) { c.task.Options.Capture = tt.capture }).attempt()
		if len(o.Stdout) != tt.want || o.Stderr != "" {
			t.Errorf("%q, status %d: got %d bytes, want %d", tt.capture, tt.status, len(o.Stdout), tt.want)
		}
	}
}

// The header is shown as it was received, over TLS, too.
func TestHeadAsItWasReceived(t *testing.T) {
	const odd = "HTTP/1.1 200 Sure thing\r\nx-LAST: 1\r\nA-first:  two  \r\nContent-Length: 5\r\n\r\n"
	const upgradeReply = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"
	a := newAuthority(t)
	for name, tt := range map[string]struct {
		reply, head, body string
		change            func(*client)
	}{
		"a reply": {odd + "hello", odd, "hello", nil},
		"an interim reply": {"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + odd + "hello",
			"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + odd, "hello", nil},
		"lines without CR": {"HTTP/1.0 200 OK\nx: y\n\nhello\n\nworld", "HTTP/1.0 200 OK\nx: y\n\n", "hello\n\nworld", nil},
		"no header at all": {"HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\n\r\n", "hello", nil},
		"an error":         {failedReply, failedReply[:len(failedReply)-4], "oops", nil},
		"an upgrade":       {upgradeReply, upgradeReply, "", nil},
		"a hidden error": {failedReply, failedReply[:len(failedReply)-4], "",
			func(c *client) { request.Of(c.task).HideFail = true }},
		"HEAD": {odd, odd, "", func(c *client) { c.Request.Method = "HEAD" }},
		"a long header": {"HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 100_000) + "\r\n" + odd[26:] + "hello",
			"HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 100_000) + "\r\n" + odd[26:], "hello", nil},
	} {
		for _, scheme := range []string{"http", "https"} {
			var s *server
			if scheme == "http" {
				s = serve(t, closes(tt.reply))
			} else {
				s = serveTLS(t, a.server(nil), closes(tt.reply))
			}
			path := ""
			c := newClient(t, s.url(scheme), func(c *client) {
				request.Of(c.task).Include = true
				c.Network.CACert = a.file
				if tt.change != nil {
					tt.change(c)
				}
				if scheme == "https" && !request.Of(c.task).HideFail { // of an error FILE gets nothing
					path = c.into("file")
				}
			})
			c.attempt()
			s.saw(1)
			end := task.Succeeded
			if request.Of(c.task).HideFail {
				end = task.Failed
			}
			testkit.Must(t, c.flush(end))
			if path != "" {
				checkFile(t, path, tt.head+tt.body, "file")
				continue
			}
			if got := c.out.String(); got != tt.head+tt.body {
				t.Errorf("%s: got %.200q\nwant %.200q", name, got, tt.head+tt.body)
			}
		}
	}
}

// HTTP/2 has no text that could be shown.
func TestHeadOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil, "h2"), http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200+"\x0f\x13\x03\"a\"\x00\x03x-b\x01c\x00\x03x-b\x01d")
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	}))
	c := newClient(t, s.url("https"), func(c *client) { c.Network.CACert, request.Of(c.task).Include = a.file, true })
	c.attempt()
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw("HTTP/2 200 \r\netag: \"a\"\r\nx-b: c\r\nx-b: d\r\n\r\nhello", "")
}

// The header of each redirect is shown without its body. Of a download in several attempts, the first header is shown: its length is
// that of the whole.
func TestHeadsOfSeveralReplies(t *testing.T) {
	there := serve(t, closes(begun(tagged)), closes(rest("bytes 5-11/12", tagged, ", world")))
	redirect := "HTTP/1.1 302 Found\r\nLocation: " + there.url("http") + "\r\nContent-Length: 4\r\n\r\n"
	s := serve(t, closes(redirect+"body"), closes(redirect+"body"))
	c := newClient(t, s.url("http"), func(c *client) { c.Network.MaxRedirects, request.Of(c.task).Include = 5, true })
	c.attempt()
	testkit.Must(t, c.flush(task.Pending))
	c.attempt()
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw(redirect+begun(tagged)+full[len("hello"):], "")
}

// If only the end of a download was missing, its first header is shown.
func TestHeadOfWhatWasWholeAlready(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\n" + tagged + "Transfer-Encoding: chunked\r\n\r\n"
	s := serve(t, closes(head+"5\r\nhello\r\n"), closes("HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\n\r\n"))
	c := newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Include = true })
	c.attempt()
	testkit.Must(t, c.flush(task.Pending))
	if o := c.attempt(); o.Exit != 0 || o.Reply.Status != 200 {
		t.Errorf("got %+v, %+v, want exit 0 and status 200", o, o.Reply)
	}
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw(head+"hello", "")
}

// The reply of a proxy to CONNECT is not shown.
func TestHeadThroughATunnel(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil), replies(okReply))
	p := serve(t, func(c *wire) {
		c.request()
		there, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = there.Close() }()
		c.send("HTTP/1.1 200 Connected\r\nVia: me\r\n\r\n")
		go func() { _, _ = io.Copy(there, c.reader) }()
		_, _ = io.Copy(c, there)
	})
	c := newClient(t, s.url("https"), func(c *client) {
		c.Network.CACert, c.Network.Proxy, request.Of(c.task).Include = a.file, "http://"+p.address(), true
	})
	c.attempt()
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "")
}
