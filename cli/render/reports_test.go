package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestATotalOfMoreThanADurationHolds(t *testing.T) {
	p := task.DefaultPolicy()
	p.Attempts = 2000
	p.Backoff, _ = backoff.Parse("constant:365d", "none")
	s := NewSchedule(&p)
	last := s.Retries[len(s.Retries)-1]
	if got, want := totalText(last.TotalMost), "365000d"; len(s.Retries) != maxRows || got != want {
		t.Errorf("got %d rows and %s waited in all, want %d and %s", len(s.Retries), got, maxRows, want)
	}
}

func policyRows() []PolicyRow {
	odd := task.DefaultPolicy()
	odd.Name, odd.Attempts = "a\x1b[2J\u202eb", 0
	return []PolicyRow{
		{Policy: task.DefaultPolicy(), Layer: "built in"},
		{Policy: odd, Layer: "config file", File: "/etc/\x1b]0;x\x07\n.toml", Line: 7,
			Hides: []string{"built in", "journal"}},
		{Policy: task.Policy{Name: "lost"}, Layer: "journal", Damage: errors.New("policy: nope\x1b")},
	}
}

func TestPolicies(t *testing.T) {
	var b strings.Builder
	if err := Policies(&b, Screen{}, policyRows()); err != nil {
		t.Fatal(err)
	}
	const want = `NAME             ATTEMPTS  BACKOFF         JITTER  FROM
default          5         exp:1s..1m      phase   built in
a\x1b[2J\u202eb  no limit  exp:1s..1m      phase   /etc/\x1b]0;x\x07\n.toml:7, hides built in, journal
lost             -         cannot be read  -       journal
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPoliciesJSON(t *testing.T) {
	var b strings.Builder
	if err := PoliciesJSON(&b, policyRows()); err != nil {
		t.Fatal(err)
	}
	var read struct{ Policies []map[string]any }
	if err := json.Unmarshal([]byte(b.String()), &read); err != nil || len(read.Policies) != 3 {
		t.Fatalf("%v: %s", err, b.String())
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e\x07") {
		t.Errorf("got %q, want it escaped", b.String())
	}
	file, lost := read.Policies[1], read.Policies[2]
	if file["line"] != 7.0 || len(file["hides"].([]any)) != 2 || file["damage"] != nil || file["policy"] == nil {
		t.Errorf("got %v", file)
	}
	if lost["name"] != "lost" || lost["policy"] != nil || lost["damage"] != "policy: nope\x1b" || lost["line"] != nil ||
		lost["hides"] == nil {
		t.Errorf("got %v", lost)
	}
}

// A comment is one line, whatever the path in it, and stands beside the others unless a value is long.
func TestPolicyTOML(t *testing.T) {
	var b strings.Builder
	err := PolicyTOML(&b, Screen{}, []Setting{
		{Text: "[policy.x]", Origin: "/a\nb\x1b:1"}, {Key: "attempts", Text: "5", Origin: "--attempts"},
		{Key: "stop-on", Text: `["` + strings.Repeat("x", 60) + `"]`, Origin: "journal"},
		{Text: "[[policy.x.rule]]", Origin: "journal"}, {Key: "when", Text: `"75"`},
	})
	want := `[policy.x]    # /a\nb\x1b:1
attempts = 5  # --attempts
stop-on  = ["` + strings.Repeat("x", 60) + `"]  # journal

[[policy.x.rule]]  # journal
when = "75"
`
	if got := b.String(); got != want || err != nil {
		t.Errorf("got\n%s\nwant\n%s\n%v", got, want, err)
	}
}

func TestDoctor(t *testing.T) {
	ok := state.Finding{Name: "space", Level: "ok", Text: "9 GiB free"}
	warning := state.Finding{Name: "tasks", Level: "warning", Text: "1 was interrupted", Fix: "retry resume --all"}
	absent := errors.New("/d: none\nhint: look elsewhere")
	problem := state.Finding{Name: "lock", Level: "problem", Text: "held by \x1b[31m", Fix: "stop it"}
	tests := []struct {
		name     string
		absent   error
		findings []state.Finding
		want     string
	}{
		{"well", nil, []state.Finding{ok}, "✓ space  9 GiB free\n\nall is well\n"},
		{"a warning", nil, []state.Finding{ok, warning},
			"✓ space  9 GiB free\n! tasks  1 was interrupted\n         fix: retry resume --all\n\n1 warning; the journal can be used\n"},
		{"a problem", nil, []state.Finding{problem}, "✗ lock  held by \\x1b[31m\n        fix: stop it\n\n1 problem\n"},
		{"no journal", absent, []state.Finding{ok},
			"✓ space  9 GiB free\n\nnothing to examine: /d: none\nhint: look elsewhere\n"},
		{"none, and a warning", absent, []state.Finding{warning},
			"\n\n1 warning, and nothing to examine: /d: none\nhint: look elsewhere\n"},
		{"none, and a problem", absent, []state.Finding{problem}, "\n\n1 problem\n"},
		{"both", nil, []state.Finding{warning, problem, problem}, "✗"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := Doctor(&b, Screen{}, test.absent, test.findings); err != nil || !strings.Contains(b.String(), test.want) {
				t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), test.want)
			}
			if len(test.findings) == 3 && !strings.HasSuffix(b.String(), "\n\n2 problems and 1 warning\n") {
				t.Errorf("got %s", b.String())
			}
		})
	}
}

// Colours come from the level alone, and the signs differ without them.
func TestDoctorColours(t *testing.T) {
	plain, coloured := map[string]bool{}, map[string]bool{}
	for _, level := range []string{"ok", "warning", "problem"} {
		plain[Screen{}.mark(level)], coloured[Screen{Color: true}.mark(level)] = true, true
	}
	if len(plain) != 3 || len(coloured) != 3 || coloured["✓"] {
		t.Errorf("got %v and %v", plain, coloured)
	}
}

func TestDoctorJSON(t *testing.T) {
	tests := []struct {
		name, directory, source string
		findings                []state.Finding
		want                    string
	}{
		{"nothing to say", "", "", nil, `{"directory": null, "source": null, "ok": true, "journal": false, "checks": []}`},
		{"a warning is no problem", "/d", "HOME", []state.Finding{{Name: "n", Level: "warning", Text: "t", Fix: "f"}},
			`{"directory": "/d", "source": "HOME", "ok": true, "journal": true, "checks": [{"name": "n", "level": "warning", "text": "t", "fix": "f"}]}`},
		{"a problem is", "/d", "--state", []state.Finding{{Name: "n", Level: "problem", Text: "t"}},
			`{"directory": "/d", "source": "--state", "ok": false, "journal": true, "checks": [{"name": "n", "level": "problem", "text": "t", "fix": null}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := DoctorJSON(&b, test.directory, test.source, test.directory != "", test.findings); err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer("{ ", "{", " }", "}", "[ ", "[", " ]",
				"]").Replace(strings.Join(strings.Fields(b.String()), " "))
			if got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAPolicyWithoutANameIsInline(t *testing.T) {
	if got := Policy(&task.Policy{Attempts: 1}); !strings.HasPrefix(got, "inline: 1 attempt, ") {
		t.Errorf("got %q, want it to begin with inline", got)
	}
}
