package httpexec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// exchange is what --write-out can tell about the last attempt of a task. A number is written without quotes in JSON.
type exchange struct {
	format  string
	header  http.Header
	texts   map[string]string
	numbers map[string]string
}

// exchange notes what the attempt came to, by the names of curl.
func (a *attempt) exchange(t *task.Task, o task.Outcome) *exchange {
	phases, number := o.Reply.Phases, strconv.Itoa
	connected := phases.DNS + phases.Connect
	secure := connected + phases.TLS
	x := &exchange{format: a.request.WriteOut, header: a.reply.header}
	x.texts = map[string]string{
		"content_type": a.reply.header.Get("Content-Type"), "errormsg": o.Message, "filename_effective": a.request.Output,
		"http_version": a.reply.version(), "local_ip": "", "remote_ip": "", "method": a.latest.method,
		"redirect_url": "", "referer": request.Value(a.latest.header, "Referer"), "scheme": "",
		"url": request.MaskURL(a.request.URL), "url_effective": "",
	}
	x.numbers = map[string]string{
		"exitcode": number(o.ExitCode()), "http_code": fmt.Sprintf("%03d", a.reply.status),
		"response_code": fmt.Sprintf("%03d", a.reply.status), "local_port": "0", "remote_port": "0",
		"num_connects": "0", "num_headers": number(a.reply.lines()), "num_redirects": number(a.redirects),
		"num_retries": number(t.AttemptCount - 1), "size_download": "0", "size_upload": "0", "ssl_verify_result": "0",
		"time_namelookup": seconds(phases.DNS), "time_connect": seconds(connected), "time_appconnect": seconds(0),
		"time_pretransfer": seconds(secure), "time_starttransfer": seconds(secure + phases.FirstByte),
		"time_total": seconds(phases.Total),
	}
	if phases.TLS > 0 {
		x.numbers["time_appconnect"] = seconds(secure)
	}
	if a.latest.url != nil {
		x.texts["scheme"] = strings.ToUpper(a.latest.url.Scheme)
		x.texts["url_effective"] = a.refs.Clean(a.latest.url.String())
		to, isRedirect, err := a.latest.redirect(a.reply.status, a.reply.header.Get("Location"), a.methodGiven)
		if isRedirect && err == nil {
			x.texts["redirect_url"] = to.url.String()
		}
	}
	if a.reply.body != nil {
		x.numbers["size_download"] = strconv.FormatInt(a.reply.body.Size()-a.resumed, 10)
	}
	if a.latest.body != nil && a.tracer.sent() {
		x.numbers["size_upload"] = strconv.FormatInt(a.latest.body.size, 10)
	}
	if conn := a.tracer.conn; conn != nil {
		x.numbers["num_connects"] = "1"
		x.texts["local_ip"], x.numbers["local_port"] = splitAddress(conn.LocalAddr())
		x.texts["remote_ip"], x.numbers["remote_port"] = splitAddress(conn.RemoteAddr())
	}
	return x
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

func splitAddress(address net.Addr) (ip, port string) {
	if ip, port, err := net.SplitHostPort(address.String()); err == nil {
		return ip, port
	}
	return "", "0" // a socket of Unix
}

// version returns the version of HTTP of a reply: 1.1 or 2.
func (r *reply) version() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.proto, "HTTP/"), ".0")
}

// lines returns how many lines of header a reply has.
func (r *reply) lines() (n int) {
	for _, values := range r.header {
		n += len(values)
	}
	return n
}

// writeOut writes the format to stdout, or to stderr after %{stderr}. It names variables that it does not know on
// stderr, as curl does.
func (x *exchange) writeOut(to Output) error {
	if x == nil {
		return nil
	}
	var stdout, stderr strings.Builder
	out := &stdout
	for rest := x.format; rest != ""; {
		at := strings.IndexAny(rest, `%\`)
		if at < 0 {
			at = len(rest)
		}
		out.WriteString(rest[:at])
		rest = rest[at:]
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "%{"), "}")
		header, afterHeader, closedHeader := strings.Cut(strings.TrimPrefix(rest, "%header{"), "}")
		switch {
		case rest == "":
		case closed && strings.HasPrefix(rest, "%{stdout}"):
			out, rest = &stdout, after
		case closed && strings.HasPrefix(rest, "%{stderr}"):
			out, rest = &stderr, after
		case closed && strings.HasPrefix(rest, "%{"):
			value, known := x.value(name)
			if !known {
				fmt.Fprintf(&stderr, "retry: unknown --write-out variable: '%s'\n", text.Escape(name))
			}
			out.WriteString(value)
			rest = after
		case closedHeader && strings.HasPrefix(rest, "%header{"):
			out.WriteString(x.header.Get(header))
			rest = afterHeader
		default:
			written, length := escaped(rest)
			out.WriteString(written)
			rest = rest[length:]
		}
	}
	_, err := io.WriteString(to.Stdout, stdout.String())
	_, err2 := io.WriteString(to.Stderr, stderr.String())
	return errors.Join(err, err2)
}

// escaped returns what %% or a backslash stands for, and the length of that. Any other character stands for itself.
func escaped(rest string) (written string, length int) {
	for _, e := range [...][2]string{{"%%", "%"}, {`\n`, "\n"}, {`\r`, "\r"}, {`\t`, "\t"}} {
		if strings.HasPrefix(rest, e[0]) {
			return e[1], len(e[0])
		}
	}
	return rest[:1], 1
}

// value returns what a variable stands for.
func (x *exchange) value(name string) (value string, known bool) {
	switch name {
	case "json":
		return x.json(), true
	case "header_json":
		header := map[string][]string{}
		for name, values := range x.header {
			header[strings.ToLower(name)] = values
		}
		encoded, _ := json.Marshal(header) // of strings: it cannot fail
		return string(encoded), true
	}
	if value, known = x.texts[name]; !known {
		value, known = x.numbers[name]
	}
	return value, known
}

// json returns all variables as an object. An empty text is null, as with curl.
func (x *exchange) json() string {
	all := map[string]any{}
	for name, value := range x.texts {
		all[name] = nil
		if value != "" {
			all[name] = value
		}
	}
	for name, value := range x.numbers {
		all[name] = json.Number(cmp.Or(strings.TrimLeft(value, "0"), "0"))
		if strings.Contains(value, ".") {
			all[name] = json.Number(value)
		}
	}
	encoded, _ := json.Marshal(all) // of texts and numbers: it cannot fail
	return string(encoded)
}
