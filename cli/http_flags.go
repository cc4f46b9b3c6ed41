package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/task"
)

// requestFlags say what is asked for, in the words of curl.
type requestFlags struct {
	Request   string   `short:"X"`
	Header    []string `short:"H" sep:"none"`
	User      *string  `short:"u"`
	UserAgent *string  `short:"A"`
	Referer   *string  `short:"e"`
	Head      bool     `short:"I"`
	Location  bool     `short:"L"`
	MaxRedirs *count   `name:"max-redirs"`
}

// defaultRedirects is curl's.
const defaultRedirects = 50

func (f *requestFlags) into(r *task.Request) error {
	if f.User != nil && !strings.Contains(*f.User, ":") && !strings.Contains(*f.User, "{env:") {
		// not the user, which may be a key
		return errors.New("-u has no password, and nobody is asked for it\nhint: -u 'USER:{env:NAME}' takes it from a variable at each send; -u 'USER:' sends none")
	}
	if f.Head && len(r.Body) > 0 && !r.Get {
		return errors.New("-I asks for a header alone, and data is sent with another method\nhint: leave one of them out; -G puts the data into the URL")
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

// setDefault adds a header, unless a line of the user's own has it; an empty value leaves the usual one out.
func setDefault(r *task.Request, name string, value *string) {
	if value == nil || hasHeader(r.Header, name) {
		return
	}
	r.Header = append(r.Header, strings.TrimSuffix(name+": "+*value, " "))
}

// headerName is the canonical name that a line is about.
func headerName(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return textproto.CanonicalMIMEHeaderKey(strings.TrimSuffix(strings.TrimSpace(name), ";"))
}

// networkFlags say how a request gets to the server.
type networkFlags struct {
	MaxTime        *duration `short:"m"`
	ConnectTimeout *duration
	Proxy          *string `short:"x"`
	NoProxy        *string `name:"noproxy"`
	UnixSocket     string
	Resolve        []string `sep:"none"`
	Insecure       bool     `short:"k"`
	CACert         string   `name:"cacert"`
	Cert           string
	Key            string
	Compressed     bool
	HTTP11         bool `name:"http1.1"`
}

func (f *networkFlags) into(r *task.Request) (err error) {
	n := &r.Network
	n.Proxy, n.NoProxy, n.Resolve = value(f.Proxy), f.NoProxy, f.Resolve
	if f.Proxy != nil && *f.Proxy == "" { // curl's way to say none
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

// replyFlags say what becomes of what comes back.
type replyFlags struct {
	Output    *string `short:"o"`
	Include   bool    `short:"i"`
	Fail      bool    `short:"f"`
	Silent    bool    `short:"s"`
	ShowError bool    `short:"S" hidden:""`
	Capture   string  `enum:"none,errors,all" default:"errors"`
}

func (f *replyFlags) into(r *task.Request) (err error) {
	r.Include, r.HideFail = r.Include || f.Include, f.Fail
	output := value(f.Output)
	switch {
	case f.Output != nil && output == "": // of a variable that is not set: stdout is hardly meant
		return errors.New("-o names no file\nhint: leave it out for stdout")
	case output != "-":
		r.Output, err = absolute(output)
	}
	if strings.HasSuffix(output, "/") && r.Output != "/" {
		r.Output += "/" // Abs leaves it out, and it makes a directory of the name
	}
	if err == nil && r.Output != "" {
		err = httpexec.CheckOutput(r.Output)
	}
	return err
}

// capture says it in the words of a command, whose stderr tells of errors.
func (f *replyFlags) capture() task.CaptureMode {
	return map[string]task.CaptureMode{"errors": task.CaptureStderr, "all": task.CaptureBoth}[f.Capture]
}

// safetyFlags say what may be sent twice, and how long a server is waited for.
type safetyFlags struct {
	IdempotencyKey   *string
	Idempotent       bool
	IdempotencyStyle string   `enum:"raw,sf" default:"raw"`
	IdempotencyTTL   duration `name:"idempotency-ttl" default:"24h"`
	MaxRetryAfter    duration `default:"1h"`
}

func (f *safetyFlags) into(r *task.Request) error {
	if f.IdempotencyKey != nil && *f.IdempotencyKey == "" { // of a variable that is not set: a random one is hardly meant
		return errors.New("--idempotency-key is empty\nhint: leave it out for a random one; none sends none")
	}
	key, header := value(f.IdempotencyKey), headerValue(r.Header, httpexec.KeyHeader)
	if key != "" && hasHeader(r.Header, httpexec.KeyHeader) { // one without a value would leave the key out
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
		r.KeyStyle = task.KeyNone
	case f.IdempotencyStyle == "sf":
		r.KeyStyle = task.KeySF
	}
	return nil
}

// noKey is the --idempotency-key that sends none.
const noKey = "none"

// checkKey refuses what would pass for a key of the user's own, and be none to the server: the request would be sent again.
func checkKey(key string) error {
	switch {
	case task.HasReference(key):
		return errors.New("it has to be the same on a resume, so the journal keeps it, and {env:NAME} is not looked up\nhint: let the shell do it: --idempotency-key \"$NAME\"")
	case key != "" && strings.TrimSpace(key) == "":
		return errors.New("the idempotency key is blank\nhint: leave it out for a random one")
	case key != noKey && strings.EqualFold(key, noKey):
		return errors.New("the server would take this for a key\nhint: write none to send none")
	}
	return httpexec.CheckKey(key)
}

// ownKey is the key that the flags give, or a header; empty for none.
func (f *safetyFlags) ownKey(r *task.Request) string {
	key := cmp.Or(value(f.IdempotencyKey), headerValue(r.Header, httpexec.KeyHeader))
	if key == noKey {
		return ""
	}
	return key
}

// hasHeader reports whether a line is about a header, with a value or without.
func hasHeader(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return headerName(line) == name })
}

// headerValue is what the lines say of a header; empty where they do not, or leave it out.
func headerValue(lines []string, name string) string {
	for _, line := range lines {
		if _, v, _ := strings.Cut(line, ":"); headerName(line) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
