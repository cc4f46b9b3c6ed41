package storetest

import (
	"encoding/json"
	"time"

	"github.com/10f93571/retry/task"
)

// KindRequest is the kind of Request.
const KindRequest task.Kind = "storetest"

// Request is a target that nobody sends: the suite knows no protocol.
type Request struct {
	Authority string `json:"host"`
	Hash      string `json:"blob,omitempty"` // of a body that is kept elsewhere
	Unsafe    bool   `json:"unsafe,omitempty"`
}

var _ task.Target = (*Request)(nil)

func init() {
	task.RegisterTarget(KindRequest, func(stored []byte) (task.Target, error) {
		r := &Request{}
		return r, json.Unmarshal(stored, r)
	})
}

// Kind implements task.Target.
func (r *Request) Kind() task.Kind { return KindRequest }

// Title implements task.Target.
func (r *Request) Title() string { return "ask " + r.Authority }

// Verb implements task.Target.
func (r *Request) Verb() string { return "ask" }

// Endpoint implements task.Target.
func (r *Request) Endpoint() task.Endpoint { return task.Endpoint{Method: "ask", URL: r.Authority} }

// Host implements task.Target.
func (r *Request) Host() string { return r.Authority }

// Safe implements task.Target.
func (r *Request) Safe() bool { return !r.Unsafe }

// KeyLifetime implements task.Target.
func (r *Request) KeyLifetime() time.Duration { return 0 }

// MaxServerDelay implements task.Target.
func (r *Request) MaxServerDelay() time.Duration { return 0 }

// ReadsStdin implements task.Target.
func (r *Request) ReadsStdin() bool { return false }

// SameWork implements task.Target.
func (r *Request) SameWork(other task.Target) bool {
	o, ok := other.(*Request)
	return ok && *o == *r
}

// Details implements task.Target.
func (r *Request) Details(bool, string) task.Details { return task.Details{} }

// Blob returns the hash of the body; empty without one.
func (r *Request) Blob() string { return r.Hash }
