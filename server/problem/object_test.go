package problem

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

func parse(t *testing.T, body string) *Object {
	t.Helper()
	o, err := Parse([]byte(body))
	testkit.Must(t, err)
	return o
}

// mistakes returns what Finish says, as "pointer: detail; hint".
func mistakes(t *testing.T, err error) (lines []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	p := (*Problem)(nil)
	if !errors.As(err, &p) || p.Status != 422 || p.Type != "/problems/invalid-fields" {
		t.Fatalf("got %#v, want a problem of status 422", err)
	}
	for _, m := range p.Errors {
		line := m.Pointer + ": " + m.Detail
		if m.Hint != "" {
			line += "; " + m.Hint
		}
		lines = append(lines, line)
	}
	return lines
}

func TestFields(t *testing.T) {
	o := parse(t, ` {"text": "a\u00e9\ud83d\ude00", "n": 1e3, "big": 9007199254740993, "f": 0.5, "yes": true, "ms": 1500,
		"at": 1700000000000, "rfc": "2026-01-02T03:04:05.678+01:00", "soon": "now", "codes": [500, 503], "words": ["a", "b"],
		"word": "c", "raw": {"n": 123456789012345678901234567890, "x": [1,  2]}, "null": null, "empty": {}, "none": [],
		"list": [{"a": 1}, {"a": 2}], "escaped\u002fname": 1} `)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := []any{
		o.String("text", ""), o.Int("n", 0, 0, 1000), o.Int("big", 0, 0, math.MaxInt64), o.Float("f", 0, 0, 1),
		o.Bool("yes", false), o.Milliseconds("ms", 0), o.Time("at", time.Time{}).UnixMilli(),
		o.Time("rfc", time.Time{}), o.Time("soon", now), o.Ints("codes", 100, 100, 599), o.Strings("words", 100),
		o.StringOrList("words", 100), o.StringOrList("word", 100), string(o.Raw("raw")), string(o.Raw("null")), o.Has("null"),
		len(o.Object("empty").Names()), len(o.Strings("none", 100)), o.Int("escaped/name", 0, 0, 1),
	}
	want := []any{
		"aé😀", int64(1000), int64(9007199254740993), 0.5,
		true, 1500 * time.Millisecond, int64(1700000000000),
		time.Date(2026, 1, 2, 2, 4, 5, 678e6, time.UTC), now, []int64{500, 503}, []string{"a", "b"},
		[]string{"a", "b"}, []string{"c"}, `{"n": 123456789012345678901234567890, "x": [1,  2]}`, "null", false,
		0, 0, int64(1),
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("field %d: got %#v, want %#v", i, got[i], want[i])
		}
	}
	sum := int64(0)
	for _, element := range o.Objects("list", 100) {
		sum += element.Int("a", 0, 0, 9)
	}
	if sum != 3 {
		t.Errorf("objects: got the sum %d, want 3", sum)
	}
	if err := o.Finish(); err != nil {
		t.Errorf("got %v, want no mistake", err)
	}
}

// What is missing or null has the fallback, and an object that is missing can be read through.
func TestFallbacks(t *testing.T) {
	o := parse(t, `{"a": null}`)
	got := []any{
		o.String("a", "x"), o.Int("b", 7, 0, 1), o.Float("c", 2.5, 0, 1), o.Bool("d", true),
		o.Milliseconds("e", 90*time.Microsecond), o.Time("f", time.Time{}).IsZero(), o.Raw("g") == nil,
		o.Strings("h", 100) == nil, o.StringOrList("a", 100) == nil, o.Objects("i", 100) == nil, o.Object("a") == nil,
		o.Object("j").Object("k").String("l", "y"), o.Object("j").Names() == nil, o.Object("j").Has("k"),
	}
	want := []any{"x", int64(7), 2.5, true, 90 * time.Microsecond, true, true, true, true, true, true, "y", true, false}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	o.Object("j").Require("k")
	if err := o.Finish(); err != nil {
		t.Errorf("got %v, want no mistake", err)
	}
}

// One answer tells everything that is wrong.
func TestEveryMistakeAtOnce(t *testing.T) {
	o := parse(t, `{"targetUrl": 7, "metod": "GET", "delayMs": -1, "headers": {"a/b~c": [1, "x"]}, "tags": ["a", 2, {}],
		"policy": {"maxAttempts": 1.5, "maxAttempt": 3}, "delayMs": 2, "tasks": [{}, 3, {"x": []}], "at": "tomorrow",
		"flag": "true", "f": 1e999, "codes": 5, "text": "\ud800", "zzzzz": 0, "key": null}`)
	o.Require("key", "id")
	o.String("targetUrl", "")
	o.String("method", "")
	o.Milliseconds("delayMs", 0)
	headers := o.Object("headers")
	for _, name := range headers.Names() {
		headers.StringOrList(name, 100)
	}
	o.Strings("tags", 100)
	policy := o.Object("policy")
	policy.Int("maxAttempts", 5, 1, 1000)
	for _, task := range o.Objects("tasks", 100) {
		task.Require("x")
		task.Int("x", 0, 0, 1)
	}
	o.Time("at", time.Now())
	o.Bool("flag", false)
	o.Float("f", 0, 0, 1)
	o.Ints("codes", 100, 0, 1)
	o.String("text", "")
	o.Fail("method", errors.New("no such method\nhint: try POST"))
	if !o.Failed() {
		t.Error("got no mistake before Finish, want some")
	}
	got := mistakes(t, o.Finish())
	want := []string{
		"/delayMs: the field is there twice",
		"/key: the field is missing",
		"/id: the field is missing",
		"/targetUrl: want a string, got a number",
		"/delayMs: want a whole number from 0 to 9223372036854, got -1",
		"/headers/a~1b~0c/0: want a string, got a number",
		"/tags/1: want a string, got a number",
		"/tags/2: want a string, got an object",
		"/policy/maxAttempts: want a whole number, got 1.5",
		"/tasks/1: want an object, got a number",
		"/tasks/0/x: the field is missing",
		"/tasks/2/x: want a whole number, got a list",
		`/at: invalid time "tomorrow"; give "now", milliseconds since 1970 or RFC 3339, such as 2006-01-02T15:04:05Z`,
		"/flag: want a boolean, got a string",
		"/f: want a number from 0 to 1, got 1e999",
		"/codes: want a list, got a number",
		"/text: the string has half of a surrogate pair",
		"/method: no such method; try POST",
		`/metod: unknown field; did you mean "method"?`,
		"/zzzzz: unknown field",
		`/policy/maxAttempt: unknown field; did you mean "maxAttempts"?`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOneField(t *testing.T) {
	number := func(o *Object) { o.Int("x", 0, -5, 5) }
	moment := func(o *Object) { o.Time("x", time.Time{}) }
	text := func(o *Object) { o.String("x", "") }
	const hint = "; give milliseconds since 1970 or RFC 3339, such as 2006-01-02T15:04:05Z"
	tests := []struct {
		value string
		read  func(o *Object)
		want  string // "" for none
	}{
		{"-5", number, ""},
		{"5.000", number, ""},
		{"50e-1", number, ""},
		{"6", number, "/x: want a whole number from -5 to 5, got 6"},
		{"5.5", number, "/x: want a whole number, got 5.5"},
		{"1e400", number, "/x: want a whole number, got 1e400"},
		{"1e999999999999", number, "/x: want a whole number, got 1e999999999999"},
		{"9223372036854775808", number, "/x: want a whole number, got 9223372036854775808"},
		{strings.Repeat("9", 50), number, "/x: want a whole number, got " + strings.Repeat("9", 32) + "…"},
		{`"5"`, number, "/x: want a whole number, got a string"},
		{"true", number, "/x: want a whole number, got a boolean"},
		{"0", moment, ""},
		{"-1", moment, "/x: want a time from 1970 to 9999, got -1" + hint},
		{"253402300800000", moment, "/x: want a time from 1970 to 9999, got 253402300800000" + hint},
		{"1.5", moment, "/x: want a time, got 1.5" + hint},
		{"{}", moment, "/x: want a time, got an object" + hint},
		{`"now"`, moment, `/x: invalid time "now"` + hint},
		{`"1969-12-31T23:59:59Z"`, moment, "/x: want a time from 1970 to 9999, got 1969-12-31T23:59:59Z" + hint},
		{`"2026-02-30T00:00:00Z"`, moment, `/x: invalid time "2026-02-30T00:00:00Z"` + hint},
		{`"2026-01-02 00:00:00Z"`, moment, `/x: invalid time "2026-01-02 00:00:00Z"` + hint},
		{`"\ud83d\ude00"`, text, ""},
		{`"\ufffd\\ud800 ` + "\ufffd" + `"`, text, ""},
		{`"\\\ud800"`, text, "/x: the string has half of a surrogate pair"},
		{`"\ude00\ud83d"`, text, "/x: the string has half of a surrogate pair"},
		{`"\ud83d\ud83d\ude00"`, text, "/x: the string has half of a surrogate pair"},
		{`"\ud83d\u0041"`, text, "/x: the string has half of a surrogate pair"},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			o := parse(t, `{"x": `+tt.value+`}`)
			tt.read(o)
			got := strings.Join(mistakes(t, o.Finish()), "\n")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// names returns an object with so many names.
func names(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `,"n%d":1`, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// A hostile body cannot make a long answer, or hours of looking for the nearest name.
func TestManyMistakes(t *testing.T) {
	for name, object := range map[string]string{
		"unknown": names(maxNames), "twice": "{" + strings.Repeat(`"a":1,`, maxNames-1) + `"a":1}`,
	} {
		o := parse(t, `{"list":[`+strings.Repeat(object+",", 4)+object+`]}`)
		o.Objects("list", 5)
		p := (*Problem)(nil)
		if err := o.Finish(); !errors.As(err, &p) || len(p.Errors) != maxMistakes ||
			p.Detail != "the body has 5000 mistakes, the first 1000 are listed" {
			t.Errorf("%s: got %d mistakes, %q, want 1000 of 5000", name, len(p.Errors), p.Detail)
		}
	}
}

// An object with too many names is one mistake, and none of them is read.
func TestManyNames(t *testing.T) {
	if _, err := Parse([]byte(names(maxNames))); err != nil {
		t.Errorf("%d names: got %v, want none", maxNames, err)
	}
	_, err := Parse([]byte(names(90_000)))
	if got, want := mistakes(t, err), []string{": the object has more than 1000 names"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	o := parse(t, `{"one":`+names(maxNames+1)+`,"list":[`+names(maxNames+1)+`,{"a":1}],"sent":`+names(maxNames+1)+`}`)
	o.Raw("sent") // a body that is passed on may have more
	one, list := o.Object("one"), o.Objects("list", 2)
	list[1].Int("a", 0, 0, 1)
	want := []string{"/one: the object has more than 1000 names", "/list/0: the object has more than 1000 names"}
	if got := mistakes(t, o.Finish()); one != nil || list[0] != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFailAt(t *testing.T) {
	o := parse(t, `{"tags": ["a"]}`)
	o.Strings("tags", 100)
	o.FailAt(o.Pointer("tags")+"/0", errors.New("too short"))
	o.Failf("a/b", "no %s", "way")
	if got, want := mistakes(t, o.Finish()), []string{"/tags/0: too short", "/a~1b: no way"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The names that a client has chosen are looked up by an index alone: no list of them is searched.
func TestNamesAreNotSearched(t *testing.T) {
	o := parse(t, `{"a": 1, "b": 2, "c": 3}`)
	for _, name := range o.Names() {
		o.Int(name, 0, 0, 9)
		o.Has(name)
	}
	if len(o.asked) != 0 {
		t.Errorf("got a list of %d names, want none", len(o.asked))
	}
	testkit.Must(t, o.Finish())
}
