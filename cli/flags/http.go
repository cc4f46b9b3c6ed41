package flags

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// HTTPFlags say which request is sent, in the words of curl.
type HTTPFlags struct {
	RequestFlags
	BodyFlags
	ReplyFlags
	SafetyFlags
	NetworkFlags
}

// Build returns the request for a URL.
func (f *HTTPFlags) Build(url string) (*request.Request, error) {
	r := &request.Request{URL: url, Header: slices.Clone(f.Header), User: OrEmpty(f.User)}
	for _, set := range []func(*request.Request) error{
		f.BodyFlags.set, f.RequestFlags.set, f.NetworkFlags.set, f.ReplyFlags.set, f.SafetyFlags.set,
	} {
		if err := set(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// RequestFlags say what is asked for.
type RequestFlags struct {
	Request   string   `short:"X" group:"Request" placeholder:"METHOD" help:"The method. Default GET, POST with data, PUT with -T."`
	Header    []string `short:"H" sep:"none" group:"Request" placeholder:"LINE" help:"A header: 'Name: value'; 'Name:' leaves a usual one out; 'Name;' is sent empty. {env:NAME} is read at each send, and never stored."`
	User      *string  `short:"u" group:"Request" placeholder:"USER:PASSWORD" help:"Basic authentication; the password is best a reference: 'me:{env:NAME}'."`
	UserAgent *string  `short:"A" group:"Request" placeholder:"NAME" help:"The User-Agent header."`
	Referer   *string  `short:"e" group:"Request" placeholder:"URL" help:"The Referer header."`
	Head      bool     `short:"I" group:"Request" help:"Ask for the header alone, and show it."`
	Location  bool     `short:"L" group:"Request" help:"Follow redirects."`
	MaxRedirs *Count   `name:"max-redirs" group:"Request" placeholder:"N" help:"Follow at most so many. Default 50."`
}

// defaultRedirects is the number that curl has.
const defaultRedirects = 50

func (f *RequestFlags) set(r *request.Request) error {
	if f.User != nil && !strings.Contains(*f.User, ":") && !strings.Contains(*f.User, "{env:") {
		// The message leaves the user out: it may be a secret key.
		return errors.New("-u has no password, and nobody is asked for it" +
			"\nhint: -u 'USER:{env:NAME}' takes it from a variable at each send; -u 'USER:' sends none")
	}
	if f.Head && len(r.Body) > 0 && !r.Get {
		return errors.New("-I asks for a header alone, and data is sent with another method" +
			"\nhint: leave one of them out; -G puts the data into the URL")
	}
	r.MethodGiven = f.Request != ""
	switch {
	case r.MethodGiven:
		r.Method = f.Request
	case f.Head:
		r.Method = "HEAD"
	}
	if f.Head {
		r.Include = true
	}
	setDefault(r, "User-Agent", f.UserAgent)
	setDefault(r, "Referer", f.Referer)
	if f.Location {
		r.Network.MaxRedirects = defaultRedirects
		if f.MaxRedirs != nil {
			r.Network.MaxRedirects = cmp.Or(int(*f.MaxRedirs), -1)
		}
	}
	return nil
}

// setDefault adds a header unless the user gave that header. An empty value leaves out the header.
func setDefault(r *request.Request, name string, value *string) {
	if value == nil || hasHeader(r.Header, name) {
		return
	}
	r.Header = append(r.Header, strings.TrimSuffix(name+": "+*value, " "))
}

// headerName returns the canonical name of the header in a line.
func headerName(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return textproto.CanonicalMIMEHeaderKey(strings.TrimSuffix(strings.TrimSpace(name), ";"))
}

// NetworkFlags say how to connect to the server.
type NetworkFlags struct {
	MaxTime        *Duration `short:"m" group:"Network" placeholder:"TIME" help:"The same as --timeout."`
	ConnectTimeout *Duration `group:"Network" placeholder:"TIME" help:"For looking up, connecting, the proxy and TLS together."`
	Proxy          *string   `short:"x" group:"Network" placeholder:"URL" help:"Default http_proxy, https_proxy, all_proxy and no_proxy of the environment; empty for none. http, https, socks5, socks5h."`
	NoProxy        *string   `name:"noproxy" group:"Network" placeholder:"HOSTS" help:"Hosts that are asked directly; * for all."`
	UnixSocket     string    `group:"Network" placeholder:"PATH" help:"Connect to this socket instead of the host."`
	Resolve        []string  `sep:"none" group:"Network" placeholder:"HOST:PORT:ADDRESS" help:"Connect to this address for that host and port."`
	Insecure       bool      `short:"k" group:"Network" help:"Believe any certificate."`
	CACert         string    `name:"cacert" group:"Network" placeholder:"FILE" help:"Believe these certificates instead of the system's."`
	Cert           string    `group:"Network" placeholder:"FILE" help:"The client's own certificate, PEM, perhaps with its key."`
	Key            string    `group:"Network" placeholder:"FILE" help:"Its key."`
	Compressed     bool      `group:"Network" help:"Ask for gzip, and unpack it."`
	HTTP11         bool      `name:"http1.1" group:"Network" help:"Do not speak HTTP/2."`
}

func (f *NetworkFlags) set(r *request.Request) (err error) {
	n := &r.Network
	n.Proxy, n.NoProxy, n.Resolve = OrEmpty(f.Proxy), f.NoProxy, f.Resolve
	if f.Proxy != nil && *f.Proxy == "" { // as for curl, an empty proxy means none
		all := "*"
		n.NoProxy = &all
	}
	if f.ConnectTimeout != nil {
		n.ConnectTimeout = time.Duration(*f.ConnectTimeout)
	}
	n.Insecure, n.Compressed, n.HTTP1 = f.Insecure, f.Compressed, f.HTTP11
	for _, path := range []struct {
		to   *string
		from string
	}{{&n.UnixSocket, f.UnixSocket}, {&n.CACert, f.CACert}, {&n.Cert, f.Cert}, {&n.Key, f.Key}} {
		if *path.to, err = absolute(path.from); err != nil {
			return err
		}
	}
	return nil
}

// ReplyFlags say what is done with the reply.
type ReplyFlags struct {
	Output    *string `short:"o" group:"Reply" placeholder:"FILE" help:"Write the body to a file, whole or not at all. What a cut download has got is not asked for again."`
	Include   bool    `short:"i" group:"Reply" help:"Show the header, too."`
	Fail      bool    `short:"f" group:"Reply" help:"Do not show the body of an error. It is exit status 22 in any case."`
	Silent    bool    `short:"s" group:"Reply" help:"No progress bar; failures are told all the same, unless -q is given."`
	ShowError bool    `short:"S" hidden:""`
	Capture   string  `enum:"none,errors,all" default:"errors" group:"Reply" placeholder:"none|errors|all" help:"Of which replies the journal keeps the end: 8 KiB. Default errors."`
}

func (f *ReplyFlags) set(r *request.Request) (err error) {
	r.Include, r.HideFail = r.Include || f.Include, f.Fail
	output := OrEmpty(f.Output)
	switch {
	case f.Output != nil && output == "": // probably a variable that is not set, and stdout is not meant
		return errors.New("-o names no file\nhint: leave it out for stdout")
	case output != "-":
		r.Output, err = absolute(output)
	}
	if strings.HasSuffix(output, "/") && r.Output != "/" {
		r.Output += "/" // filepath.Abs drops it; it says that the name is a directory
	}
	if err == nil && r.Output != "" {
		err = httpexec.CheckOutput(r.Output)
	}
	return err
}

// CaptureMode returns the mode of a command that captures the same: replies with an error are kept like stderr.
func (f *ReplyFlags) CaptureMode() task.CaptureMode {
	return map[string]task.CaptureMode{"errors": task.CaptureStderr, "all": task.CaptureBoth}[f.Capture]
}

// SafetyFlags say whether a request may be sent twice, and how long a server may make us wait.
type SafetyFlags struct {
	IdempotencyKey   *string  `group:"Safety" placeholder:"KEY|none" help:"A key of your own: it says that the server looks at it. Default a random one, which every method sends that is not idempotent by itself; none sends none."`
	Idempotent       bool     `group:"Safety" help:"Two of these requests do what one does, so a doubtful end is worth another attempt."`
	IdempotencyStyle string   `enum:"raw,sf" default:"raw" group:"Safety" placeholder:"raw|sf" help:"The key as it is, or in quotes as the IETF's draft asks."`
	IdempotencyTTL   Duration `name:"idempotency-ttl" default:"24h" group:"Safety" placeholder:"TIME" help:"How long the server remembers a key: a request that carries one is not sent again after that. 0 = for ever. Default 24h."`
	MaxRetryAfter    Duration `default:"1h" group:"Safety" placeholder:"TIME" help:"The longest a server may have us wait. Beyond it the task is left PENDING, with exit status 75, for retry resume. 0 = any time. Default 1h."`
}

func (f *SafetyFlags) set(r *request.Request) error {
	if f.IdempotencyKey != nil && *f.IdempotencyKey == "" { // probably a variable that is not set
		return errors.New("--idempotency-key is empty\nhint: leave it out for a random one; none sends none")
	}
	key, header := OrEmpty(f.IdempotencyKey), headerValue(r.Header, request.KeyHeader)
	if key != "" && hasHeader(r.Header, request.KeyHeader) { // a line without a value leaves the header out
		return errors.New("--idempotency-key and -H 'Idempotency-Key: …' say the same thing\nhint: give one of them")
	}
	for place, text := range map[string]string{"--idempotency-key": key, "-H 'Idempotency-Key: …'": header} {
		if err := checkKey(text); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	r.Idempotent = f.Idempotent
	r.Keyed = key != "" && key != noKey || header != ""
	r.KeyTTL, r.MaxRetryAfter = time.Duration(f.IdempotencyTTL), time.Duration(f.MaxRetryAfter)
	switch {
	case key == noKey:
		r.KeyStyle = request.KeyNone
	case f.IdempotencyStyle == "sf":
		r.KeyStyle = request.KeySF
	}
	return nil
}

// noKey is the value of --idempotency-key that sends no key.
const noKey = "none"

// checkKey refuses a key that the server would not recognise: a request that is sent again would take effect twice.
func checkKey(key string) error {
	switch {
	case request.HasReference(key):
		return errors.New("it has to be the same on a resume, so the journal keeps it, and {env:NAME} is not looked up" +
			"\nhint: let the shell do it: --idempotency-key \"$NAME\"")
	case key != "" && strings.TrimSpace(key) == "":
		return errors.New("the idempotency key is blank\nhint: leave it out for a random one")
	case key != noKey && strings.EqualFold(key, noKey):
		return errors.New("the server would take this for a key\nhint: write none to send none")
	}
	return httpexec.CheckKey(key)
}

// OwnKey returns the key that a flag or a header gives; empty for none.
func (f *SafetyFlags) OwnKey(r *request.Request) string {
	key := cmp.Or(OrEmpty(f.IdempotencyKey), headerValue(r.Header, request.KeyHeader))
	if key == noKey {
		return ""
	}
	return key
}

// hasHeader reports whether one of the lines names the header, with a value or without.
func hasHeader(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return headerName(line) == name })
}

// headerValue returns the value of a header in the lines; empty where it has none.
func headerValue(lines []string, name string) string {
	for _, line := range lines {
		if _, v, _ := strings.Cut(line, ":"); headerName(line) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// absolute returns a path that a resume finds from another directory.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// curlHints say what to write in place of the flags of curl that retry http does not have.
var curlHints = []struct{ names, hint string }{
	{"O remote-name J remote-header-name", "-o FILE names the file; none is taken from the URL or the reply"},
	{"output-dir create-dirs", "-o DIR/FILE, where the directory is there already"},
	{"remove-on-error no-clobber", "leave it out: -o changes a file by a whole success alone"},
	{"w write-out", "--report FILE writes the status and the time of each phase as JSON"},
	{"D dump-header", "-i shows the header before the body"},
	{"trace trace-ascii trace-time", "-i shows the reply's header, retry status TASK the time of each phase"},
	{"stderr", "2>FILE"},
	{"fail-with-body fail-early", "leave it out: the exit status is 22 for any error, and its body is shown unless -f is given"},
	{"retry", "--retries N, or -n N for all attempts; without it there are 5 of them"},
	{"retry-delay", "-b constant:TIME"},
	{"retry-max-time", "-B TIME, a budget for everything together"},
	{"retry-connrefused", "leave it out: a refused connection is tried again in any case"},
	{"retry-all-errors", "--idempotent where two requests do what one does, or --retry-on any"},
	{"cookie", "-H 'Cookie: NAME=VALUE'"},
	{"c cookie-jar", "no cookies are kept; -H 'Cookie: NAME=VALUE' sends one"},
	{"oauth2-bearer", "-H 'Authorization: Bearer {env:NAME}'"},
	{"netrc netrc-file netrc-optional", "-u 'USER:{env:NAME}'; no .netrc is read"},
	{"basic", "leave it out: -u is basic authentication"},
	{"digest ntlm negotiate anyauth", "-u is basic authentication; no other is known"},
	{"U proxy-user", "-x 'http://USER:{env:NAME}@HOST:PORT'"},
	{"location-trusted", "give the last URL itself: a redirect to another host gets no secrets"},
	{"N no-buffer", "leave it out: a reply is shown whole or not at all"},
	{"g globoff", "leave it out: nothing in a URL is expanded"},
	{"K", "give the flags here: no config file of curl's is read"},
	{"r range", "-H 'Range: bytes=0-99'"},
	{"C continue-at", "leave it out: a download that was cut goes on where it was"},
	{"z time-cond", "-H 'If-Modified-Since: DATE'"},
	{"# progress-bar no-progress-meter", "leave it out: a long transfer has one line, on a terminal alone; -s for none"},
	{"4 ipv4 6 ipv6 connect-to", "--resolve HOST:PORT:ADDRESS"},
	{"http2 tlsv1.2 tlsv1.3", "leave it out: TLS 1.2 is the least, and HTTP/2 is spoken where the server offers it"},
	{"0 http1.0", "--http1.1"},
	{"socks5 socks5-hostname", "-x socks5h://HOST:PORT"},
	{"form-string", "-F NAME=TEXT, where TEXT begins with neither @ nor <"},
	{"url-query", "-G --data-urlencode NAME=TEXT"},
	{"url", "the URL stands by itself: retry http URL"},
	{"next : Z parallel", "a task is one request; retry http once for each"},
	{"V version", "retry --version"},
}

// CurlHint returns the hint for a flag of curl's, given by its name without dashes; empty for any other word.
func CurlHint(name string) string {
	for _, row := range curlHints {
		if slices.Contains(strings.Fields(row.names), name) {
			return row.hint
		}
	}
	return ""
}
