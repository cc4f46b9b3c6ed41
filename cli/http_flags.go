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
	"github.com/10f93571/retry/runner"
)

// requestFlags say what is asked for, in the words of curl.
type requestFlags struct {
	Request   string   `short:"X" group:"Request" placeholder:"METHOD" help:"The method. Default GET, POST with data, PUT with -T."`
	Header    []string `short:"H" sep:"none" group:"Request" placeholder:"LINE" help:"A header: 'Name: value'; 'Name:' leaves a usual one out; 'Name;' is sent empty. {env:NAME} is read at each send, and never stored."`
	User      *string  `short:"u" group:"Request" placeholder:"USER:PASSWORD" help:"Basic authentication; the password is best a reference: 'me:{env:NAME}'."`
	UserAgent *string  `short:"A" group:"Request" placeholder:"NAME" help:"The User-Agent header."`
	Referer   *string  `short:"e" group:"Request" placeholder:"URL" help:"The Referer header."`
	Head      bool     `short:"I" group:"Request" help:"Ask for the header alone, and show it."`
	Location  bool     `short:"L" group:"Request" help:"Follow redirects."`
	MaxRedirs *count   `name:"max-redirs" group:"Request" placeholder:"N" help:"Follow at most so many. Default 50."`
}

// defaultRedirects is curl's.
const defaultRedirects = 50

func (f *requestFlags) into(r *runner.Request) error {
	if f.User != nil && !strings.Contains(*f.User, ":") && !strings.Contains(*f.User, "{env:") {
		return fmt.Errorf("-u %s has no password, and nobody is asked for it\nhint: -u '%[1]s:{env:NAME}' takes it from a variable at each send; -u '%[1]s:' sends none", *f.User)
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
			r.Network.MaxRedirects = int(*f.MaxRedirs)
		}
	}
	return nil
}

// setDefault adds a header, unless a line of the user's own has it; an empty value leaves the usual one out.
func setDefault(r *runner.Request, name string, value *string) {
	if value == nil || slices.ContainsFunc(r.Header, func(line string) bool { return headerName(line) == name }) {
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
	MaxTime        *duration `short:"m" group:"Network" placeholder:"TIME" help:"The same as --timeout."`
	ConnectTimeout *duration `group:"Network" placeholder:"TIME" help:"For looking up, connecting, the proxy and TLS together."`
	Proxy          *string   `short:"x" group:"Network" placeholder:"URL" help:"Default http_proxy, https_proxy, all_proxy and no_proxy of the environment; empty for none. http, https, socks5, socks5h."`
	NoProxy        *string   `name:"noproxy" group:"Network" placeholder:"HOSTS" help:"Hosts that are asked directly; * for all."`
	UnixSocket     string    `group:"Network" placeholder:"PATH" help:"Connect to this socket instead of the host."`
	Resolve        []string  `group:"Network" sep:"none" placeholder:"HOST:PORT:ADDRESS" help:"Connect to this address for that host and port."`
	Insecure       bool      `short:"k" group:"Network" help:"Believe any certificate."`
	CACert         string    `name:"cacert" group:"Network" placeholder:"FILE" help:"Believe these certificates instead of the system's."`
	Cert           string    `group:"Network" placeholder:"FILE" help:"The client's own certificate, PEM, perhaps with its key."`
	Key            string    `group:"Network" placeholder:"FILE" help:"Its key."`
	Compressed     bool      `group:"Network" help:"Ask for gzip, and unpack it."`
	HTTP11         bool      `name:"http1.1" group:"Network" help:"Do not speak HTTP/2."`
}

func (f *networkFlags) into(r *runner.Request) (err error) {
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
	Output    string `short:"o" group:"Reply" placeholder:"FILE" help:"Write the body to a file, whole or not at all. What a cut download has got is not asked for again."`
	Include   bool   `short:"i" group:"Reply" help:"Show the header, too."`
	Fail      bool   `short:"f" group:"Reply" help:"Do not show the body of an error. It is exit status 22 in any case."`
	Silent    bool   `short:"s" group:"Reply" help:"No progress bar; failures are told all the same, unless -q is given."`
	ShowError bool   `short:"S" hidden:"" help:"For those who type curl -sS."`
	Capture   string `group:"Reply" enum:"none,errors,all" default:"errors" placeholder:"none|errors|all" help:"Of which replies the journal keeps the end: 8 KiB. Default errors."`
}

func (f *replyFlags) into(r *runner.Request) (err error) {
	r.Include, r.HideFail = r.Include || f.Include, f.Fail
	if f.Output != "-" {
		r.Output, err = absolute(f.Output)
	}
	if err == nil && r.Output != "" {
		err = httpexec.CheckOutput(r.Output)
	}
	return err
}

// capture says it in the words of a command, whose stderr tells of errors.
func (f *replyFlags) capture() runner.CaptureMode {
	return map[string]runner.CaptureMode{"errors": runner.CaptureStderr, "all": runner.CaptureBoth}[f.Capture]
}

// safetyFlags say what may be sent twice, and how long a server is waited for.
type safetyFlags struct {
	IdempotencyKey   string   `group:"Safety" placeholder:"KEY|none" help:"A key of your own: it says that the server looks at it. Default a random one, which every method sends that is not idempotent by itself; none sends none."`
	Idempotent       bool     `group:"Safety" help:"Two of these requests do what one does, so a doubtful end is worth another attempt."`
	IdempotencyStyle string   `group:"Safety" enum:"raw,sf" default:"raw" placeholder:"raw|sf" help:"The key as it is, or in quotes as the IETF's draft asks."`
	IdempotencyTTL   duration `name:"idempotency-ttl" group:"Safety" default:"24h" placeholder:"TIME" help:"How long the server remembers a key: a request that carries one is not sent again after that. 0 = for ever. Default 24h."`
	MaxRetryAfter    duration `group:"Safety" default:"1h" placeholder:"TIME" help:"The longest a server may have us wait. Beyond it the task is left PENDING, with exit status 75, for retry resume. 0 = any time. Default 1h."`
}

// idempotencyHeader carries the key.
const idempotencyHeader = "Idempotency-Key"

func (f *safetyFlags) into(r *runner.Request) error {
	key, header := f.IdempotencyKey, headerValue(r.Header, idempotencyHeader)
	if key != "" && header != "" {
		return errors.New("--idempotency-key and -H 'Idempotency-Key: …' say the same thing\nhint: give one of them")
	}
	if err := httpexec.CheckKey(key); err != nil {
		return fmt.Errorf("--idempotency-key: %w", err)
	}
	r.Idempotent = f.Idempotent
	r.Keyed = key != "" && key != noKey || header != ""
	r.KeyTTL, r.MaxRetryAfter = time.Duration(f.IdempotencyTTL), time.Duration(f.MaxRetryAfter)
	switch {
	case key == noKey:
		r.KeyStyle = runner.KeyNone
	case f.IdempotencyStyle == "sf":
		r.KeyStyle = runner.KeySF
	}
	return nil
}

// noKey is the --idempotency-key that sends none.
const noKey = "none"

// ownKey is the key that the flags give, or a header; empty for none, and for one that is a secret.
func (f *safetyFlags) ownKey(r *runner.Request) string {
	key := cmp.Or(f.IdempotencyKey, headerValue(r.Header, idempotencyHeader))
	if key == noKey || strings.Contains(key, "{env:") {
		return ""
	}
	return key
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
