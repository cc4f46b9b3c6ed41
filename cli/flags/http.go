package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
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
	header, err := f.headers()
	if err != nil {
		return nil, err
	}
	r := &request.Request{URL: url, Header: header, User: OrEmpty(f.User), Digest: f.Digest}
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
	Request       string   `short:"X" group:"Request" placeholder:"METHOD" help:"The method. Default GET, POST with data, PUT with -T."`
	Header        []string `short:"H" sep:"none" group:"Request" placeholder:"LINE" help:"A header: 'Name: value'; 'Name:' leaves a usual one out; 'Name;' is sent empty. {env:NAME} is read at each send, and never stored."`
	Netrc         bool     `group:"Request" help:"Take the user and password from ~/.netrc; it is read at each send."`
	NetrcOptional bool     `group:"Request" help:"The same, and there need not be that file."`
	NetrcFile     string   `group:"Request" placeholder:"FILE" help:"From this file instead."`
	Digest        bool     `group:"Request" help:"Digest authentication: the server asks first, so there may be a second request."`
	User          *string  `short:"u" group:"Request" placeholder:"USER:PASSWORD" help:"Basic authentication; the password is best a reference: 'me:{env:NAME}'."`
	Cookie        []string `sep:"none" group:"Request" placeholder:"NAME=VALUE|FILE" help:"Send these cookies, or those of a file in Netscape's format. Best as a reference: 'sid={env:SID}'."`
	CookieJar     string   `short:"c" group:"Request" placeholder:"FILE" help:"Write the cookies that the server has set to FILE. Redirects and further attempts send them, too."`
	UserAgent     *string  `short:"A" group:"Request" placeholder:"NAME" help:"The User-Agent header."`
	Referer       *string  `short:"e" group:"Request" placeholder:"URL" help:"The Referer header."`
	Head          bool     `short:"I" group:"Request" help:"Ask for the header alone, and show it."`
	Location      bool     `short:"L" group:"Request" help:"Follow redirects."`
	MaxRedirs     *Count   `name:"max-redirs" group:"Request" placeholder:"N" help:"Follow at most so many. Default 50."`
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
	if err := f.setNetrc(r); err != nil {
		return err
	}
	if err := f.setCookies(r); err != nil {
		return err
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

// headers returns the lines of -H. Of a file they have the absolute path, and each send reads it.
func (f *RequestFlags) headers() ([]string, error) {
	lines := slices.Clone(f.Header)
	for i, line := range lines {
		if name, isFile := strings.CutPrefix(line, "@"); isFile {
			path, err := absolute(name)
			if err != nil {
				return nil, err
			}
			lines[i] = "@" + path
		}
	}
	_, fromFiles, err := request.ReadHeaders(lines)
	if err != nil {
		return nil, text.WithHint(err, "write each header as -H 'Name: value', or all of them into a file, one a line")
	}
	if hasHeader(fromFiles, request.KeyHeader) {
		return nil, errors.New("-H @FILE: the file has an Idempotency-Key, and must not change it between two attempts" +
			"\nhint: --idempotency-key KEY")
	}
	return lines, nil
}

func (f *RequestFlags) setNetrc(r *request.Request) (err error) {
	path := f.NetrcFile
	if path == "" && (f.Netrc || f.NetrcOptional) {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("--netrc: %w\nhint: --netrc-file FILE", err)
		}
		path = filepath.Join(home, ".netrc")
	}
	r.NetrcNeeded = path != "" && !f.NetrcOptional
	r.Netrc, err = readable("--netrc-file", path)
	return err
}

// readable returns the absolute path of a file that a flag names and each run reads; one that is missing is no mistake
// yet.
func readable(flag, name string) (path string, err error) {
	if path, err = absolute(name); err != nil || path == "" {
		return path, err
	}
	if _, err := request.ReadAgain(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w\nhint: give it the name of a file that stays there", flag, err)
	}
	return path, nil
}

// setCookies keeps files by name: what they hold is secret, and a resume reads them again.
func (f *RequestFlags) setCookies(r *request.Request) (err error) {
	var pairs []string
	for _, given := range f.Cookie {
		if strings.Contains(given, "=") || request.HasReference(given) {
			pairs = append(pairs, given)
		} else if path, err := readable("--cookie", given); err != nil {
			return err
		} else if path != "" {
			r.CookieFiles = append(r.CookieFiles, path)
		}
	}
	if len(pairs) > 0 {
		joined := strings.Join(pairs, "; ")
		setDefault(r, "Cookie", &joined)
	}
	if f.CookieJar == "-" {
		return errors.New("-c names no file, and stdout is the reply's\nhint: -c FILE")
	}
	r.CookieJar, err = absolute(f.CookieJar)
	return err
}

// setDefault adds a header unless the user gave that header. An empty value leaves out the header.
func setDefault(r *request.Request, name string, value *string) {
	lines, _, _ := request.ReadHeaders(r.Header) // they were read before, without an error
	if value == nil || hasHeader(lines, name) {
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
