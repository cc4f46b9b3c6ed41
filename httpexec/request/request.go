// Package request holds the request of a task as the user gave it. It also says which parts of a request are secret,
// and shows the request without them.
package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/task"
)

// Kind is the kind of a task that sends a request.
const Kind task.Kind = "http"

func init() { task.RegisterTarget(Kind, decode) }

// decode reads what a journal holds of a request.
func decode(stored []byte) (task.Target, error) {
	r := new(Request)
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, err
	}
	if r.Method == "" {
		return nil, errors.New("it names no method")
	}
	return r, nil
}

// Of returns the request that a task sends; nil for a task of another kind.
func Of(t *task.Task) *Request {
	r, _ := t.Target.(*Request)
	return r
}

// Request is what a task sends. It names files and variables, which are read at each attempt.
type Request struct {
	Method      string   `json:"method"`
	MethodGiven bool     `json:"method_given,omitempty"` // with -X: it stays through redirects
	URL         string   `json:"url"`
	Header      []string `json:"header,omitempty"` // "Name: value", "Name:" leaves it out, "Name;" is empty; "@FILE"
	User        string   `json:"user,omitempty"`   // name:password
	Netrc       string   `json:"netrc,omitempty"`  // a file with users and passwords, absolute; empty for none
	NetrcNeeded bool     `json:"netrc_needed,omitempty"`
	Digest      bool     `json:"digest,omitempty"`       // the password is not sent, but the answer to a challenge
	CookieFiles []string `json:"cookie_files,omitempty"` // cookies to send, absolute paths
	CookieJar   string   `json:"cookie_jar,omitempty"`   // where cookies are kept, absolute; empty for nowhere
	Body        Parts    `json:"body,omitempty"`         // one after another
	Boundary    string   `json:"boundary,omitempty"`     // between the parts of a form; empty: the body is not a form
	Get         bool     `json:"get,omitempty"`          // the body goes into the URL's query
	Upload      bool     `json:"upload,omitempty"`       // the body is a file of -T, which redirects 301 and 302 keep

	Idempotent bool          `json:"idempotent,omitempty"` // the user says that two requests have the effect of one
	Keyed      bool          `json:"keyed,omitempty"`      // the idempotency key is the user's own
	KeyStyle   KeyStyle      `json:"key_style,omitempty"`
	KeyTTL     time.Duration `json:"key_ttl,omitempty"` // how long the server remembers the key; 0 = for ever

	Sign    bool `json:"sign,omitempty"`    // with the secret of the service
	Guarded bool `json:"guarded,omitempty"` // it came through the API: see CheckGuarded

	Network       Network       `json:"network"`
	MaxRetryAfter time.Duration `json:"max_retry_after,omitempty"` // of a server that retry waits for; 0 = any

	Output   string `json:"output,omitempty"`    // the file for the reply's body, absolute; empty: stdout
	Include  bool   `json:"include,omitempty"`   // the reply's header is put before its body
	WriteOut string `json:"write_out,omitempty"` // the format of what is written to stdout in the end; empty for none
	HideFail bool   `json:"hide_fail,omitempty"` // the body of an error is not shown
}

// Parts are the pieces of a body.
type Parts []Part

// beside is the JSON of a body that a journal keeps beside it.
const beside = "true"

// MarshalJSON implements json.Marshaler.
func (p Parts) MarshalJSON() ([]byte, error) {
	if len(p) == 1 && p[0].beside {
		return []byte(beside), nil
	}
	return json.Marshal([]Part(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Parts) UnmarshalJSON(stored []byte) error {
	if string(stored) == beside {
		*p = Parts{{beside: true}}
		return nil
	}
	return json.Unmarshal(stored, (*[]Part)(p))
}

// Part is a piece of a request's body: a text, or what a file or a blob holds.
type Part struct {
	Text   []byte    `json:"text,omitempty"`
	File   string    `json:"file,omitempty"` // absolute; StdinFile for stdin; empty: Text
	Blob   string    `json:"blob,omitempty"` // the SHA-256 of a blob, in hexadecimal digits; empty: File or Text
	Size   int64     `json:"size,omitempty"` // of the file or blob, and when it was changed: as when the task was made
	Time   time.Time `json:"time,omitzero"`
	Inode  uint64    `json:"inode,omitempty"`  // of the file; 0 where the system does not tell it
	Strip  bool      `json:"strip,omitempty"`  // line ends and NUL are left out
	Encode bool      `json:"encode,omitempty"` // percent-encoded

	// Of a form:
	Name     string `json:"name,omitempty"`
	FileName string `json:"file_name,omitempty"` // empty: the server does not see a file
	Type     string `json:"type,omitempty"`      // its media type; empty: none is sent
	Group    string `json:"group,omitempty"`     // the boundary between it and others of its name; empty for one alone

	beside bool // only in a head: its Text is kept elsewhere
}

// isText reports whether a part is nothing but a text.
func (p *Part) isText() bool {
	return p.File+p.Blob+p.Name+p.FileName+p.Type+p.Group == "" && p.Size == 0 && p.Time.IsZero() && p.Inode == 0 &&
		!p.Strip && !p.Encode
}

// Split implements task.Splitter. An older retry takes the head for damaged, and sends nothing.
func (r *Request) Split() (head any, apart task.Apart) {
	h := *r
	apart.URL, h.URL = r.URL, ""
	if len(r.Body) == 1 && r.Boundary == "" && r.Body[0].isText() && len(r.Body[0].Text) > 0 {
		apart.Body, h.Body = r.Body[0].Text, Parts{{beside: true}}
	}
	return &h, apart
}

// Join implements task.Splitter.
func (r *Request) Join(apart task.Apart) (task.Target, error) {
	whole := *r
	whole.Header = slices.Clip(r.Header) // who adds to it gets an array of its own
	whole.Body = slices.Clone(r.Body)    // of which sizes are noted
	if r.URL == "" {
		whole.URL = apart.URL
	}
	switch {
	case whole.URL == "":
		return nil, errors.New("it names no URL")
	case len(r.Body) != 1 || !r.Body[0].beside:
		return &whole, nil
	case len(apart.Body) == 0:
		return nil, errors.New("its body is missing")
	}
	whole.Body[0] = Part{Text: apart.Body}
	return &whole, nil
}

// StdinFile is the File of a Part that is read from stdin.
const StdinFile = "-"

// KeyStyle is how the idempotency key is written.
type KeyStyle string

// The styles of key.
const (
	KeyRaw  KeyStyle = ""     // not changed
	KeySF   KeyStyle = "sf"   // as a string of RFC 8941, which draft-ietf-httpapi-idempotency-key-header asks for
	KeyNone KeyStyle = "none" // none is sent
)

// Network is how a request gets to the server.
type Network struct {
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"` // for DNS, connection, proxy and TLS; 0 = none
	Proxy          string        `json:"proxy,omitempty"`           // empty: what the environment says
	NoProxy        *string       `json:"no_proxy,omitempty"`        // hosts without a proxy; nil: what the environment says
	UnixSocket     string        `json:"unix_socket,omitempty"`
	Resolve        []string      `json:"resolve,omitempty"` // host:port:address[,address]
	Insecure       bool          `json:"insecure,omitempty"`
	CACert         string        `json:"ca_cert,omitempty"` // absolute paths, all three
	Cert           string        `json:"cert,omitempty"`
	Key            string        `json:"key,omitempty"`
	HTTP1          bool          `json:"http1,omitempty"`
	Compressed     bool          `json:"compressed,omitempty"`
	MaxRedirects   int           `json:"max_redirects,omitempty"` // 0: a redirect is the reply; -1: a redirect is an error
}

// SendsKey reports whether the idempotency key goes out with the request. A method that is idempotent by itself needs
// none.
func (r *Request) SendsKey() bool {
	return r.KeyStyle != KeyNone && (r.Keyed || !isIdempotent(r.Method))
}

// Safe reports whether the request may be sent twice. A key that retry made up does not make a server deduplicate.
func (r *Request) Safe() bool {
	return r.Idempotent || r.Keyed || isIdempotent(r.Method)
}

// ForReply reports whether the request is for what comes back, which goes to stdout or to a file: nobody has that where
// a worker sends it.
func (r *Request) ForReply() bool {
	switch {
	case r.WriteOut != "" || r.Include:
		return true
	case r.Output != "":
		return r.Output != os.DevNull
	}
	return r.Method == http.MethodGet
}

// isIdempotent reports whether RFC 9110, section 9.2.2, calls a method idempotent. Methods are told apart by case.
func isIdempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

// ReadsStdin reports whether a part of the body comes from stdin.
func (r *Request) ReadsStdin() bool {
	return slices.ContainsFunc(r.Body, func(p Part) bool { return p.File == StdinFile })
}

// Blob returns the hash of the body that is kept beside the journal; empty where there is none.
func (r *Request) Blob() string {
	for _, p := range r.Body {
		if p.Blob != "" {
			return p.Blob
		}
	}
	return ""
}

// StdinSize notes how much was read from stdin.
func (r *Request) StdinSize(n int64) {
	for i := range r.Body {
		if r.Body[i].File == StdinFile {
			r.Body[i].Size = n
		}
	}
}

// Kind implements task.Target.
func (r *Request) Kind() task.Kind { return Kind }

// Title implements task.Target.
func (r *Request) Title() string { return r.Method + " " + MaskURL(r.URL) }

// Verb implements task.Target.
func (r *Request) Verb() string { return r.Method }

// Endpoint implements task.Target. A query may differ in each run.
func (r *Request) Endpoint() task.Endpoint {
	url := r.URL
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	return task.Endpoint{Method: r.Method, URL: MaskURL(url)}
}

// KeyLifetime implements task.Target.
func (r *Request) KeyLifetime() time.Duration {
	if !r.SendsKey() {
		return 0
	}
	return r.KeyTTL
}

// GuardedDelay is the MaxServerDelay of what came through the API, which names none.
const GuardedDelay = time.Hour

// MaxServerDelay implements task.Target.
func (r *Request) MaxServerDelay() time.Duration {
	if r.Guarded {
		return cmp.Or(r.MaxRetryAfter, GuardedDelay)
	}
	return r.MaxRetryAfter
}

// SameWork implements task.Target.
func (r *Request) SameWork(other task.Target) bool {
	o, ok := other.(*Request)
	return ok && reflect.DeepEqual(r.work(), o.work())
}

// SameFiles reports whether no file of the body has changed between two requests that do the same.
func (r *Request) SameFiles(o *Request) bool {
	return slices.EqualFunc(r.Body, o.Body, func(a, b Part) bool {
		return a.File == "" || a.File == StdinFile || a.Size == b.Size && a.Time.Equal(b.Time) && a.Inode == b.Inode
	})
}

// work returns the request without what differs between two runs of one command line: the boundary, sizes and times of
// files, and how long it is tried.
func (r *Request) work() Request {
	w := *r
	w.Boundary, w.KeyTTL, w.MaxRetryAfter = "", 0, 0
	w.Body = slices.Clone(r.Body)
	for i := range w.Body {
		w.Body[i].Size, w.Body[i].Time, w.Body[i].Inode = 0, time.Time{}, 0
		if w.Body[i].Group != "" {
			w.Body[i].Group = "grouped"
		}
		if len(w.Body[i].Text) == 0 {
			w.Body[i].Text = nil // JSON does not tell an empty text from none
		}
	}
	return w
}
