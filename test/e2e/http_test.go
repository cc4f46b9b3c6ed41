//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// TestLikeCurl runs retry and curl with the same flags, and compares the requests that a raw server gets: the request
// line, the headers in any order, and the body.
func TestLikeCurl(t *testing.T) {
	testkit.Slow(t, "it runs the program and curl once for each set of flags")
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl to compare with")
	}
	b := newSandbox(t)
	for name, content := range map[string]string{
		"f.txt": "one\r\ntwo\nthree\n", "g.json": `{"a": [1, 2]}` + "\n", "h.bin": "\x00\xff\x80", "empty": "",
		"a b\"c.html": "<p>", "headers": "X-A: 1\nUser-Agent: mine\n",
		"netrc": "machine other login x\nmachine 127.0.0.1\n login me\n password \"p w\"\ndefault login d password e\n",
		"jar":   "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1\n127.0.0.1\tFALSE\t/x\tFALSE\t0\tb\t2\n.0.1\tTRUE\t/\tFALSE\t0\tc\t3\n",
		"large": strings.Repeat("0123456789abcdef", 1<<17),
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600))
	}
	for _, flags := range []string{
		"URL", "URL/path/to?a=1&b=%20x+y", "URL/a/./b/../c", "URL/%7euser/%c3%A4", "URL?q", "URL/#fragment", "HOST/x",
		"-I URL/x",
		"-X DELETE URL", "-X PATCH -d x URL", "-X post -d x URL",
		"-d a=1 URL", "-d a=1 -d b=2 URL", "-d '' URL", "-d @f.txt URL", "-d @f.txt -d x URL", "-d @empty URL",
		"-d @- URL",
		"--data-raw @x URL", "--data-binary @f.txt URL", "--data-binary @h.bin URL", "--data-binary @- URL",
		"--data-binary @large URL",
		"--data-urlencode 'a b&c=ä' URL", "--data-urlencode 'n=a b/~-_.!*' URL", "--data-urlencode =x=y URL",
		"--data-urlencode n@f.txt URL",
		"-d a --data-urlencode 'b= c' --data-binary d -d e URL",
		"--json '{\"a\":1}' URL", "--json @g.json URL", "--json '{' --json '}' URL",
		"--json 1 -H 'Accept: text/x' -H 'content-type: a/b' URL",
		"-G -d a=1 -d b=2 URL", "-G -d a=1 'URL/?x=y'", "-G --data-urlencode 'a= b' URL", "-I -G -d a URL",
		"-G -d a 'URL/p#f'",
		"-F a=b URL", "-F a=b -F c=@f.txt URL", "-F 'f=@h.bin;type=image/x;filename=y.z' URL",
		"-F 'f=@a b\"c.html' URL", "-F 'f=<f.txt' URL",
		"-F 'a=b;type=text/x' URL", "-F 'a\"b=c' URL", "-F f=@- URL", "-F 'f=@-;filename=x' URL",
		"-F 'f=@-;filename=x.png' URL", "-F f=@empty URL", "-F 'f=@g.json' -F 'g=@f.txt;filename=x.png' URL",
		"-F 'f=@f.txt,h.bin' -F x=y URL", "-F 'f=@f.txt;type=a/b,g.json;filename=z.png' -F 'f=@f.txt' URL",
		"-F 'f=@\"f.txt\",\"h.bin\"' URL", "-F 'f=a,b' URL",
		"-T f.txt URL/up/", "-T f.txt URL/up", "-T h.bin -X POST URL", "-T empty URL/x",
		"-H 'X-A: 1' -H 'x-b:2' -H 'X-A: 3' URL", "-H 'Accept:' URL", "-H 'X-Empty;' URL", "-H 'X-Gone:' URL",
		"-H 'Host: other' URL",
		"-H 'User-Agent:' URL", "-H 'Content-Type:' -d x URL", "-H 'Content-Type: text/plain' -d x URL",
		"-A me/1.0 URL", "-A '' URL", "-e http://from/ URL", "-u me:pass:word URL", "-u me: URL",
		"http://us%20er:p%40ss@HOST/", "-u a:b http://c:d@HOST/",
		"-H 'Authorization: Bearer x' -u a:b URL", "--compressed URL", "-H 'Cookie: a=b; c=d' URL",
		"--cookie 'a=b; c=d' URL", "--cookie jar URL/x/y", "--cookie a=b -H 'Cookie: c=d' URL", "-c new --cookie jar URL",
		"--netrc-file netrc URL", "--netrc-file netrc -u a:b URL", "--netrc-file netrc http://me@HOST/",
		"-H @headers -H 'X-B: 2' URL", "-H @headers -A x --json 1 URL",
		"-H 'Range: bytes=1-2' URL", "-H 'Content-Length: 1' -d a URL",
		"-x HOST http://elsewhere.invalid/path?q", "-x http://me:pw@HOST http://elsewhere.invalid/",
		"-x HOST -H 'Proxy-Authorization: Basic x' http://e.invalid/",
		"-x http://nowhere.invalid --noproxy 127.0.0.1 URL", "--unix-socket SOCKET http://name/path",
		"--resolve name.invalid:PORT:127.0.0.1 http://name.invalid:PORT/",
		"--http1.1 URL", "-H 'Transfer-Encoding: chunked' -d abc URL", "-H 'Connection: close' URL",
		"-H 'Expect:' -d x URL",
	} {
		t.Run(flags, func(t *testing.T) {
			theirs, said := b.request(t, "curl -gsS "+flags)
			ours, saidToo := b.request(t, b.retry+" http --idempotency-key none "+flags)
			if ours != theirs {
				t.Errorf("got from retry\n%s%s\nwant, as from curl,\n%s%s", ours, saidToo, theirs, said)
			}
		})
	}
}

// request returns the request of a command line to a server, whose address it names as URL, HOST, PORT and SOCKET.
func (b *sandbox) request(t *testing.T, line string) (request, said string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	testkit.Must(t, err)
	heard := make(chan string, 8)
	for _, l := range []net.Listener{tcp, local} {
		defer func() { _ = l.Close() }()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				heard <- readRawRequest(c)
			}
		}()
	}
	host := tcp.Addr().String()
	_, port, _ := net.SplitHostPort(host)
	shell := exec.Command("/bin/sh", "-c",
		strings.NewReplacer("URL", "http://"+host, "HOST", host, "PORT", port, "SOCKET", path).Replace(line))
	shell.Dir, shell.Stdin = b.dir, strings.NewReader("from\r\nstdin\n")
	shell.Env = append(os.Environ(), quickExit, "RETRY_STATE_DIR="+filepath.Join(b.dir, "state"), "RETRY_ATTEMPTS=1")
	out, err := shell.CombinedOutput()
	if err != nil {
		out = append(out, err.Error()...)
	}
	select {
	case request = <-heard:
	case <-time.After(map[bool]time.Duration{true: patience, false: time.Second}[err == nil]): // it may be heard later than answered
		request = "nothing\n"
	}
	return strings.ReplaceAll(request, port, "PORT"), string(out)
}

// readRawRequest reads and answers a request, and returns it with sorted headers.
func readRawRequest(c net.Conn) string {
	defer func() { _ = c.Close() }()
	r := textproto.NewReader(bufio.NewReader(c))
	line, err := r.ReadLine()
	if err != nil {
		return err.Error()
	}
	headers, length := []string{}, 0
	for {
		header, err := r.ReadLine()
		if header == "" || err != nil {
			break
		}
		name, value, _ := strings.Cut(header, ":")
		header = name + ": " + strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		case "transfer-encoding":
			length = -1
		case "proxy-connection": // no proxy uses it today
			continue
		case "accept-encoding": // curl unpacks more
			header = strings.Replace(header, "deflate, gzip, br, zstd", "gzip", 1)
		case "expect":
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			continue
		case "user-agent":
			if strings.HasPrefix(value, " curl/") || strings.HasPrefix(value, " retry/") {
				header = name + ": the default"
			}
		}
		headers = append(headers, header)
	}
	slices.Sort(headers)
	body := make([]byte, max(0, length))
	if length >= 0 {
		_, _ = io.ReadFull(r.R, body)
	} else {
		body = chunks(r.R)
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	text := line + "\n" + strings.Join(headers, "\n") + "\n\n" + string(body) + "\n"
	for i, boundary := range regexp.MustCompile(`boundary=(-+\w+)`).FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, boundary[1], fmt.Sprintf("BOUNDARY %d", i))
	}
	return text
}

// chunks reads a chunked body to its end.
func chunks(r *bufio.Reader) []byte {
	var whole bytes.Buffer
	for {
		size, err := r.ReadString('\n')
		n, _ := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
		if err != nil || n == 0 {
			return append(whole.Bytes(), " in chunks"...)
		}
		_, _ = io.CopyN(&whole, r, n)
		_, _ = r.ReadString('\n')
	}
}

// TestDownloadCutFiveTimes has a server cut a large download again and again. It arrives unchanged, in a file and on
// stdout. Each byte is requested once, and the download is not held in memory.
func TestDownloadCutFiveTimes(t *testing.T) {
	testkit.Slow(t, "it downloads 400 MiB")
	size := int64(200 << 20)
	if raceDetector {
		size = 64 << 20
	}
	want := sha256.New()
	_, err := io.Copy(want, io.NewSectionReader(numbered{}, 0, size))
	testkit.Must(t, err)
	b := newSandbox(t)
	for _, output := range []string{"-o", "stdout"} {
		t.Run(output, func(t *testing.T) {
			dir, got := t.TempDir(), sha256.New()
			s := startRawServer(t, nil, cutting(t, size, 6))
			args := []string{"http", "-n", "6", "-b", "constant:0", "--report", "report"}
			if runtime.GOOS == "linux" {
				args = append(args, "--on-success", "cat /proc/$PPID/status >memory")
			}
			if output == "-o" {
				args = append(args, "-o", "file")
			}
			cmd := b.command(append(args, "http://"+s.address+"/large")...)
			cmd.Dir, cmd.Env = dir,
				append(cmd.Env, "RETRY_STATE_DIR="+filepath.Join(dir, "state"), "PATH="+os.Getenv("PATH"))
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
				t.Error("got another file, want the one that was sent")
			}
			if requests, sent := s.requests.Load(), s.sent.Load(); requests != 6 || sent != size {
				t.Errorf("got %d requests and %d bytes, want 6 and %d", requests, sent, size)
			}
			if tk := readReport(t, filepath.Join(dir, "report"), &stderr); tk.Status != "SUCCEEDED" || tk.Count != 6 ||
				tk.Attempts[0].Error != "truncated" {
				t.Errorf("got %+v, want a success after 6 attempts", tk)
			}
			if runtime.GOOS != "linux" || raceDetector {
				return // memory is read from /proc, and the race detector takes several times as much
			}
			if peak := peakMemory(t, filepath.Join(dir, "memory")); peak >= 16<<20 {
				t.Errorf("got %d bytes of memory at the peak, want less than 16 MiB", peak)
			}
		})
	}
}

// cutting sends a file in parts of different sizes. Each has a connection of its own, and all but the last end too
// early.
func cutting(t *testing.T, size, parts int64) handler {
	return func(c *rawConn) {
		const tag = `"v1"`
		r := c.request()
		from, status := int64(0), "200 OK\r\n"
		if asked := r.Header.Get("Range"); asked != "" && r.Header.Get("If-Range") == tag {
			from, _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(asked, "bytes="), "-"), 10, 64)
			status = fmt.Sprintf("206 Partial Content\r\nContent-Range: bytes %d-%d/%d\r\n", from, size-1, size)
		}
		c.send(fmt.Sprintf("HTTP/1.1 %sETag: %s\r\nContent-Length: %d\r\n\r\n", status, tag, size-from))
		part := size/parts + c.server.requests.Load()*12345
		if c.server.requests.Load() == parts {
			part = size
		}
		n, err := io.Copy(c.Conn, io.NewSectionReader(numbered{}, from, min(part, size-from)))
		if err != nil {
			t.Errorf("got error %v, want the client to wait", err)
		}
		c.server.sent.Add(n)
	}
}

// numbered is an endless file. Each of its pages begins with its number.
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

// peakMemory returns the most memory that a process had, in bytes, without the pages of the program's file, from a copy
// of its /proc/PID/status.
func peakMemory(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	kib := func(name string) int {
		_, rest, _ := strings.Cut(string(text), name+":")
		n, err := strconv.Atoi(strings.Fields(rest + " none")[0])
		testkit.Must(t, err)
		return n
	}
	peak := kib("VmHWM") - kib("RssFile")
	t.Logf("%d KiB at the peak", peak)
	return peak << 10
}
