//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// TestDownloadCutFiveTimes has a server cut a large download again and again. It arrives bit for bit, to a file and on stdout, each byte
// is asked for once, and what is on its way is not held in memory.
func TestDownloadCutFiveTimes(t *testing.T) {
	testkit.Slow(t, "it downloads 400 MiB")
	size := int64(200 << 20)
	if raceDetector {
		size = 64 << 20
	}
	want := sha256.New()
	_, err := io.Copy(want, io.NewSectionReader(numbered{}, 0, size))
	testkit.Must(t, err)
	b := newDocsBench(t)
	for _, output := range []string{"-o", "stdout"} {
		t.Run(output, func(t *testing.T) {
			dir, got := t.TempDir(), sha256.New()
			s := rawServe(t, nil, cutting(t, size, 6))
			args := []string{"http", "-n", "6", "-b", "constant:0", "--report", "report"}
			if runtime.GOOS == "linux" {
				args = append(args, "--on-success", "cat /proc/$PPID/status >memory")
			}
			if output == "-o" {
				args = append(args, "-o", "file")
			}
			cmd := b.command(append(args, "http://"+s.address+"/large")...)
			cmd.Dir, cmd.Env = dir, append(cmd.Env, "RETRY_STATE_DIR="+filepath.Join(dir, "state"), "PATH="+os.Getenv("PATH"))
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = got, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			s.stop()
			if output == "-o" {
				addFile(t, got, filepath.Join(dir, "file"))
			}
			if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
				t.Error("another file arrived than was sent")
			}
			if requests, sent := s.requests.Load(), s.sent.Load(); requests != 6 || sent != size {
				t.Errorf("%d requests had %d bytes sent, want 6 and %d", requests, sent, size)
			}
			if tk := readReport(t, filepath.Join(dir, "report"), &stderr); tk.Status != "SUCCEEDED" || tk.Count != 6 || tk.Attempts[0].Error != "truncated" {
				t.Errorf("%+v", tk)
			}
			if runtime.GOOS != "linux" || raceDetector {
				return // memory is read from /proc, and the race detector takes several times as much
			}
			if peak := peakMemory(t, filepath.Join(dir, "memory")); peak >= 30<<20 {
				t.Errorf("got %d bytes of memory at the peak, want less than 30 MiB", peak)
			}
		})
	}
}

// cutting sends a file in so many parts of a different size, each over a connection of its own that ends too early, until the last.
func cutting(t *testing.T, size, parts int64) deed {
	return func(c *rawConn) {
		const tag = `"v1"`
		r := c.request()
		from, status := int64(0), "200 OK\r\n"
		if asked := r.Header.Get("Range"); asked != "" && r.Header.Get("If-Range") == tag {
			from, _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(asked, "bytes="), "-"), 10, 64)
			status = fmt.Sprintf("206 Partial Content\r\nContent-Range: bytes %d-%d/%d\r\n", from, size-1, size)
		}
		c.say(fmt.Sprintf("HTTP/1.1 %sETag: %s\r\nContent-Length: %d\r\n\r\n", status, tag, size-from))
		part := size/parts + c.server.requests.Load()*12345
		if c.server.requests.Load() == parts {
			part = size
		}
		n, err := io.Copy(c.Conn, io.NewSectionReader(numbered{}, from, min(part, size-from)))
		if err != nil {
			t.Errorf("the client went too early: %v", err)
		}
		c.server.sent.Add(n)
	}
}

// numbered is an endless file, of which each page begins with its number.
type numbered struct{}

var page = func() []byte {
	text, source := make([]byte, 4096), rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte(source.Uint32())
	}
	return text
}()

// ReadAt implements io.ReaderAt.
func (numbered) ReadAt(p []byte, offset int64) (int, error) {
	for n := 0; n < len(p); {
		at := offset + int64(n)
		number := binary.BigEndian.AppendUint64(nil, uint64(at/int64(len(page))))
		if in := int(at % int64(len(page))); in < len(number) {
			n += copy(p[n:], number[in:])
		} else {
			n += copy(p[n:], page[in:])
		}
	}
	return len(p), nil
}

func addFile(t *testing.T, to hash.Hash, path string) {
	t.Helper()
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	_, err = io.Copy(to, file)
	testkit.Must(t, err)
}

// peakMemory reads the most memory that a process had, in bytes, off what the kernel says of it.
func peakMemory(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	testkit.Must(t, err)
	t.Logf("%d KiB at the peak", kib)
	return kib << 10
}
