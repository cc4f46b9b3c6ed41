package httpexec

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

const (
	envDownload = "HTTPEXEC_TEST_DOWNLOAD" // the URL that a process of its own downloads
	envOutput   = "HTTPEXEC_TEST_OUTPUT"   // into this file; empty: to stdout
	cuts        = 5
)

// mostMemory is how much memory the process may use, whatever the size of the download.
const mostMemory = 30 << 20

// raceDetector is true in a build with -race, which takes several times the memory and the time.
var raceDetector bool

func largeSize() int64 {
	if testing.Short() || raceDetector {
		return 16 << 20
	}
	return 200 << 20
}

// A large download that is cut several times is complete and correct, takes little memory, and each byte is sent once.
func TestLargeDownload(t *testing.T) {
	if os.Getenv(envDownload) != "" {
		t.Skip("that is the other process")
	}
	for _, toFile := range []bool{true, false} {
		var sent atomic.Int64
		size := largeSize()
		s := httptest.NewServer(cutting(size, &sent))
		cmd := exec.Command(os.Args[0], "-test.run=^TestDownloadInAProcess$")
		cmd.Env = append(os.Environ(), envDownload+"="+s.URL)
		path := ""
		if toFile {
			path = filepath.Join(t.TempDir(), "file")
			cmd.Env = append(cmd.Env, envOutput+"="+path)
		}
		sum := sha256.New()
		var notes bytes.Buffer
		cmd.Stdout, cmd.Stderr = sum, &notes
		if err := cmd.Run(); err != nil {
			t.Fatalf("got %v, %s, want a success", err, &notes)
		}
		s.Close()
		if toFile {
			sum = sumOf(t, path)
		}
		want := sha256.New()
		_, err := io.Copy(want, io.NewSectionReader(pattern{}, 0, size))
		testkit.Must(t, err)
		if got := hex.EncodeToString(sum.Sum(nil)); got != hex.EncodeToString(want.Sum(nil)) {
			t.Errorf("to a file %v: got other bytes, want those of the server", toFile)
		}
		if sent.Load() != size {
			t.Errorf("to a file %v: got %d bytes sent, want %d", toFile, sent.Load(), size)
		}
		checkMemory(t, notes.String())
	}
}

// cutting serves a large file, and closes the connection after a sixth of it.
func cutting(size int64, sent *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"large"`)
		left := size/(cuts+1) + 1
		http.ServeContent(&cutter{w, &left, sent}, r, "", time.Time{}, io.NewSectionReader(pattern{}, 0, size))
		if left == 0 {
			panic(http.ErrAbortHandler)
		}
	})
}

// cutter writes a limited number of bytes.
type cutter struct {
	http.ResponseWriter
	left *int64
	sent *atomic.Int64
}

func (c *cutter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(int64(len(p)), *c.left)])
	*c.left -= int64(n)
	c.sent.Add(int64(n))
	if err == nil && n < len(p) {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		err = io.ErrShortWrite
	}
	return n, err
}

// pattern is an endless file in which no two places have the same bytes.
type pattern struct{}

func (pattern) ReadAt(p []byte, offset int64) (int, error) {
	for i := range p {
		at := uint64(offset) + uint64(i)
		p[i] = byte((at >> 3 * 0x9e3779b97f4a7c15) >> (8 * (at & 7)))
	}
	return len(p), nil
}

func sumOf(t *testing.T, path string) hash.Hash {
	t.Helper()
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	testkit.Must(t, err)
	return sum
}

// checkMemory compares the memory that the process reports with the limit. The race detector needs more.
func checkMemory(t *testing.T, notes string) {
	t.Helper()
	var used int64
	if _, err := fmt.Sscanf(notes, "VmHWM %d", &used); err != nil {
		t.Fatalf("%q: got %v, want the memory used", notes, err)
	}
	t.Logf("%d KiB at most", used>>10)
	if used > mostMemory && !raceDetector {
		t.Errorf("got %d bytes of memory, want at most %d", used, mostMemory)
	}
}

// TestDownloadInAProcess is not a test: it is the process that TestLargeDownload starts.
func TestDownloadInAProcess(t *testing.T) {
	url := os.Getenv(envDownload)
	if url == "" {
		t.Skip("there is nothing to download")
	}
	e := &Executor{
		Output:    Output{Stdout: os.Stdout, Stderr: os.Stderr},
		Temporary: func() (*os.File, error) { return spool.Temporary("") },
	}
	tk := &task.Task{Kind: request.Kind, Target: &request.Request{Method: "GET", URL: url, Output: os.Getenv(envOutput)}}
	for n := 1; n <= cuts+1; n++ {
		o := e.Execute(t.Context(), tk, runner.Call{Number: n})
		tk.Status = task.Pending
		if last := n == cuts+1; last == (o.Exit != 0) {
			fmt.Fprintf(os.Stderr, "attempt %d: %+v", n, o)
			os.Exit(1)
		} else if last {
			tk.Status = task.Succeeded
		}
		if _, err := e.Flush(tk, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Fprintf(os.Stderr, "VmHWM %d", mostUsed())
	os.Exit(0) // no word of the test's on stdout
}

// mostUsed returns the largest memory use of the process in bytes.
func mostUsed() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return -1
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return n << 10
		}
	}
	return -1
}

// A named pipe is opened when the body is whole, not before.
func TestNamedPipe(t *testing.T) {
	path := ""
	text := strings.Repeat("x", 1<<20) + "end"
	s := serve(t, closes(cutReply), replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	c := newClient(t, s.url("http"), func(c *client) { path = c.into("pipe") })
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	c.attempt()
	testkit.Must(t, c.flush(task.Pending))
	c.attempt()
	read := make(chan string)
	go func() {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		read <- string(got)
	}()
	testkit.Must(t, c.flush(task.Succeeded))
	if got := <-read; got != text {
		t.Errorf("got %d bytes came through the pipe, want %d", len(got), len(text))
	}
	checkDir(t, filepath.Dir(path), "pipe")
}

// A signal ends the wait for a reader of a named pipe.
func TestNamedPipeThatNobodyReads(t *testing.T) {
	path := ""
	c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { path = c.into("pipe") })
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	c.attempt()
	c.task.Status = task.Succeeded
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	sig, err := c.Flush(c.task, signals)
	if sig != syscall.SIGTERM || !errors.Is(err, task.ErrStopped) {
		t.Errorf("got %v, %v, want %v, %v", sig, err, syscall.SIGTERM, task.ErrStopped)
	}
	go func() { _, _ = os.ReadFile(path) }() // lets the writer go
}

// Devices are written to, and a failed write is reported.
func TestDevices(t *testing.T) {
	for path, want := range map[string]error{"/dev/null": nil, "/dev/full": syscall.ENOSPC} {
		c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) { request.Of(c.task).Output = path })
		c.attempt()
		if err := c.flush(task.Succeeded); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

// /dev/stdout leads to stdout: if that is a file, its content stays, and it remains the same file.
func TestOutputToStdout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	testkit.Must(t, err)
	_, err = io.WriteString(file, "before ")
	testkit.Must(t, err)
	for _, output := range []string{"/dev/stdout", "/dev/stderr"} {
		c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) {
			request.Of(c.task).Output = output
			c.Output = Output{Stdout: file, Stderr: file}
		})
		c.attempt()
		testkit.Must(t, c.flush(task.Succeeded))
	}
	_, err = io.WriteString(file, " after")
	testkit.Must(t, err)
	checkFile(t, path, "before hellohello after", "file")
	testkit.Must(t, file.Close())
}

// A file that retry inherited is written to. A file that retry itself has opened may be the journal, and is refused.
func TestOutputToADescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testkit.Write(t, path, "before ")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	err = CheckOutput(fmt.Sprint("/dev/fd/", file.Fd()))
	if err == nil || !strings.HasSuffix(err.Error(), "there is no open file of this number") {
		t.Errorf("a file of retry's own: got %v, want an error", err)
	}
	number, err := syscall.Dup(int(file.Fd())) // as if inherited: it stays open for programs that are started
	testkit.Must(t, err)
	defer func() { testkit.Must(t, syscall.Close(number)) }()
	c := newClient(t, serve(t, replies(okReply)).url("http"), func(c *client) {
		request.Of(c.task).Output = fmt.Sprint("/dev/fd/", number)
	})
	c.attempt()
	testkit.Must(t, c.flush(task.Succeeded))
	checkFile(t, path, "before hello", "file")
	err = CheckFiles(request.Of(c.task))
	if err == nil || !strings.Contains(err.Error(), "it was an open file of another process") {
		t.Errorf("in a resume, whose files are others: got %v, want an error", err)
	}
	request.Of(c.task).Output = "/dev/stdout"
	testkit.Must(t, CheckFiles(request.Of(c.task)))
}

// A full disk has curl's exit status. The old file stays, and there is no other.
func TestFullDisk(t *testing.T) {
	dir := small(t)
	path := filepath.Join(dir, "file")
	testkit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
	big := strings.Repeat("x", 4<<20)
	for _, include := range []bool{false, true} {
		s := serve(t, replies("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", tagged, len(big), big))
		c := newClient(t, s.url("http"), func(c *client) {
			request.Of(c.task).Output, request.Of(c.task).Include = path, include
			c.Temporary = func() (*os.File, error) { return spool.Temporary(dir) }
		})
		o := c.attempt()
		if o.Exit != 23 || o.Error != task.ErrorLocal || !strings.Contains(o.Message, "no space left on device") ||
			describe(o.Reply.Default) != "stop" {
			t.Errorf("got %+v", o)
		}
		testkit.Must(t, c.flush(task.Failed))
		c.saw("", "")
		checkFile(t, path, "old", "file")
	}
}

// A full disk is also reported when a reply is copied to its file.
func TestFullDiskInTheEnd(t *testing.T) {
	path := filepath.Join(small(t), "file")
	testkit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
	big := strings.Repeat("x", 2<<20)
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(big), big))
	c := newClient(t, s.url("http"), func(c *client) {
		request.Of(c.task).Output, request.Of(c.task).Include = path, true
	})
	if o := c.attempt(); o.Exit != 0 {
		t.Errorf("got %+v, want exit 0", o)
	}
	if err := c.flush(task.Succeeded); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want %v", err, syscall.ENOSPC)
	}
	checkFile(t, path, "old", "file")
}

// A read-only file is not replaced.
func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(path, nil, 0o400))
	err := CheckOutput(path)
	if want := os.Geteuid() != 0; (err != nil) != want || (want && !errors.Is(err, os.ErrPermission)) {
		t.Errorf("got %v, want an error %v", err, want)
	}
}

// small mounts a file system of 1 MiB.
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
