package httpexec

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// plan is what an attempt sends, and how: a task's request with the values of its references.
type plan struct {
	first       wireRequest
	user        string // name:password for the server; empty for none
	methodGiven bool   // the method comes from -X, and redirects do not change it
	network     request.Network
	proxies     Proxies
	resolved    map[string][]string // addresses for a host:port, in the order in which they are tried
	Safety      Safety
	maxDelay    time.Duration // the longest delay of a server that retry waits for; 0 = any
	netrc       request.Netrc
	refs        *request.References
	body        *bodies // nil for none
}

// plan makes the plan of one attempt. It reads variables and files anew, as they may have changed.
func (e *Executor) plan(t *task.Task) (*plan, error) {
	p := &plan{refs: &request.References{Lookup: e.Lookup}}
	r := request.Of(t)
	err := p.guard(r, e.Delivery)
	if err == nil {
		err = p.read(r, e.UserAgent, t.IdempotencyKey)
	}
	if err != nil || len(r.Body) == 0 {
		return p, err
	}
	if p.body, err = e.body(r); err != nil {
		return p, err
	}
	if r.Get {
		return p, p.query(p.body)
	}
	p.first.body = p.body
	return p, nil
}

// read makes all of the plan but the body.
func (p *plan) read(r *request.Request, agent, key string) (err error) {
	lines, fromFiles, err := request.ReadHeaders(r.Header)
	if err != nil {
		return &localError{"read a header", err, exitRead}
	}
	if len(fromFiles) > 0 || len(lines) != len(r.Header) {
		whole := *r
		whole.Header, r = lines, &whole
	}
	p.methodGiven, p.maxDelay = r.MethodGiven, r.MaxServerDelay()
	p.first.method, p.first.upload = r.Method, r.Upload
	if p.first.url, p.user, err = request.ReadURL(r.URL, p.refs); err != nil {
		return err
	}
	if err = p.readUser(r); err != nil {
		return err
	}
	if err = p.readNetwork(&r.Network, r.Guarded); err != nil {
		return err
	}
	if p.first.header, err = request.HeaderOf(r, p.defaultsOf(r, agent, key), p.refs); err != nil {
		return err
	}
	for _, line := range r.Header {
		if name, value, _ := strings.Cut(line, ":"); request.HasReference(value) || slices.Contains(fromFiles, line) {
			p.first.secret = append(p.first.secret, strings.TrimSpace(name))
		}
	}
	for _, line := range fromFiles {
		_, value, _ := strings.Cut(line, ":")
		p.refs.HideAs(request.Masked, strings.TrimSpace(value))
	}
	p.hideTyped(r)
	p.setForm(r)
	p.Safety.Idempotent = r.Safe()
	p.Safety.Keyed = r.Safe() && request.Value(p.first.header, request.KeyHeader) != ""
	return p.settle(r)
}

// readUser finds the user: that of -u, of the URL, or of the file .netrc.
func (p *plan) readUser(r *request.Request) (err error) {
	if r.User != "" {
		if p.user, err = p.refs.Expand(r.User); err != nil {
			return fmt.Errorf("the user: %w", err)
		}
		if !strings.Contains(p.user, ":") {
			p.user += ":"
		}
		return nil
	}
	if p.netrc, err = request.ReadNetrc(r); err != nil {
		return &localError{"read the passwords", err, exitRead}
	}
	if name, password, _ := strings.Cut(p.user, ":"); password == "" {
		p.user = cmp.Or(p.netrc.User(p.first.url.Hostname(), name), p.user)
	}
	return nil
}

// settle handles the headers that change how net/http writes the request.
func (p *plan) settle(r *request.Request) error {
	header := p.first.header
	for _, name := range []string{"Host", "Content-Length"} {
		if request.IsOmitted(r.Header, name) {
			return fmt.Errorf("%w: the header %s cannot be left out", request.ErrHead, name)
		}
	}
	if coding := request.Value(header, "Transfer-Encoding"); coding != "" {
		if !strings.EqualFold(coding, "chunked") {
			return fmt.Errorf("%w: of the values of Transfer-Encoding only chunked is known", request.ErrHead)
		}
		p.first.chunked = true
	}
	request.Remove(header, "Transfer-Encoding")
	if request.Value(header, "Accept-Encoding") != "" {
		p.network.Compressed = false // net/http decompresses only if it has set the header itself
	}
	if request.Value(header, "Upgrade") != "" {
		p.network.HTTP1 = true // HTTP/2 has no upgrades
	}
	return request.CheckHead(p.first.method, header)
}

// Check returns an error if it is known before anything is sent that a request is invalid. Stamp does so for the files
// of its body.
func Check(r *request.Request, lookup func(name string) (value string, ok bool)) error {
	p := &plan{refs: &request.References{Lookup: lookup}}
	err := request.CheckGuarded(r)
	if err == nil {
		err = p.read(r, "", "")
	}
	if err == nil {
		_, err = tlsConfig(&p.network)
	}
	if err == nil && p.network.UnixSocket == "" {
		_, err = p.proxies.For(p.first.url)
	}
	for _, part := range r.Body {
		if err == nil && r.Get && part.File == "" && !part.Encode {
			err = checkQuery(part.Text)
		}
	}
	if err != nil {
		return errors.New(p.refs.Clean(err.Error()))
	}
	return nil
}

// CheckKey returns an error for an idempotency key that cannot be sent.
func CheckKey(key string) error {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return errors.New("the idempotency key holds a character that a header cannot" +
				"\nhint: use letters and digits")
		}
	}
	return nil
}

// LiteralSecrets names the secrets in a request that the journal would store as they are.
func LiteralSecrets(r *request.Request) (names []string) {
	user := "the user's password"
	if strings.HasSuffix(r.User, ":") {
		user = "the user"
	}
	for _, line := range r.Header {
		if request.HasLiteralSecret(line) {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, "the header "+strings.TrimSpace(name))
		}
	}
	for _, place := range []struct{ name, text, masked string }{
		{"the password in the URL", r.URL, request.MaskURL(r.URL)},
		{user, r.User, request.MaskUser(r.User)},
		{"the proxy's password", r.Network.Proxy, request.MaskURL(r.Network.Proxy)},
	} {
		if place.masked != place.text {
			names = append(names, place.name)
		}
	}
	return names
}

// defaultsOf returns the headers that are sent unless the user replaces or removes them.
func (p *plan) defaultsOf(r *request.Request, agent, key string) http.Header {
	header := http.Header{"Accept": {"*/*"}}
	if agent != "" {
		header["User-Agent"] = []string{agent}
	}
	if p.user != "" && !r.Digest {
		header["Authorization"] = []string{basic(p.user)}
	}
	if r.SendsKey() && key != "" {
		header[request.KeyHeader] = []string{request.Styled(key, r.KeyStyle)}
	}
	if len(r.Body) > 0 && !r.Get && r.Boundary == "" {
		header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	}
	return header
}

func basic(user string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(user)) }

// setForm adds the boundary of a form to its media type, which may be the user's own.
func (p *plan) setForm(r *request.Request) {
	if r.Boundary == "" || r.Get || request.IsOmitted(r.Header, "Content-Type") {
		return
	}
	kind := cmp.Or(request.Value(p.first.header, "Content-Type"), "multipart/form-data")
	request.Remove(p.first.header, "Content-Type")
	p.first.header["Content-Type"] = []string{kind + "; boundary=" + r.Boundary}
}

// hideTyped has secrets that were typed, and the headers made of them, masked where a server repeats them.
func (p *plan) hideTyped(r *request.Request) {
	p.refs.HideUser(p.user)
	for _, proxy := range []string{p.proxies.HTTP, p.proxies.HTTPS, p.proxies.All} {
		if user, found := request.UserIn(proxy); found {
			p.refs.HideUser(request.Userinfo(user))
		}
	}
	for _, line := range r.Header {
		name, text, _ := strings.Cut(line, ":")
		if !request.HasLiteralSecret(line) {
			continue
		}
		for _, secret := range request.SecretsIn(name, request.Value(p.first.header, strings.TrimSpace(name)), text) {
			p.refs.HideAs(request.Masked, secret)
		}
	}
}
