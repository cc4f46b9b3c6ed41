//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// httpRow is a row of the table of what is retried: what a server does, what an attempt comes to, and what follows for a GET, for a
// POST, for one with a key of the user's own, and for one that is said to be idempotent. "4 attempts" is how many attempts were made,
// and the task's reason; no more than 4 were allowed. Empty: not tried.
type httpRow struct {
	name, to     string // where to: the server where it begins with a scheme alone
	flags        string
	serve        deed
	exit         int
	class        string // null where it came to a status
	message      string
	wire         int // requests on the wire, for each attempt
	get, post    string
	keyed, idemp string
}

// The beginnings of a reply.
const (
	bodyCut   = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"
	headerCut = "HTTP/1.1 200 OK\r\nContent-Le"
	chunksCut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	goesRound = "HTTP/1.1 307 Round\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
	goesOff   = "HTTP/1.1 307 Off\r\nLocation: ftp://elsewhere/\r\nContent-Length: 0\r\n\r\n"
	slowDown  = "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"
	noWay     = "HTTP/1.1 503 No Way\r\nContent-Length: 0\r\n\r\n"
)

// What follows from an event.
const (
	tries   = "4 attempts"
	twice   = "2 attempts" // of two: where each takes the time of a timeout
	stops   = "1 not eligible"
	doubts  = "1 ambiguous"
	limited = "-n 2 -m 500ms"
)

// TestRows checks what becomes of an attempt without a status: class of error, exit status, message, and how often it is sent. A name that
// cannot be looked up for now needs a server of DNS of our own, and is left to httpexec's tests.
func TestRows(t *testing.T) {
	rows := []httpRow{
		{"no such host", "http://a..b/", "", nil, 6, "dns", "look up the host: no such host: a..b", 0, "3 not eligible", "3 not eligible", "3 not eligible", "3 not eligible"},
		{"no such proxy", "http://h/", "-x http://a..b:1", nil, 5, "dns", "look up the proxy: no such host: a..b", 0, "3 not eligible", "3 not eligible", "3 not eligible", "3 not eligible"},
		{"refused", "http://127.0.0.1:1/", "", nil, 7, "connect", "connect to 127.0.0.1:1: connection refused", 0, tries, tries, tries, tries},
		{"no socket", "http://h/", "--unix-socket none", nil, 7, "connect", "no such file or directory", 0, tries, tries, tries, tries},
		{"proxy refused", "http://h/", "-x 127.0.0.1:1", nil, 7, "connect", "connect to the proxy 127.0.0.1:1: connection refused", 0, tries, tries, tries, tries},
		{"proxy refuses", "https://h/", "-x ADDRESS", replies(noWay), 56, "connect", "the proxy refuses with status 503", 0, tries, tries, tries, tries},
		{"proxy closes", "https://h/", "-x ADDRESS", closes(""), 56, "connect", "connect through the proxy: the connection was closed", 0, tries, tries, tries, tries},
		{"proxy of SOCKS closes", "http://h/", "-x socks5h://ADDRESS", func(c *rawConn) { _, _ = c.reader.ReadByte() }, 97, "connect", "connect through the proxy: ", 0, tries, tries, tries, tries},
		{"handshake cut", "https:", "", hangsUp, 35, "tls", "TLS handshake: the connection was closed", 0, tries, tries, tries, tries},
		{"handshake reset", "https:", "", func(c *rawConn) { c.hello(); c.reset() }, 35, "tls", "TLS handshake: connection reset by peer", 0, tries, tries, tries, tries},
		{"handshake late", "https:", "-n 2 --connect-timeout 500ms", stallsInHandshake, 28, "timeout", "TLS handshake: timed out after 500ms", 0, twice, twice, twice, ""},
		{"proxy late", "https://h/", limited + " -x ADDRESS", replies(""), 28, "timeout", "connect through the proxy: timed out", 0, twice, twice, twice, ""},

		{"untrusted", "tls:", "", replies(""), 60, "tls", "certificate", 0, stops, stops, stops, stops},
		{"another's certificate", "https://other.invalid:PORT/", "--resolve other.invalid:PORT:127.0.0.1 --cacert CA", replies(""), 60, "tls", "other.invalid", 0, stops, stops, stops, stops},
		{"alert", "alert:", "", replies(""), 35, "tls", "TLS handshake: ", 0, stops, stops, stops, stops},
		{"no TLS", "https:", "", func(c *rawConn) { c.hello(); c.say(noWay); c.drain() }, 35, "tls", "the server does not speak TLS", 0, stops, stops, stops, stops},
		{"redirect loop", "http:", "-L --max-redirs 2", replies(goesRound), 47, "redirects", "2 redirects were followed, and there is another", 3, stops, stops, stops, stops},
		{"a redirect where none may be", "http:", "-L --max-redirs 0", replies(goesRound), 47, "redirects", "0 redirects were followed, and there is another", 1, stops, stops, stops, stops},
		{"redirect to another scheme", "http:", "-L", replies(goesOff), 1, "redirects", "ftp", 1, stops, stops, stops, stops},

		{"closed", "http:", "", closes(""), 52, "reset", "wait for the reply: the connection was closed", 1, tries, doubts, tries, tries},
		{"closed behind TLS", "tls:", "--cacert CA", closes(""), 52, "reset", "wait for the reply: the connection was closed", 1, tries, doubts, tries, tries},
		{"reset", "http:", "", resets, 56, "reset", "wait for the reply: connection reset by peer", 1, tries, doubts, tries, tries},
		{"no reply in time", "http:", limited, replies(""), 28, "timeout", "wait for the reply: timed out after 500ms", 1, twice, doubts, twice, ""},
		{"header cut", "http:", "", closes(headerCut), 56, "reset", "read the reply's header: the connection was closed", 1, tries, doubts, tries, tries},
		{"header late", "http:", limited, replies(headerCut), 28, "timeout", "read the reply's header: timed out", 1, twice, doubts, twice, ""},
		{"body cut", "http:", "", closes(bodyCut), 18, "truncated", "read the reply: the connection was closed", 1, tries, doubts, tries, tries},
		{"chunks cut", "http:", "", closes(chunksCut), 18, "truncated", "read the reply: the connection was closed", 1, tries, doubts, tries, tries},
		{"body late", "http:", limited, replies(bodyCut), 28, "timeout", "read the reply: timed out", 1, twice, doubts, twice, ""},
		{"not HTTP", "http:", "", replies("SSH-2.0-OpenSSH_9.2\r\n"), 8, "protocol", "the reply is not HTTP", 1, "2 not eligible", doubts, "2 not eligible", "2 not eligible"},
		{"no status", "http:", "", replies("HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"), 8, "protocol", "read the reply's header: the reply is not HTTP", 1, "2 not eligible", doubts, "2 not eligible", "2 not eligible"},
		{"not a header", "http:", "", replies("HTTP/1.1 200 OK\r\nno header\r\n\r\n"), 8, "protocol", "the reply is not HTTP", 1, "2 not eligible", doubts, "2 not eligible", "2 not eligible"},

		{"REFUSED_STREAM", "h2:", "-k", http2(3, 1, 0, 0, 0, 7), 92, "reset", "the server refused the request unseen", 1, tries, tries, tries, tries},
		{"stream reset", "h2:", "-k", http2(3, 1, 0, 0, 0, 2), 92, "reset", "HTTP/2 stream reset with code 2", 1, tries, doubts, tries, tries},
		{"GOAWAY", "h2:", "-k", http2(7, 0, 0, 0, 0, 0, 0, 0, 0, 0), 16, "reset", "GOAWAY", 1, tries, doubts, tries, tries},

		{"answered elsewhere, then closed", "http:", "-L", redirects("303", ""), 52, "reset", "closed", 2, tries, doubts, tries, tries},
		{"sent on, then closed", "http:", "-L", redirects("307", ""), 52, "reset", "closed", 2, tries, doubts, tries, tries},
		{"answered elsewhere, then 429", "http:", "-L", redirects("303", slowDown), 22, "", ": 429", 2, tries, doubts, tries, tries},
		{"sent on, then 429", "http:", "-L", redirects("307", slowDown), 22, "", ": 429", 2, tries, tries, tries, tries},

		{"success", "http:", "", replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 0, "", "", 1, "1", "1", "1", "1"},
		{"a redirect that is not followed", "http:", "", replies(goesRound), 0, "", "", 1, "1", "1", "1", "1"},
	}
	b := newRowsBench(t)
	for _, row := range rows {
		b.run(t, row)
	}
}

// TestRowsOfStatuses checks each status of the table, with and without what its headers may say.
func TestRowsOfStatuses(t *testing.T) {
	const (
		three    = "3 not eligible"
		asked    = "Retry-After: 0"
		nothing  = "X-RateLimit-Remaining: 0"
		none     = `RateLimit: "default";r=0`
		replayed = "Idempotent-Replayed: true"
	)
	rows := []struct {
		statuses, header string
		get, post        string
		keyed, idemp     string
	}{
		{"408 421 425 429 529", "", tries, tries, tries, tries},
		{"503", "", tries, doubts, tries, tries},
		{"503", asked, tries, tries, tries, tries},
		{"503", "Retry-After-Ms: 0", tries, tries, tries, tries},
		{"503", "Retry-After: soon", tries, doubts, tries, tries},
		{"503", nothing, tries, doubts, tries, tries},
		{"500 502 504 520 521 522 523 524 527 530", "", tries, doubts, tries, tries},
		{"500 502 504 520 524 527 530", replayed, stops, doubts, stops, stops},
		{"500", "Idempotent-Replayed: false", tries, doubts, tries, tries},
		{"500", asked, tries, doubts, tries, tries},
		{"525", "", three, three, three, three},
		{"403 413", "", stops, stops, stops, stops},
		{"403 413", asked, tries, tries, tries, tries},
		{"403 413", nothing, tries, tries, tries, tries},
		{"403 413", none, tries, tries, tries, tries},
		{"403", "X-RateLimit-Remaining: 1", stops, stops, stops, stops},
		{"409", "", stops, stops, tries, tries}, // what is said to be idempotent carries the key that was made for it
		{"400 401 402 404 405 406 407 410 411 412 414 415 416 417 422 423 424 426 428 431 451", "", stops, stops, stops, stops},
		{"404", asked, stops, stops, stops, stops},
		{"501 505 506 507 508 510 511 526", "", stops, stops, stops, stops},
		{"501", asked, stops, stops, stops, stops},
		{"429 500 503", "X-Should-Retry: false", stops, stops, stops, stops},
		{"400 409 500", "X-Should-Retry: true", tries, tries, tries, tries},
		{"429", "Stripe-Should-Retry: false", stops, stops, stops, stops},
		{"409", "Stripe-Should-Retry: true", tries, tries, tries, tries},
	}
	b := newRowsBench(t)
	for _, row := range rows {
		for status := range strings.FieldsSeq(row.statuses) {
			reply := fmt.Sprintf("HTTP/1.1 %s Some Words\r\n%s\r\nContent-Length: 0\r\n\r\n", status, strings.TrimSpace(row.header))
			if row.header == "" {
				reply = strings.Replace(reply, "\r\n\r\n", "\r\n", 1)
			}
			b.run(t, httpRow{name: strings.TrimSpace(status + " " + row.header), to: "http:", serve: replies(reply), exit: 22, message: ": " + status,
				wire: 1, get: row.get, post: row.post, keyed: row.keyed, idemp: row.idemp})
		}
	}
}

// TestRowsOfMethods checks which methods are safe to repeat by themselves.
func TestRowsOfMethods(t *testing.T) {
	b := newRowsBench(t)
	for methods, want := range map[string]string{"GET HEAD OPTIONS TRACE PUT DELETE": tries, "POST PATCH PURGE get": doubts} {
		for method := range strings.FieldsSeq(methods) {
			t.Run(method, func(t *testing.T) {
				t.Parallel()
				b.column(t, httpRow{to: "http:", serve: closes(""), exit: 52, class: "reset", message: "closed", wire: 1}, "-X "+method, want)
			})
		}
	}
}
