package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// target reads what a task sends.
func (d *Decoder) target(o *problem.Object, t *task.Task, h Header, sum *payload) {
	o.Require("targetUrl")
	if o.Has("directory") {
		o.Failf("directory", "it is for a command, and this task sends a request")
	}
	to := o.String("targetUrl", "")
	if strings.HasPrefix(to, "grpc://") || strings.HasPrefix(to, "grpcs://") {
		d.call(o, t, h, sum)
		return
	}
	t.Kind = request.Kind
	r := &request.Request{Method: readMethod(o), MethodGiven: true, URL: to}
	t.Target = r
	if isText(o, "targetUrl") {
		if err := d.checkURL(r.URL); err != nil {
			o.Fail("targetUrl", err)
		}
	}
	r.Header = d.headers(o)
	body, ref, field := d.bodyOf(o)
	switch {
	case ref != "":
		r.Body = []request.Part{{Blob: ref}}
	case field != "":
		r.Body = []request.Part{{Text: body}}
	}
	setContentType(r, field)
	sum.request(r, body, ref)
	r.Network.ConnectTimeout = readLimit(o, "connectTimeoutMs", DefaultConnectTimeout)
	r.Network.MaxRedirects = int(o.Int("followRedirects", 0, 0, maxRedirects))
	repeats := readRepeats(o, t)
	// Only with both does every method carry the key, and count as safe to send twice.
	r.Idempotent, r.Keyed = repeats, repeats
	r.Guarded, r.Sign = true, o.Bool("sign", false)
	if r.Sign && d.NoSecrets {
		o.Failf("sign", "this server has no secret to sign with\nhint: start it with --signing-secret-file FILE")
	}
	if n := t.Policy.Consecutive; n > 1 && !r.Safe() {
		o.Failf("ambiguous", "%d successes in a row send a successful %s again, and that must not be repeated", n, r.Method)
	}
	sum.add("network", fmt.Sprint(r.Network.ConnectTimeout, r.Network.MaxRedirects, repeats, r.Sign))
	r.Header = withTrace(r.Header, h)
}

// readRepeats reads what follows an attempt that may have taken effect: the task says it, or its policy.
func readRepeats(o *problem.Object, t *task.Task) bool {
	if own := readAmbiguous(o); own != task.AmbiguousDefault {
		return own == task.AmbiguousRepeat
	}
	return t.Policy.Ambiguous != task.AmbiguousStop
}

// withTrace adds the caller's trace, unless the task has one of its own.
func withTrace(lines []string, h Header) []string {
	if h.TraceParent == "" || hasHeader(lines, traceParent) {
		return lines
	}
	return append(lines, traceParent+": "+h.TraceParent)
}

const traceParent = "Traceparent"

// readMethod reads the method, which is POST unless it is given.
func readMethod(o *problem.Object) string {
	const most = 32
	method := o.String("method", http.MethodPost)
	usual := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions,
	}
	upper := strings.ToUpper(method)
	switch {
	case slices.Contains(usual, method):
	case slices.Contains(usual, upper):
		o.Failf("method", "methods are told apart by case\nhint: did you mean %q?", upper)
	case upper == http.MethodConnect:
		o.Failf("method", "CONNECT is for proxies")
	case len(method) > most || request.CheckHead(method, nil) != nil:
		o.Failf("method", "invalid method %q", text.Shorten(method, most))
	}
	return method
}

// checkURL refuses a URL that cannot be requested, or that requests must not go to.
func (d *Decoder) checkURL(target string) error {
	if len(target) > maxURL {
		return fmt.Errorf("the URL has %d bytes, more than %d", len(target), maxURL)
	}
	if !strings.Contains(target, "://") {
		return errors.New("the URL has no scheme\nhint: write it as https://example.org/path")
	}
	refs, err := d.references(target)
	if err != nil {
		return err
	}
	u, user, err := request.ReadURL(target, refs)
	if _, ok := errors.AsType[*request.SchemeError](err); ok {
		scheme, _, _ := strings.Cut(target, "://")
		return fmt.Errorf("no task has the scheme %q\nhint: write http, https, grpc or grpcs", text.Shorten(scheme, 20))
	}
	if err != nil {
		return errors.New(refs.Clean(err.Error()))
	}
	if user != "" {
		u.User = url.User("user") // whether there is one is all that matters
	}
	if d.CheckTarget == nil {
		return nil
	}
	return d.CheckTarget(u)
}

// references returns the values of the variables that a text names, if it may name them.
func (d *Decoder) references(of string) (*request.References, error) {
	refs := &request.References{Lookup: d.Lookup}
	if !request.HasReference(of) {
		return refs, nil
	}
	var refused error
	seen := &request.References{Lookup: func(name string) (string, bool) {
		if !slices.Contains(d.EnvAllow, name) && refused == nil {
			refused = fmt.Errorf("the variable %s may not be named\nhint: the server allows those of --env-allow", name)
		}
		return "", true
	}}
	if _, err := seen.Expand(of); err != nil {
		return refs, err
	}
	return refs, refused
}

// headers reads the headers of a request. A value may be a list. It ends where there are more than may be: a hostile
// client sends 100,000.
func (d *Decoder) headers(o *problem.Object) (lines []string) {
	headers, limits := o.Object("headers"), d.limits()
	names := headers.Names()
	count, size := 0, 0
	for _, name := range names {
		if size += len(name); len(names) > limits.Headers || size > limits.HeaderBytes {
			break
		}
		if err := checkHeaderName(name); err != nil {
			headers.Fail(name, err)
			continue
		}
		for i, value := range headers.StringOrList(name, limits.Headers) {
			if count, size = count+1, size+len(value)+min(i, 1)*len(name); count > limits.Headers || size > limits.HeaderBytes {
				break
			}
			line, err := d.headerLine(name, value)
			if err != nil {
				headers.Fail(name, err)
				break
			}
			lines = append(lines, line)
		}
	}
	if max(len(names), count) > limits.Headers {
		o.Failf("headers", "there are more than %d headers", limits.Headers)
	}
	if size > limits.HeaderBytes {
		o.Failf("headers", "the headers have more than %d bytes together", limits.HeaderBytes)
	}
	return lines
}

// checkHeaderName refuses the headers that describe the connection, which smuggle requests, and those that retry sets.
func checkHeaderName(name string) error {
	switch lower := strings.ToLower(name); lower {
	case "host", "content-length", "transfer-encoding":
		return fmt.Errorf("the header %s follows from the URL and the body", name)
	case "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
		"upgrade", "http2-settings", "expect":
		return fmt.Errorf("the header %s is for a connection, and not passed on", name)
	case "idempotency-key":
		return errors.New("the header is made of the task's key\nhint: give the field idempotencyKey")
	case "retry-attempt", "retry-task-id", "webhook-id", "webhook-timestamp", "webhook-signature":
		return fmt.Errorf("the header %s is set by each attempt", name)
	}
	if request.CheckHead(http.MethodGet, http.Header{name: nil}) != nil {
		return fmt.Errorf("invalid header name %q", text.Shorten(name, 40))
	}
	return nil
}

// headerLine spells a header as a request keeps it. The errors do not repeat the value: it may be secret.
func (d *Decoder) headerLine(name, value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }) {
		return "", errors.New("the value holds a control character")
	}
	refs, err := d.references(value)
	if err != nil {
		return "", err
	}
	if _, err := refs.Expand(value); err != nil {
		return "", err
	}
	if strings.TrimSpace(value) == "" {
		return name + ";", nil
	}
	return name + ": " + value, nil
}

// setContentType says what the body is, unless the headers do.
func setContentType(r *request.Request, field string) {
	kind := ""
	switch field {
	case "bodyJson":
		kind = "application/json"
	case "body":
		kind = "text/plain; charset=utf-8"
	case "bodyBase64", "bodyRef":
		kind = "application/octet-stream"
	}
	if kind != "" && !hasHeader(r.Header, "Content-Type") {
		r.Header = append(r.Header, "Content-Type: "+kind)
	}
}

func hasHeader(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return len(line) > len(name) && strings.EqualFold(line[:len(name)], name) &&
			(line[len(name)] == ':' || line[len(name)] == ';')
	})
}
