package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/10f93571/retry/runner"
)

// tailLines is how many lines of an attempt's output a report shows.
const tailLines = 10

// tails shows the end of what the latest attempt wrote, of those whose output was captured.
func (s Screen) tails(w io.Writer, attempts []runner.Attempt) error {
	for i := len(attempts) - 1; i >= 0; i-- {
		o := attempts[i].Outcome
		if o.Stdout+o.Stderr == "" {
			continue
		}
		if o.Stdout == o.Stderr {
			return s.tail(w, fmt.Sprintf("Output of attempt %d", attempts[i].Number), o.Stdout)
		}
		if err := s.tail(w, fmt.Sprintf("Stdout of attempt %d", attempts[i].Number), o.Stdout); err != nil {
			return err
		}
		return s.tail(w, fmt.Sprintf("Stderr of attempt %d", attempts[i].Number), o.Stderr)
	}
	return nil
}

func (s Screen) tail(w io.Writer, title, text string) error {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
		title += fmt.Sprintf(", its last %d lines", tailLines)
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", s.paint(bold, title)); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "  %s\n", Escape(line)); err != nil {
			return err
		}
	}
	return nil
}

// Options writes in one line how a task is run, where that is not the usual way.
func Options(o *runner.Options) string {
	var parts []string
	for _, p := range [][2]string{
		{"stdin", string(o.Stdin)}, {"output", string(o.Output)}, {"capture", string(o.Capture)},
		{"on retry", o.OnRetry}, {"on success", o.OnSuccess}, {"on failure", o.OnFailure},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+quote(p[1]))
		}
	}
	if o.Seed != nil {
		parts = append(parts, fmt.Sprintf("seed %d", *o.Seed))
	}
	return strings.Join(parts, ", ")
}
