package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
)

// Doctor writes the findings, each fix below its finding, and the verdict at the end, where it is seen after the text
// has scrolled by. Where there is no journal, absent says where it was looked for. lipgloss/table v1.1 loses the last
// row of a table without titles, so the columns are aligned here.
func Doctor(w io.Writer, s Screen, absent error, findings []state.Finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.Name))
	}
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %-*s  %s\n", s.mark(f.Level), width, f.Name, text.Escape(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(&b, "%*s%s %s\n", width+4, "", s.Paint(Bold, "fix:"), text.Escape(f.Fix))
		}
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", b.String(), s.verdict(absent, findings))
	return err
}

// mark is a sign that differs from the others without colour, too.
func (s Screen) mark(level string) string {
	switch level {
	case "problem":
		return s.Paint(Red, "✗")
	case "warning":
		return s.Paint(Yellow, "!")
	}
	return s.Paint(Green, "✓")
}

func (s Screen) verdict(absent error, findings []state.Finding) string {
	levels := map[string]int{}
	for _, f := range findings {
		levels[f.Level]++
	}
	var counts []string
	for _, level := range []string{"problem", "warning"} {
		if levels[level] > 0 {
			counts = append(counts, text.Count(levels[level], level))
		}
	}
	switch {
	case levels["problem"] > 0:
		return s.Paint(Red, strings.Join(counts, " and "))
	case absent != nil:
		counts = append(counts, "nothing to examine:")
		return s.Paint(Yellow, strings.Join(counts, ", and ")) + " " + Message(absent)
	case len(counts) > 0:
		return s.Paint(Yellow, counts[0]+"; the journal can be used")
	}
	return s.Paint(Green, "all is well")
}

// doctorJSON is the stable form of an examination; docs/json.md describes it.
type doctorJSON struct {
	Directory *string       `json:"directory"`
	Source    *string       `json:"source"`
	OK        bool          `json:"ok"`
	Journal   bool          `json:"journal"`
	Checks    []findingJSON `json:"checks"`
}

type findingJSON struct {
	state.Finding
	Fix *string `json:"fix"`
}

// DoctorJSON writes the findings as JSON.
func DoctorJSON(w io.Writer, directory, source string, journal bool, findings []state.Finding) error {
	view := doctorJSON{present(directory), present(source), true, journal, []findingJSON{}}
	for _, f := range findings {
		view.OK = view.OK && f.Level != "problem"
		view.Checks = append(view.Checks, findingJSON{Finding: f, Fix: present(f.Fix)})
	}
	return WriteJSON(w, view)
}
