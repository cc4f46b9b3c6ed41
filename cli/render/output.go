package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// tailLines is how many lines of an attempt's output a report shows.
const tailLines = 10

// tails shows the end of the output of the latest attempt that has some in the journal.
func (s Screen) tails(attempts []task.Attempt) (shown string) {
	for _, a := range slices.Backward(attempts) {
		for _, o := range outputs(a.Number, a.Outcome.Reply != nil, a.Outcome.Stdout, a.Outcome.Stderr) {
			shown += "\n" + s.output(o.shortened())
		}
		if shown != "" {
			break
		}
	}
	return shown
}

// Logs shows all captured output of an attempt.
func Logs(w io.Writer, s Screen, kind task.Kind, attempt int, stdout, stderr string) error {
	var sections []string
	for _, o := range outputs(attempt, kind != task.KindCommand, stdout, stderr) {
		sections = append(sections, s.output(o))
	}
	_, err := io.WriteString(w, strings.Join(sections, "\n"))
	return err
}

// output is the captured end of a stream of an attempt.
type output struct {
	title string
	lines []string
}

// outputs are the captured streams of an attempt. It is one where both streams were the same file, or for the body of a
// reply.
func outputs(attempt int, reply bool, stdout, stderr string) (list []output) {
	streams := []struct{ name, text string }{{"Stdout", stdout}, {"Stderr", stderr}}
	switch {
	case reply:
		streams[0].name = "Reply"
	case stdout == stderr:
		streams = streams[:1]
		streams[0].name = "Output"
	}
	for _, stream := range streams {
		if stream.text != "" {
			title := fmt.Sprintf("%s of attempt %d", stream.name, attempt)
			list = append(list, output{title, strings.Split(strings.TrimSuffix(stream.text, "\n"), "\n")})
		}
	}
	return list
}

func (o output) shortened() output {
	if len(o.lines) > tailLines {
		o = output{o.title + fmt.Sprintf(", its last %d lines", tailLines), o.lines[len(o.lines)-tailLines:]}
	}
	for i, line := range o.lines {
		o.lines[i] = text.Shorten(line, longLine)
	}
	return o
}

// output indents each line, so that none can be taken for a line of retry itself.
func (s Screen) output(o output) string {
	var b strings.Builder
	b.WriteString(s.Paint(Bold, o.title) + "\n")
	for _, line := range o.lines {
		b.WriteString("  " + escapeLine(line) + "\n")
	}
	return b.String()
}

// tabWidth is the distance of a terminal's tab stops.
const tabWidth = 8

// escapeLine escapes a line of output, with spaces for its tabs.
func escapeLine(line string) string {
	cells := strings.Split(line, "\t")
	for i, cell := range cells {
		cells[i] = text.Escape(cell)
		if i < len(cells)-1 {
			cells[i] += strings.Repeat(" ", tabWidth-lipgloss.Width(cells[i])%tabWidth)
		}
	}
	return strings.Join(cells, "")
}
