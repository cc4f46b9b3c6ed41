package task

import (
	"fmt"
	"time"
)

// Target is what a task sends to another program where it runs no command: a request of HTTP, for one. The package of
// each kind registers it with RegisterTarget; the rest of the program knows it by these methods alone.
type Target interface {
	Kind() Kind
	Title() string      // in one line, without secrets
	Verb() string       // what a message calls it: "POST"
	Endpoint() Endpoint // what statistics group by

	Safe() bool                    // sending it twice does what sending it once does
	KeyLifetime() time.Duration    // how long the idempotency key that it sends is valid; 0 = for ever, or none is sent
	MaxServerDelay() time.Duration // the longest delay asked for by a server that is waited for; 0 = any
	ReadsStdin() bool
	SameWork(other Target) bool // both do the same, whatever they say of how long it is tried

	Details(finished bool) Details
}

// Endpoint is where a target goes, without secrets and without what may differ in each run.
type Endpoint struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

// Details are what people and programs are shown of a target, without secrets.
type Details struct {
	Rows [][2]string // a label and a text, which has to be escaped
	Key  string      // how the idempotency key is sent
	JSON any
}

// decoders read what a journal holds of a target, by its kind.
var decoders = map[Kind]func(stored []byte) (Target, error){}

// RegisterTarget makes a kind of target known to journals, which store it as JSON. Call it from an init function.
func RegisterTarget(kind Kind, decode func(stored []byte) (Target, error)) { decoders[kind] = decode }

// DecodeTarget reads a target that a journal holds.
func DecodeTarget(kind Kind, stored []byte) (Target, error) {
	decode := decoders[kind]
	if decode == nil {
		return nil, fmt.Errorf("unknown kind of task %q", kind)
	}
	return decode(stored)
}
