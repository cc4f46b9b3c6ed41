// Package grpcexec executes the attempts of a unary call of gRPC: one POST over HTTP/2, and before the first one those
// that ask the server's reflection for the types of JSON.
package grpcexec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Kind is the kind of a task that makes a call.
const Kind = task.KindGRPC

func init() { task.RegisterTarget(Kind, decode) }

// decode reads what a journal holds of a call.
func decode(stored []byte) (task.Target, error) {
	c := new(Call)
	if err := json.Unmarshal(stored, c); err != nil {
		return nil, err
	}
	if _, err := parseURL(c.URL); err != nil {
		return nil, err
	}
	return c, nil
}

// Of returns the call that a task makes; nil for a task of another kind.
func Of(t *task.Task) *Call {
	c, _ := t.Target.(*Call)
	return c
}

// Call is what a task sends. It names files and variables, which are read at each attempt.
type Call struct {
	URL      string   `json:"url"`                // grpc://host:port/package.Service/Method, or grpcs:// with TLS
	Metadata []string `json:"metadata,omitempty"` // "name: value"; {env:NAME} in a value is read at each attempt
	JSON     string   `json:"json,omitempty"`     // the request, for the types of the server's reflection
	Message  []byte   `json:"message,omitempty"`  // the encoded request
	Raw      bool     `json:"raw,omitempty"`      // Message is sent instead of JSON, and the reply is shown as it is
	Unread   bool     `json:"-"`                  // what is sent is not read yet: SameWork leaves it out

	Idempotent bool             `json:"idempotent,omitempty"` // the user says that two calls have the effect of one
	Keyed      bool             `json:"keyed,omitempty"`      // the idempotency key is the user's own
	KeyStyle   request.KeyStyle `json:"key_style,omitempty"`
	KeyTTL     time.Duration    `json:"key_ttl,omitempty"` // how long the server remembers the key; 0 = for ever

	Guarded bool `json:"guarded,omitempty"` // it came through the API: Pool.Control judges where it goes

	Network       Network       `json:"network,omitzero"`
	MaxRetryAfter time.Duration `json:"max_retry_after,omitempty"` // of a server that retry waits for; 0 = any
}

// Network is how a call gets to the server.
type Network struct {
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"` // for DNS, connection and TLS; 0 = none
	UnixSocket     string        `json:"unix_socket,omitempty"`
	Insecure       bool          `json:"insecure,omitempty"`
	CACert         string        `json:"ca_cert,omitempty"` // absolute paths, all three
	Cert           string        `json:"cert,omitempty"`
	Key            string        `json:"key,omitempty"`
}

// MaxMessage is the largest request, and the largest reply unless the Executor says otherwise: as for other clients.
const MaxMessage = 4 << 20

// New makes the call of a URL grpc://host:port/package.Service/Method. Where message is not nil it is sent as it is, else
// body, which is JSON; an empty one is an empty message. The errors say what is wrong with which of them.
func New(targetURL string, body, message []byte, metadata []string) (*Call, error) {
	at, err := parseURL(targetURL)
	if err != nil {
		return nil, err
	}
	c := &Call{URL: at.String(), Metadata: metadata, JSON: string(body), Message: message, Raw: message != nil}
	switch {
	case c.Raw && len(body) > 0:
		return nil, errors.New("the request is there twice, as JSON and as an encoded message\nhint: give one of them")
	case len(body) > 0 && !json.Valid(body):
		var detail *json.SyntaxError
		if errors.As(json.Unmarshal(body, new(any)), &detail) {
			return nil, fmt.Errorf("invalid JSON at byte %d: %w", detail.Offset, detail)
		}
		return nil, errors.New("invalid JSON")
	case max(len(body), len(message)) > MaxMessage:
		return nil, errors.New("the request is too large: servers take up to " + text.Size(MaxMessage))
	}
	_, err = c.metadata(&request.References{Lookup: anyVariable}, http.Header{})
	return c, err
}

// anyVariable stands for the environment where only the form of the references is checked.
func anyVariable(string) (string, bool) { return "", true }

// Check returns an error for what every attempt of the call would fail with, before anything is sent.
func (c *Call) Check(lookup func(string) (string, bool)) error {
	_, err := c.metadata(&request.References{Lookup: lookup}, http.Header{})
	if err == nil {
		_, err = c.Network.tls()
	}
	return err
}

// ErrURL says that a URL names no method that can be called.
var ErrURL = errors.New("the target cannot be called")

// parseURL reads grpc://host:port/package.Service/Method. In the result the host is in lower case, and has a port.
func parseURL(address string) (*url.URL, error) {
	const hint = "\nhint: write grpc://host:port/package.Service/Method, or grpcs:// with TLS"
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it is no URL"+hint, ErrURL)
	case u.Scheme != "grpc" && u.Scheme != "grpcs":
		return nil, fmt.Errorf("%w: the scheme %q is neither grpc nor grpcs"+hint, ErrURL, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: it names no host"+hint, ErrURL)
	case u.User != nil:
		return nil, fmt.Errorf("%w: a user has no place in it\nhint: metadata such as 'authorization: Bearer …' names one", ErrURL)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, fmt.Errorf("%w: it has a query or a fragment"+hint, ErrURL)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("%w: its host has letters beyond ASCII\nhint: write the host in its xn-- form", ErrURL)
	}
	service, method, found := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !found || !isName(service, ".") || !isName(method, "") {
		return nil, fmt.Errorf("%w: its path %q is not package.Service/Method"+hint, ErrURL, u.Path)
	}
	if u.Port() == "" {
		if u.Scheme == "grpc" {
			return nil, fmt.Errorf("%w: it names no port"+hint, ErrURL)
		}
		u.Host = strings.TrimSuffix(u.Host, ":") + ":443"
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("%w: invalid port %q"+hint, ErrURL, u.Port())
	}
	u.Host, u.RawPath = strings.ToLower(u.Host), ""
	return u, nil
}

// isName reports whether a text consists of letters, digits, underscores and the others.
func isName(text, others string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r)
	})
}

// at is the parsed URL; it was checked when the call was made.
func (c *Call) at() *url.URL {
	u, err := parseURL(c.URL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// service returns the names of the service and of the method.
func (c *Call) service() (service, method string) {
	service, method, _ = strings.Cut(strings.TrimPrefix(c.at().Path, "/"), "/")
	return service, method
}

// SendsKey reports whether the idempotency key goes out with the call.
func (c *Call) SendsKey() bool { return c.KeyStyle != request.KeyNone }

// Kind implements task.Target.
func (c *Call) Kind() task.Kind { return Kind }

// Title implements task.Target.
func (c *Call) Title() string { return "CALL " + c.URL }

// Verb implements task.Target.
func (c *Call) Verb() string { return "the call" }

// Endpoint implements task.Target.
func (c *Call) Endpoint() task.Endpoint { return task.Endpoint{Method: "CALL", URL: c.URL} }

// Host implements task.Target.
func (c *Call) Host() string {
	u := c.at()
	if u.Scheme == "grpcs" {
		return strings.TrimSuffix(u.Host, ":443")
	}
	return u.Host
}

// Safe implements task.Target. A key that retry made up does not make a server deduplicate.
func (c *Call) Safe() bool { return c.Idempotent || c.Keyed }

// KeyLifetime implements task.Target.
func (c *Call) KeyLifetime() time.Duration {
	if !c.SendsKey() {
		return 0
	}
	return c.KeyTTL
}

// MaxServerDelay implements task.Target.
func (c *Call) MaxServerDelay() time.Duration {
	if c.Guarded {
		return cmp.Or(c.MaxRetryAfter, request.GuardedDelay)
	}
	return c.MaxRetryAfter
}

// ReadsStdin implements task.Target. What was read from stdin is in the call itself.
func (c *Call) ReadsStdin() bool { return false }

// SameWork implements task.Target.
func (c *Call) SameWork(other task.Target) bool {
	o, ok := other.(*Call)
	if !ok {
		return false
	}
	a, b := c.work(), o.work()
	if a.Unread || b.Unread {
		a.JSON, a.Message, a.Unread = b.JSON, b.Message, b.Unread
	}
	return reflect.DeepEqual(a, b)
}

// work returns the call without what says how long it is tried.
func (c *Call) work() Call {
	w := *c
	w.KeyTTL, w.MaxRetryAfter = 0, 0
	w.Message, w.Metadata = append([]byte{}, c.Message...), append([]string{}, c.Metadata...)
	return w
}

// AsRequest returns a request with the same metadata, which knows what of it is secret.
func (c *Call) AsRequest() *request.Request {
	return &request.Request{Method: http.MethodPost, URL: c.URL, Header: c.Metadata}
}

// Details implements task.Target.
func (c *Call) Details(finished bool, mask string) task.Details {
	rows := [][2]string{{"Call", c.URL}}
	var metadata []string
	label := "Metadata"
	for _, row := range c.AsRequest().Details(finished, mask).Rows[1 : 1+len(c.Metadata)] { // the first is the title
		metadata = append(metadata, row[1])
		rows = append(rows, [2]string{label, row[1]})
		label = ""
	}
	rows = append(rows, [2]string{"Body", c.bodyDetail()}, [2]string{"Network", c.Network.detail()})
	key := "not sent"
	if c.SendsKey() {
		key = "sent as idempotency-key"
	}
	return task.Details{
		Rows: rows,
		Key:  key,
		JSON: struct {
			Method  string   `json:"method"`
			URL     string   `json:"url"`
			Headers []string `json:"headers"`
		}{"CALL", text.MaskPattern(c.URL, mask), append([]string{}, metadata...)},
	}
}

// bodyDetail tells the length alone: there may be secrets in a request.
func (c *Call) bodyDetail() string {
	switch {
	case c.Raw:
		return text.Size(int64(len(c.Message))) + ", encoded"
	case c.JSON == "":
		return ""
	}
	return text.Size(int64(len(c.JSON))) + " of JSON"
}

// detail says how the server is reached, where that is not the usual way.
func (n *Network) detail() string {
	var parts []string
	for _, part := range []struct {
		is   bool
		text string
	}{
		{n.UnixSocket != "", "over " + n.UnixSocket},
		{n.ConnectTimeout > 0, "connect timeout " + text.FormatDuration(n.ConnectTimeout)},
		{n.Insecure, "certificate not checked"},
		{n.CACert != "", "CA " + n.CACert},
		{n.Cert != "", "certificate " + n.Cert},
	} {
		if part.is {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}
