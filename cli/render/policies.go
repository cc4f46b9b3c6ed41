package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// PolicyRow is a named policy in a list.
type PolicyRow struct {
	task.Policy
	Layer  string // built in, journal, config file
	File   string // of the config file
	Line   int
	Hides  []string // layers that have a policy of this name, too
	Damage error    // it cannot be read
}

// Policies draws the table of policies.
func Policies(w io.Writer, s Screen, rows []PolicyRow) error {
	lines := [][]string{{"NAME", "ATTEMPTS", "BACKOFF", "JITTER", "FROM"}}
	for _, r := range rows {
		attempts, curve, jitter := "no limit", brief(r.Backoff.Curve()), r.Backoff.Jitter()
		if r.Attempts > 0 {
			attempts = strconv.Itoa(r.Attempts)
		}
		if r.Damage != nil {
			attempts, curve, jitter = "-", s.Paint(Red, "cannot be read"), "-"
		}
		lines = append(lines, []string{brief(r.Name), attempts, curve, jitter, s.from(r)})
	}
	return s.WriteRows(w, lines)
}

// from says where a policy is defined, and which other definitions it hides.
func (s Screen) from(r PolicyRow) string {
	from := r.Layer
	if r.File != "" {
		from = text.Escape(r.File) + ":" + strconv.Itoa(r.Line)
	}
	if len(r.Hides) > 0 {
		from += s.Paint(Faint, ", hides "+strings.Join(r.Hides, ", "))
	}
	return from
}

type policyRowJSON struct {
	Name   string       `json:"name"`
	Source string       `json:"source"`
	File   *string      `json:"file"`
	Line   *int         `json:"line"`
	Hides  []string     `json:"hides"`
	Damage *string      `json:"damage"`
	Policy *task.Policy `json:"policy"`
}

// PoliciesJSON prints the list as JSON; docs/json.md describes it.
func PoliciesJSON(w io.Writer, rows []PolicyRow) error {
	list := []policyRowJSON{}
	for _, r := range rows {
		j := policyRowJSON{Name: r.Name, Source: r.Layer, File: present(r.File), Policy: &r.Policy}
		j.Hides = append([]string{}, r.Hides...) // none is [] in JSON, not null
		if r.File != "" {
			j.Line = &r.Line
		}
		if r.Damage != nil {
			j.Policy, j.Damage = nil, present(r.Damage.Error())
		}
		list = append(list, j)
	}
	return WriteJSON(w, map[string]any{"policies": list})
}

// Setting is a line of a policy as the config file has it.
type Setting struct {
	Key    string // "" for a header
	Text   string // TOML
	Origin string // where it is from
}

// PolicyTOML prints a policy as it can be pasted into a config file, with a comment beside each value.
func PolicyTOML(w io.Writer, s Screen, settings []Setting) error {
	var tables []string
	for len(settings) > 0 {
		end := 1
		for end < len(settings) && settings[end].Key != "" {
			end++
		}
		tables = append(tables, s.tomlTable(settings[:end]))
		settings = settings[end:]
	}
	_, err := io.WriteString(w, strings.Join(tables, "\n"))
	return err
}

// tomlTable aligns the values of one TOML table. The comments are aligned too, except after a long value.
func (s Screen) tomlTable(settings []Setting) string {
	keys, texts := 0, 0
	for _, one := range settings {
		keys = max(keys, len(one.Key))
	}
	lines := make([]string, len(settings))
	for i, one := range settings {
		lines[i] = one.Text
		if one.Key != "" {
			lines[i] = fmt.Sprintf("%-*s = %s", keys, one.Key, one.Text)
		}
		if width := lipgloss.Width(lines[i]); width <= maxCommentColumn {
			texts = max(texts, width)
		}
	}
	for i, one := range settings {
		if one.Origin != "" {
			gap := strings.Repeat(" ", max(0, texts-lipgloss.Width(lines[i])))
			lines[i] += gap + s.Paint(Faint, "  # "+text.Escape(one.Origin))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// maxCommentColumn is the last column at which comments are aligned.
const maxCommentColumn = 48

// PolicyShownJSON prints a resolved policy with where each value is from; docs/json.md describes it.
func PolicyShownJSON(w io.Writer, p *task.Policy, settings []Setting) error {
	sources := map[string]string{}
	for _, one := range settings[1:] {
		if one.Key == "" {
			break // the rules
		}
		sources[strings.ReplaceAll(one.Key, "-", "_")] = one.Origin
	}
	return WriteJSON(w, map[string]any{"policy": p, "source": settings[0].Origin, "sources": sources})
}

// Policy writes a policy in one line.
func Policy(p *task.Policy) string {
	attempts := "no limit of attempts"
	if p.Attempts > 0 {
		attempts = text.Count(p.Attempts, "attempt")
	}
	parts := []string{attempts, "backoff " + p.Backoff.Curve(), "jitter " + p.Backoff.Jitter()}
	limits := []struct {
		name  string
		limit time.Duration
	}{{"timeout", p.Timeout}, {"budget", p.Budget}, {"reset after", p.ResetAfter}}
	for _, l := range limits {
		if l.limit > 0 {
			parts = append(parts, l.name+" "+text.FormatDuration(l.limit.Round(time.Millisecond)))
		}
	}
	if p.Consecutive > 1 {
		parts = append(parts, text.Count(p.Consecutive, "success")+" in a row")
	}
	for _, l := range []struct {
		name string
		list []task.Condition
	}{{"success on", p.SuccessOn}, {"stop on", p.StopOn}, {"retry on", p.RetryOn}} {
		for _, c := range l.list {
			parts = append(parts, l.name+" "+brief(c.String()))
		}
	}
	for _, r := range p.Rules {
		parts = append(parts, "where "+brief(r.When.String())+": backoff "+r.Backoff.Curve()+", jitter "+r.Backoff.Jitter())
	}
	name := brief(p.Name)
	if name == "" { // a task of the API has it without one
		name = "inline"
	}
	return name + ": " + strings.Join(parts, ", ")
}
