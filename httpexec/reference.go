package httpexec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// errReference says that a {env:NAME} cannot be resolved.
var errReference = errors.New("resolve a reference")

// references resolves each {env:NAME} of a request, and remembers what must not be told.
type references struct {
	lookup func(name string) (value string, ok bool)
	hidden []secret
}

// secret is a value, and what is shown for it.
type secret struct{ value, shown string }

// expand puts the values of variables into a text.
func (r *references) expand(text string) (string, error) {
	return r.expandAt(text, func(_ int, value string) string { return value })
}

// expandAt does so with what escape makes of the value of a reference at an offset of the text.
func (r *references) expandAt(text string, escape func(at int, value string) string) (string, error) {
	var b strings.Builder
	for rest := text; ; {
		before, name, after, found := request.CutReference(rest)
		b.WriteString(before)
		if !found {
			if request.HasReference(before) {
				return "", fmt.Errorf("%w: it is none\nhint: write it as {env:NAME}", errReference)
			}
			return b.String(), nil
		}
		value, err := r.value(name)
		if err != nil {
			return "", err
		}
		written := escape(len(text)-len(rest)+len(before), value)
		r.hide(name, value, written)
		b.WriteString(written)
		rest = after
	}
}

func (r *references) value(name string) (string, error) {
	if value, ok := r.find(name); ok {
		return value, nil
	}
	return "", fmt.Errorf("%w: the variable %s is not set\nhint: set it, for a resume too: the journal does not have its value", errReference, name)
}

func (r *references) find(name string) (value string, ok bool) {
	if r.lookup == nil {
		return "", false
	}
	if value, ok = r.lookup(name); !ok {
		return "", false // whatever came beside that
	}
	return value, true
}

// shortest is how long a value has to be to be taken for a secret: a message without its digits is of no use.
const shortest = 4

func (r *references) hide(name string, values ...string) {
	r.hideAs("{env:"+name+"}", values...)
}

// hideAs has a text shown for values, however they are spelled. What was hidden first goes before the same value with another text.
func (r *references) hideAs(shown string, values ...string) {
	for _, value := range values {
		if len(value) < shortest {
			continue
		}
		for _, spelled := range slices.Compact(spellings(value)) {
			r.hidden = append(r.hidden, secret{spelled, shown})
		}
	}
	slices.SortStableFunc(r.hidden, func(a, b secret) int { return len(b.value) - len(a.value) })
}

// longest is the length of the longest value; 0 for none.
func (r *references) longest() int64 {
	if len(r.hidden) == 0 {
		return 0
	}
	return int64(len(r.hidden[0].value))
}

// clean returns a message without the values.
func (r *references) clean(message string) string {
	for _, s := range r.hidden {
		message = strings.ReplaceAll(message, s.value, s.shown)
	}
	return message
}

// cleanError returns an error whose text is without the values.
func (r *references) cleanError(err error) error {
	if err == nil || r.clean(err.Error()) == err.Error() {
		return err
	}
	return &cleanedError{err, r.clean(err.Error())}
}

type cleanedError struct {
	error
	text string
}

func (e *cleanedError) Error() string { return e.text }

func (e *cleanedError) Unwrap() error { return e.error }
