package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// maxMistakes bounds how many mistakes are listed: a hostile body of 1 MiB can have 200,000.
const maxMistakes = 1000

// maxNames bounds the names of an object: a hostile body of 1 MiB can have 90,000.
const maxNames = 1000

// Object is a JSON object of a request. Its methods return the value of a field, or the fallback where the field is
// missing, null or wrong; what is wrong is remembered, and Finish tells all of it. So a handler is a list of fields:
//
//	o, err := problem.Read(w, r, limit)
//	if err != nil {
//		return err
//	}
//	o.Require("targetUrl")
//	target := o.String("targetUrl", "")
//	timeout := o.Milliseconds("timeoutMs", 30*time.Second)
//	if err := o.Finish(); err != nil {
//		return err
//	}
//
// A field that no method has asked for is unknown. The methods that read return fallbacks for a nil Object, so that a
// field that is missing can be read through. Object and Objects return nil also for what is wrong. Read an object
// within another once.
type Object struct {
	report  *report
	pointer string
	members []member
	index   map[string]int // name to position in members, the first of that name
	asked   []string       // by the names that the program knows, so few
	open    bool           // every name is known
}

// report is what all objects of one body share.
type report struct {
	mistakes []Mistake
	unjudged error // why the body cannot be judged; nil where it can
	more     int   // beyond maxMistakes
	objects  []*Object
	counts   map[string]int // see Within
}

// newObject returns nil for an object with more than maxNames names, which is one mistake.
func newObject(report *report, pointer string, raw json.RawMessage) *Object {
	o := &Object{report: report, pointer: pointer}
	members := membersOf(raw, maxNames)
	if len(members) > maxNames {
		report.add(pointer, fmt.Sprintf("the object has more than %d names", maxNames))
		return nil
	}
	o.index = make(map[string]int, len(members))
	for _, m := range members {
		if _, twice := o.index[m.name]; twice {
			o.Failf(m.name, "the field is there twice")
			continue
		}
		o.index[m.name] = len(o.members)
		o.members = append(o.members, m)
	}
	report.objects = append(report.objects, o)
	return o
}

// Has reports whether a field is there and is not null.
func (o *Object) Has(name string) bool { return o.value(name) != nil }

// Require remembers each field that is missing or null.
func (o *Object) Require(names ...string) {
	for _, name := range names {
		if o != nil && !o.Has(name) {
			o.Failf(name, "the field is missing")
		}
	}
}

// Names returns the names of all fields in their order. None of them is unknown then.
func (o *Object) Names() (names []string) {
	if o == nil {
		return nil
	}
	o.open = true
	for _, m := range o.members {
		names = append(names, m.name)
	}
	return names
}

// Pointer returns the JSON pointer of a field.
func (o *Object) Pointer(name string) string {
	if !strings.ContainsAny(name, "~/") { // a Replacer costs 2 kB
		return o.pointer + "/" + name
	}
	return o.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Fail remembers what is wrong with a field. A line "hint: …" of the error becomes the hint of the mistake.
func (o *Object) Fail(name string, err error) { o.FailAt(o.Pointer(name), err) }

// Failf is Fail with a formatted text.
func (o *Object) Failf(name, format string, args ...any) { o.Fail(name, fmt.Errorf(format, args...)) }

// FailAt remembers what is wrong at a pointer of the body, such as Pointer("tags") + "/3".
func (o *Object) FailAt(pointer string, err error) { o.report.add(pointer, err.Error()) }

// Abandon remembers why the body cannot be judged now, which is no mistake of the client.
func (o *Object) Abandon(err error) { o.report.unjudged = err }

// Failed reports whether a mistake was found anywhere in the body so far, or the body cannot be judged.
func (o *Object) Failed() bool { return len(o.report.mistakes) > 0 || o.report.unjudged != nil }

// Finish ends the reading of a body: it adds the unknown fields of all objects that were read. The error is a *Problem,
// 422 with every mistake, or nil where there is none; and what Abandon was told, whatever else was found.
func (o *Object) Finish() error {
	if o.report.unjudged != nil {
		return o.report.unjudged
	}
	for _, object := range o.report.objects {
		object.findUnknown()
	}
	if len(o.report.mistakes) == 0 {
		return nil
	}
	return o.report.problem()
}

func (o *Object) findUnknown() {
	if o.open {
		return
	}
	for _, m := range o.members {
		if slices.Contains(o.asked, m.name) {
			continue
		}
		if len(o.report.mistakes) >= maxMistakes {
			o.report.more++ // it is not told
			continue
		}
		hint := ""
		if near := text.Nearest(m.name, o.asked); near != "" {
			hint = fmt.Sprintf("\nhint: did you mean %q?", near)
		}
		o.Failf(m.name, "unknown field%s", hint)
	}
	o.open = true // told once
}

// value returns the value of a field, or nil where it is missing or null.
func (o *Object) value(name string) json.RawMessage {
	if raw := o.Raw(name); len(raw) > 0 && raw[0] != 'n' {
		return raw
	}
	return nil
}

// Raw returns the value of a field as it was sent, numbers and all: "null" for null, nil where the field is missing.
func (o *Object) Raw(name string) json.RawMessage {
	if o == nil {
		return nil
	}
	if !o.open && !slices.Contains(o.asked, name) { // of an open one, the client has chosen the names
		o.asked = append(o.asked, name)
	}
	if i, found := o.index[name]; found {
		return o.members[i].value
	}
	return nil
}

// Object returns an object within this one, or nil.
func (o *Object) Object(name string) *Object {
	raw := o.value(name)
	if raw == nil || !o.want(o.Pointer(name), raw, "an object", '{') {
		return nil
	}
	return newObject(o.report, o.Pointer(name), raw)
}

// Objects returns a list of at most so many objects. An element that is none is nil. A longer list is one mistake, and is
// not read.
func (o *Object) Objects(name string, most int) (objects []*Object) {
	for i, raw := range o.elements(name, most) {
		at := o.Pointer(name) + "/" + strconv.Itoa(i)
		if o.want(at, raw, "an object", '{') {
			objects = append(objects, newObject(o.report, at, raw))
		} else {
			objects = append(objects, nil)
		}
	}
	return objects
}

// elements returns the values of a list, or nil.
func (o *Object) elements(name string, most int) []json.RawMessage {
	raw := o.value(name)
	if raw == nil || !o.want(o.Pointer(name), raw, "a list", '[') {
		return nil
	}
	values, count := elementsOf(raw, most)
	if count > most {
		o.Failf(name, "want at most %d elements, got %d", most, count)
		return nil
	}
	return values
}

// Within adds to the number that the whole body has of something, such as conditions, and reports whether there are at
// most so many. What one task may have a few of, a batch has many of.
func (o *Object) Within(what string, n, most int) bool {
	if o.report.counts == nil {
		o.report.counts = map[string]int{}
	}
	o.report.counts[what] += n
	return o.report.counts[what] <= most
}

// want remembers a value that is not of the wanted kind, which its first byte tells.
func (o *Object) want(pointer string, raw json.RawMessage, what string, first byte) bool {
	if raw[0] != first {
		o.report.add(pointer, "want "+what+", got "+kind(raw))
	}
	return raw[0] == first
}

func (r *report) add(pointer, message string) {
	if len(r.mistakes) >= maxMistakes {
		r.more++
		return
	}
	detail, hint := cutHint(message)
	r.mistakes = append(r.mistakes, Mistake{Pointer: pointer, Detail: detail, Hint: hint})
}

func (r *report) problem() *Problem {
	detail := "the body has a mistake"
	if count := len(r.mistakes) + r.more; r.more > 0 {
		detail = fmt.Sprintf("the body has %d mistakes, the first %d are listed", count, maxMistakes)
	} else if count > 1 {
		detail = fmt.Sprintf("the body has %d mistakes", count)
	}
	p := New(http.StatusUnprocessableEntity, "invalid-fields", "%s", detail)
	p.Errors = r.mistakes
	return p
}
