//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// serve FILE starts a raw HTTP server, and puts its address into the variables URL and HOST. Each line of the file is for one connection, the
// last one for all that follow. What was asked is added to the file requests, each under a line "# N".
//
//	503 Retry-After:1 = busy    a reply: its status, headers, and after the = its body
//	"HTTP/1.1 200 OK\r\n…"      bytes as they are; with stall behind them, nothing more
//	close, reset                the end of the connection, once the request is read
//	stall                       no reply
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FILE")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	s := &scripted{log: ts.MkAbs("requests"), lines: strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n"), over: make(chan struct{})}
	ts.Check(os.WriteFile(s.log, nil, 0o600))
	s.running.Go(func() { s.accept(listener) })
	ts.Setenv("URL", "http://"+listener.Addr().String())
	ts.Setenv("HOST", listener.Addr().String())
	ts.Defer(func() {
		_ = listener.Close()
		close(s.over)
		s.running.Wait()
	})
}

// scripted is a server that does what lines say.
type scripted struct {
	log     string // a file
	lines   []string
	running sync.WaitGroup
	over    chan struct{}
	mutex   sync.Mutex
	count   int
}

func (s *scripted) accept(listener net.Listener) {
	for n := 0; ; n++ {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		line := s.lines[min(n, len(s.lines)-1)]
		s.running.Go(func() {
			defer func() { _ = c.Close() }()
			if s.hear(c) {
				s.answer(c.(*net.TCPConn), line)
			}
		})
	}
}

// hear reads one request and writes it down.
func (s *scripted) hear(c net.Conn) bool {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	text, err := httputil.DumpRequest(request, true)
	if err != nil {
		text = []byte(err.Error())
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count++
	file, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	_, err = fmt.Fprintf(file, "# %d\n%s\n", s.count, strings.ReplaceAll(string(text), "\r", ""))
	return err == nil
}

func (s *scripted) answer(c *net.TCPConn, line string) {
	switch {
	case line == "close":
	case line == "reset":
		_ = c.SetLinger(0)
	case line == "stall":
		<-s.over
	case strings.HasPrefix(line, `"`):
		quoted, stalls := strings.CutSuffix(line, " stall")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			text = err.Error()
		}
		_, _ = io.WriteString(c, text)
		if stalls {
			<-s.over
		}
	default:
		_, _ = io.WriteString(c, replyOf(line))
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

// replyOf writes a line out.
func replyOf(line string) string {
	head, body, _ := strings.Cut(line, " = ")
	fields := strings.Fields(head)
	status, _ := strconv.Atoi(fields[0])
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, header := range fields[1:] {
		b.WriteString(strings.Replace(header, ":", ": ", 1) + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	return b.String()
}
