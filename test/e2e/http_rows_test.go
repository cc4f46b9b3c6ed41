//go:build unix

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// httpRow is a row of the table of what is retried.
type httpRow struct {
	name    string
	to      string // the URL; where it is a scheme alone, the server's
	flags   string
	serve   handler // what the server does; nil: there is no server
	exit    int
	class   string // class of error; empty where the server answered with a status
	message string // a part of stderr
	wire    int    // requests on the wire, for each attempt
	want    results
}

// results are what follows from an event for each kind of request: the number of attempts, and the task's reason. Most
// rows allow 4 attempts.
type results struct {
	get        string
	post       string
	keyed      string // a POST with an idempotency key of the user's own
	idempotent string // a POST that --idempotent says is safe to repeat
}

func always(result string) results { return results{result, result, result, result} }

// unlessUnsafe is the result of requests that are safe to repeat; for a POST the event is ambiguous.
func unlessUnsafe(result string) results { return results{result, ambiguous, result, result} }

// The beginnings of a reply.
const (
	bodyCut        = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"
	headerCut      = "HTTP/1.1 200 OK\r\nContent-Le"
	chunksCut      = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	redirectLoop   = "HTTP/1.1 307 Round\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
	redirectScheme = "HTTP/1.1 307 Off\r\nLocation: ftp://elsewhere/\r\nContent-Length: 0\r\n\r\n"
	tooMany        = "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"
	unavailable    = "HTTP/1.1 503 No Way\r\nContent-Length: 0\r\n\r\n"
)

// What follows from an event.
const (
	allAttempts  = "4 attempts"
	bothAttempts = "2 attempts" // with slowFlags, as each attempt takes the time of a timeout
	notEligible  = "1 not eligible"
	ambiguous    = "1 ambiguous"
	slowFlags    = "-n 2 -m 500ms"
)

// TestRows checks what follows from an attempt without a status: class of error, exit status, message, and how often it
// is sent. A temporary DNS failure needs a DNS server of our own, and is left to httpexec's tests.
func TestRows(t *testing.T) {
	rows := []httpRow{
		{
			name: "no such host", to: "http://a..b/",
			exit: 6, class: "dns", message: "look up the host: no such host: a..b", want: always("3 not eligible"),
		},
		{
			name: "no such proxy", to: "http://h/", flags: "-x http://a..b:1",
			exit: 5, class: "dns", message: "look up the proxy: no such host: a..b", want: always("3 not eligible"),
		},
		{
			name: "refused", to: "http://127.0.0.1:1/",
			exit: 7, class: "connect", message: "connect to 127.0.0.1:1: connection refused", want: always(allAttempts),
		},
		{
			name: "no socket", to: "http://h/", flags: "--unix-socket none",
			exit: 7, class: "connect", message: "no such file or directory", want: always(allAttempts),
		},
		{
			name: "proxy refused", to: "http://h/", flags: "-x 127.0.0.1:1",
			exit: 7, class: "connect", message: "connect to the proxy 127.0.0.1:1: connection refused",
			want: always(allAttempts),
		},
		{
			name: "proxy refuses", to: "https://h/", flags: "-x ADDRESS", serve: replies(unavailable),
			exit: 56, class: "connect", message: "the proxy refuses with status 503", want: always(allAttempts),
		},
		{
			name: "proxy closes", to: "https://h/", flags: "-x ADDRESS", serve: closes(""),
			exit: 56, class: "connect", message: "connect through the proxy: the connection was closed",
			want: always(allAttempts),
		},
		{
			name: "proxy of SOCKS closes", to: "http://h/", flags: "-x socks5h://ADDRESS",
			serve: func(c *rawConn) { _, _ = c.reader.ReadByte() },
			exit:  97, class: "connect", message: "connect through the proxy: ", want: always(allAttempts),
		},
		{
			name: "handshake cut", to: "https:", serve: closesAfterHello,
			exit: 35, class: "tls", message: "TLS handshake: the connection was closed", want: always(allAttempts),
		},
		{
			name: "handshake reset", to: "https:", serve: func(c *rawConn) { c.readHello(); c.reset() },
			exit: 35, class: "tls", message: "TLS handshake: connection reset by peer", want: always(allAttempts),
		},
		{
			name: "handshake late", to: "https:", flags: "-n 2 --connect-timeout 500ms", serve: stallsInHandshake,
			exit: 28, class: "timeout", message: "TLS handshake: timed out after 500ms", want: always(bothAttempts),
		},
		{
			name: "proxy late", to: "https://h/", flags: slowFlags + " -x ADDRESS", serve: replies(""),
			exit: 28, class: "timeout", message: "connect through the proxy: timed out", want: always(bothAttempts),
		},

		{
			name: "untrusted", to: "tls:", serve: replies(""),
			exit: 60, class: "tls", message: "certificate", want: always(notEligible),
		},
		{
			name: "another's certificate", to: "https://other.invalid:PORT/",
			flags: "--resolve other.invalid:PORT:127.0.0.1 --cacert CA",
			serve: replies(""),
			exit:  60, class: "tls", message: "other.invalid", want: always(notEligible),
		},
		{
			name: "alert", to: "alert:", serve: replies(""),
			exit: 35, class: "tls", message: "TLS handshake: ", want: always(notEligible),
		},
		{
			name: "no TLS", to: "https:", serve: func(c *rawConn) { c.readHello(); c.send(unavailable); c.drain() },
			exit: 35, class: "tls", message: "the server does not speak TLS", want: always(notEligible),
		},
		{
			name: "redirect loop", to: "http:", flags: "-L --max-redirs 2", serve: replies(redirectLoop),
			exit: 47, class: "redirects", message: "2 redirects were followed, and there is another", wire: 3,
			want: always(notEligible),
		},
		{
			name: "a redirect where none may be", to: "http:", flags: "-L --max-redirs 0", serve: replies(redirectLoop),
			exit: 47, class: "redirects", message: "0 redirects were followed, and there is another", wire: 1,
			want: always(notEligible),
		},
		{
			name: "redirect to another scheme", to: "http:", flags: "-L", serve: replies(redirectScheme),
			exit: 1, class: "redirects", message: "ftp", wire: 1, want: always(notEligible),
		},

		{
			name: "closed", to: "http:", serve: closes(""),
			exit: 52, class: "reset", message: "wait for the reply: the connection was closed", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "closed behind TLS", to: "tls:", flags: "--cacert CA", serve: closes(""),
			exit: 52, class: "reset", message: "wait for the reply: the connection was closed", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "reset", to: "http:", serve: resets,
			exit: 56, class: "reset", message: "wait for the reply: connection reset by peer", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "no reply in time", to: "http:", flags: slowFlags, serve: replies(""),
			exit: 28, class: "timeout", message: "wait for the reply: timed out after 500ms", wire: 1,
			want: unlessUnsafe(bothAttempts),
		},
		{
			name: "header cut", to: "http:", serve: closes(headerCut),
			exit: 56, class: "reset", message: "read the reply's header: the connection was closed", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "header late", to: "http:", flags: slowFlags, serve: replies(headerCut),
			exit: 28, class: "timeout", message: "read the reply's header: timed out", wire: 1,
			want: unlessUnsafe(bothAttempts),
		},
		{
			name: "body cut", to: "http:", serve: closes(bodyCut),
			exit: 18, class: "truncated", message: "read the reply: the connection was closed", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "chunks cut", to: "http:", serve: closes(chunksCut),
			exit: 18, class: "truncated", message: "read the reply: the connection was closed", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "body late", to: "http:", flags: slowFlags, serve: replies(bodyCut),
			exit: 28, class: "timeout", message: "read the reply: timed out", wire: 1, want: unlessUnsafe(bothAttempts),
		},
		{
			name: "not HTTP", to: "http:", serve: replies("SSH-2.0-OpenSSH_9.2\r\n"),
			exit: 8, class: "protocol", message: "the reply is not HTTP", wire: 1, want: unlessUnsafe("2 not eligible"),
		},
		{
			name: "no status", to: "http:", serve: replies("HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
			exit: 8, class: "protocol", message: "read the reply's header: the reply is not HTTP", wire: 1,
			want: unlessUnsafe("2 not eligible"),
		},
		{
			name: "not a header", to: "http:", serve: replies("HTTP/1.1 200 OK\r\nno header\r\n\r\n"),
			exit: 8, class: "protocol", message: "the reply is not HTTP", wire: 1, want: unlessUnsafe("2 not eligible"),
		},

		{
			name: "REFUSED_STREAM", to: "h2:", flags: "-k", serve: http2(3, 1, 0, 0, 0, 7),
			exit: 92, class: "reset", message: "the server refused the request (REFUSED_STREAM)", wire: 1,
			want: always(allAttempts),
		},
		{
			name: "stream reset", to: "h2:", flags: "-k", serve: http2(3, 1, 0, 0, 0, 2),
			exit: 92, class: "reset", message: "HTTP/2 stream reset with code 2", wire: 1,
			want: unlessUnsafe(allAttempts),
		},
		{
			name: "GOAWAY", to: "h2:", flags: "-k", serve: http2(7, 0, 0, 0, 0, 0, 0, 0, 0, 0),
			exit: 16, class: "reset", message: "GOAWAY", wire: 1, want: unlessUnsafe(allAttempts),
		},

		{
			name: "answered elsewhere, then closed", to: "http:", flags: "-L", serve: redirects("303", ""),
			exit: 52, class: "reset", message: "closed", wire: 2, want: unlessUnsafe(allAttempts),
		},
		{
			name: "sent on, then closed", to: "http:", flags: "-L", serve: redirects("307", ""),
			exit: 52, class: "reset", message: "closed", wire: 2, want: unlessUnsafe(allAttempts),
		},
		{
			name: "answered elsewhere, then 429", to: "http:", flags: "-L", serve: redirects("303", tooMany),
			exit: 22, message: ": 429", wire: 2, want: unlessUnsafe(allAttempts),
		},
		{
			name: "sent on, then 429", to: "http:", flags: "-L", serve: redirects("307", tooMany),
			exit: 22, message: ": 429", wire: 2, want: always(allAttempts),
		},

		{
			name: "success", to: "http:", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
			wire: 1, want: always("1"),
		},
		{
			name: "a redirect that is not followed", to: "http:", serve: replies(redirectLoop),
			wire: 1, want: always("1"),
		},
	}
	b := newRowTester(t)
	for _, row := range rows {
		b.run(t, row)
	}
}

// TestRowsOfStatuses checks each status of the table, with and without the headers that matter for it.
func TestRowsOfStatuses(t *testing.T) {
	const (
		retryAfter  = "Retry-After: 0"
		noneLeft    = "X-RateLimit-Remaining: 0"
		noneLeftNew = `RateLimit: "default";r=0`
		replayed    = "Idempotent-Replayed: true"
	)
	rows := []struct {
		statuses, header string
		want             results
	}{
		{statuses: "408 421 425 429 529", want: always(allAttempts)},
		{statuses: "503", want: unlessUnsafe(allAttempts)},
		{statuses: "503", header: retryAfter, want: always(allAttempts)},
		{statuses: "503", header: "Retry-After-Ms: 0", want: always(allAttempts)},
		{statuses: "503", header: "Retry-After: soon", want: unlessUnsafe(allAttempts)},
		{statuses: "503", header: noneLeft, want: unlessUnsafe(allAttempts)},
		{statuses: "500 502 504 520 521 522 523 524 527 530", want: unlessUnsafe(allAttempts)},
		{statuses: "500 502 504 520 524 527 530", header: replayed, want: unlessUnsafe(notEligible)},
		{statuses: "500", header: "Idempotent-Replayed: false", want: unlessUnsafe(allAttempts)},
		{statuses: "500", header: retryAfter, want: unlessUnsafe(allAttempts)},
		{statuses: "525", want: always("3 not eligible")},
		{statuses: "403 413", want: always(notEligible)},
		{statuses: "403 413", header: retryAfter, want: always(allAttempts)},
		{statuses: "403 413", header: noneLeft, want: always(allAttempts)},
		{statuses: "403 413", header: noneLeftNew, want: always(allAttempts)},
		{statuses: "403", header: "X-RateLimit-Remaining: 1", want: always(notEligible)},
		{
			statuses: "409",
			want:     results{get: notEligible, post: notEligible, keyed: allAttempts, idempotent: allAttempts},
		},
		{
			statuses: "400 401 402 404 405 406 407 410 411 412 414 415 416 417 422 423 424 426 428 431 451",
			want:     always(notEligible),
		},
		{statuses: "404", header: retryAfter, want: always(notEligible)},
		{statuses: "501 505 506 507 508 510 511 526", want: always(notEligible)},
		{statuses: "501", header: retryAfter, want: always(notEligible)},
		{statuses: "429 500 503", header: "X-Should-Retry: false", want: always(notEligible)},
		{statuses: "400 409 500", header: "X-Should-Retry: true", want: always(allAttempts)},
		{statuses: "429", header: "Stripe-Should-Retry: false", want: always(notEligible)},
		{statuses: "409", header: "Stripe-Should-Retry: true", want: always(allAttempts)},
	}
	b := newRowTester(t)
	for _, row := range rows {
		for status := range strings.FieldsSeq(row.statuses) {
			reply := fmt.Sprintf("HTTP/1.1 %s Some Words\r\n%s\r\nContent-Length: 0\r\n\r\n", status,
				strings.TrimSpace(row.header))
			if row.header == "" {
				reply = strings.Replace(reply, "\r\n\r\n", "\r\n", 1)
			}
			b.run(t, httpRow{
				name: strings.TrimSpace(status + " " + row.header), to: "http:", serve: replies(reply),
				exit: 22, message: ": " + status, wire: 1, want: row.want,
			})
		}
	}
}

// TestRowsOfMethods checks which methods are safe to repeat by themselves.
func TestRowsOfMethods(t *testing.T) {
	b := newRowTester(t)
	for methods, want := range map[string]string{"GET HEAD OPTIONS TRACE PUT DELETE": allAttempts,
		"POST PATCH PURGE get": ambiguous} {
		for method := range strings.FieldsSeq(methods) {
			t.Run(method, func(t *testing.T) {
				t.Parallel()
				row := httpRow{to: "http:", serve: closes(""), exit: 52, class: "reset", message: "closed", wire: 1}
				b.request(t, row, "-X "+method, want)
			})
		}
	}
}

// rowTester runs the program for rows of the table.
type rowTester struct {
	*sandbox
	config *tls.Config
	ca     string
}

func newRowTester(t *testing.T) *rowTester {
	testkit.Slow(t, "it runs the program for every row of the retry tables")
	b := &rowTester{sandbox: newSandbox(t)}
	b.config, b.ca = rawTLS(t)
	return b
}

func (b *rowTester) run(t *testing.T, row httpRow) {
	for flags, want := range map[string]string{
		"":                           row.want.get,
		"-d a=b":                     row.want.post,
		"-d a=b --idempotency-key k": row.want.keyed,
		"-d a=b --idempotent":        row.want.idempotent,
	} {
		t.Run(row.name+"/"+flags, func(t *testing.T) {
			t.Parallel()
			b.request(t, row, flags, want)
		})
	}
}

// request runs one request, with a journal of its own.
func (b *rowTester) request(t *testing.T, row httpRow, flags, want string) {
	s := startRawServer(t, b.tlsConfig(row.to), row.serve)
	if row.serve == nil {
		s.stop()
	}
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	cmd := b.command(strings.Fields("http -n 4 -b constant:0 --report " + report + " " + b.expand(s,
		row.flags+" "+flags+" "+target(row.to)))...)
	cmd.Env = append(cmd.Env, "RETRY_STATE_DIR="+filepath.Join(dir, "state"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	exit := 0
	if failed := (*exec.ExitError)(nil); errors.As(cmd.Run(), &failed) {
		exit = failed.ExitCode()
	}
	s.stop()
	tk := readReport(t, report, &stderr)
	tk.compare(t, row, want)
	if exit != row.exit || stdout.Len() > 0 || !strings.Contains(stderr.String(), row.message) {
		t.Errorf("got exit %d, stdout %q and stderr\n%s\nwant exit %d, no stdout and %q on stderr",
			exit, &stdout, &stderr, row.exit, row.message)
	}
	if got, want := int(s.requests.Load()), row.wire*tk.Count; got != want {
		t.Errorf("got %d requests on the wire, want %d", got, want)
	}
}

// tlsConfig returns the configuration of a server for a kind of URL; nil where it speaks no TLS.
func (b *rowTester) tlsConfig(to string) *tls.Config {
	switch to {
	case "tls:", "https://other.invalid:PORT/":
		return b.config
	case "h2:":
		config := b.config.Clone()
		config.NextProtos = []string{"h2"}
		return config
	case "alert:":
		return refusing()
	}
	return nil
}

// target returns a URL, with ADDRESS in place of the server's.
func target(to string) string {
	switch to {
	case "http:":
		return "http://ADDRESS/"
	case "https:", "tls:", "h2:", "alert:":
		return "https://ADDRESS/"
	}
	return to
}

// expand puts addresses and files into a command line.
func (b *rowTester) expand(s *rawServer, line string) string {
	return strings.NewReplacer("ADDRESS", s.address, "PORT", s.address[strings.LastIndex(s.address, ":")+1:], "CA",
		b.ca).Replace(line)
}

// reportJSON is the part of a report that the tests look at.
type reportJSON struct {
	Status, Reason string
	Count          int `json:"attempt_count"`
	Attempts       []struct {
		Exit    int
		Error   string
		Written int `json:"requests_written"`
	}
}

func readReport(t *testing.T, path string, stderr *bytes.Buffer) (tk reportJSON) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &tk)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return tk
}

// compare fails the test unless the task and each attempt ended as the row says.
func (tk reportJSON) compare(t *testing.T, row httpRow, want string) {
	t.Helper()
	status := map[string]string{"": "SUCCEEDED", "attempts": "EXHAUSTED"}[tk.Reason]
	if status == "" {
		status = "FAILED"
	}
	if got := strings.TrimSpace(fmt.Sprint(tk.Count, " ", tk.Reason)); got != want || tk.Status != status {
		t.Errorf("got %s, %s; want %s, %s", got, tk.Status, want, status)
	}
	for i, a := range tk.Attempts {
		if a.Exit != row.exit || a.Error != row.class || a.Written != row.wire {
			t.Errorf("attempt %d: got %q, exit %d, %d requests written; want %q, %d, %d",
				i+1, a.Error, a.Exit, a.Written, row.class, row.exit, row.wire)
		}
	}
}
