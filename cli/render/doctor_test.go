package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
)

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
