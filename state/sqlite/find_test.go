package sqlite

import (
	"errors"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
)

func TestFind(t *testing.T) {
	const (
		a  = "0190aaaa-1111-7000-8000-00000000beef"
		b  = "0190aaaa-2222-7000-8000-0000000face1"
		c  = "0190bbbb-3333-7000-8000-0000000face2"
		d1 = "0190cccc-4444-7000-8000-000000000d01"
		d3 = "0190cccc-4444-7000-8000-000000000e01"
		d2 = "0190cccc-4444-7000-8000-000000000d02"
		p  = "face1-4444-7000-8000-0000000ca-face1" // one end like the other
		e  = "0190eeee-5555-7000-8000-00000000eeee"
	)
	named := []struct{ id, name string }{
		{a, "deploy"}, {b, "100%"}, {c, "a_b"}, {d1, "nightly"}, {d3, ""}, {d2, "nightly"}, {p, "0190b"}, {e, "Grüße\n"}, // the order of making
		{"0190ffff-6666-7000-8000-0000000000ff", a},
	}
	tests := []struct{ name, ref, want string }{
		{"an id", b, b},
		{"an id in capitals", strings.ToUpper(c), c},
		{"an id goes before a name", a, a},
		{"a beginning", "0190aaaa-2", b},
		{"a beginning of one", "f", ""},
		{"a beginning in capitals", "0190BBBB-3", c},
		{"an end, as tables show it", "0000beef", a},
		{"an end in capitals", "BEEF", a},
		{"an end of one character", "2", ""},
		{"several of a beginning", "0190aaaa", ""},
		{"several of an end", "01", ""},
		{"an end that none has", "d0", "not found"},
		{"a beginning of one task and an end of another", "face1", ""},
		{"a middle", "1111", "not found"},
		{"longer than an id", a + "0", "not found"},
		{"longer than an id, in front", "0" + a, "not found"},
		{"a name", "deploy", a},
		{"a name in capitals is another", "DEPLOY", "not found"},
		{"a part of a name", "depl", "not found"},
		{"the newest of a name", "nightly", d2},
		{"a name goes before a beginning", "0190b", p},
		{"a name beyond ASCII", "Grüße\n", e},
		{"a name with a wildcard", "100%", b},
		{"a name with another", "a_b", c},
		{"a pattern of LIKE", "0190aaaa-1%", "not found"},
		{"every task of LIKE", "%", "not found"},
		{"any character of LIKE", "0190aaaa_1111-7000-8000-00000000beef", "not found"},
		{"any name of LIKE", "a%b", "not found"},
		{"a pattern of GLOB", "*", "not found"},
		{"any character of GLOB", "?", "not found"},
		{"a set of GLOB", "0190aaaa-[1]", "not found"},
		{"nothing", "", "not found"},
		{"a space", " ", "not found"},
		{"a quote", "' OR 1=1 --", "not found"},
		{"invalid UTF-8", "\xff", "not found"},
		{"NUL", "\x00", "not found"},
		{"a beginning, then NUL", "0190bbbb\x00", "not found"},
	}
	j := open(t)
	for _, n := range named {
		tk := newTask()
		tk.ID, tk.Name = n.id, n.name
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, exit(0), succeeded, epoch)) // of the unfinished ones only one may have a name
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := j.Find(t.Context(), test.ref)
			switch {
			case test.want == "not found":
				if !errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), "hint: retry status") {
					t.Errorf("got %v, %v", got, err)
				}
			case test.want == "":
				if err == nil || errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), "stands for several tasks") {
					t.Errorf("got %v, %v", got, err)
				}
			case err != nil:
				t.Error(err)
			case got.ID != test.want:
				t.Errorf("found %s", got.ID)
			}
		})
	}
}

// The message is enough to go on with; it does not grow with the journal.
func TestFindNamesTheTasksThatAReferenceStandsFor(t *testing.T) {
	j := open(t)
	first, second := inFlight(t, j), inFlight(t, j)
	_, err := j.Find(t.Context(), first.ID[:8])
	if err == nil || !strings.Contains(err.Error(), "hint: give more of one of "+second.ID+", "+first.ID) {
		t.Errorf("got %v", err)
	}
	for range 20 {
		inFlight(t, j)
	}
	if _, err = j.Find(t.Context(), first.ID[:8]); err == nil || len(err.Error()) > 500 {
		t.Errorf("got %v", err)
	}
}
