package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// metric is a family of samples. All are gauges: tasks are pruned from the journal, so its counts also shrink.
type metric struct {
	name, help string
	label      string // of each sample; empty for a single value
	samples    []sample
}

type sample struct {
	under string // the value of the label
	value float64
}

func (m *metric) add(under string, value float64) {
	m.samples = append(m.samples, sample{under, value})
}

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Metrics writes the figures of a journal as OpenMetrics. It uses only what the Prometheus text format has, too, since
// node_exporter's textfile collector reads that one.
func Metrics(w io.Writer, f *task.JournalFigures) error {
	var text bytes.Buffer
	for _, m := range slices.Concat(journalMetrics(f), nameMetrics(f.Names)) {
		m.write(&text)
	}
	text.WriteString("# EOF\n")
	_, err := w.Write(text.Bytes())
	return err
}

func (m *metric) write(text *bytes.Buffer) {
	if len(m.samples) == 0 {
		return
	}
	fmt.Fprintf(text, "# HELP %s %s\n# TYPE %[1]s gauge\n", m.name, m.help)
	for _, s := range m.samples {
		text.WriteString(m.name)
		if m.label != "" {
			fmt.Fprintf(text, `{%s="%s"}`, m.label, labelEscapes.Replace(s.under))
		}
		text.WriteString(" " + strconv.FormatFloat(s.value, 'f', -1, 64) + "\n")
	}
}

// labelEscapes are all escapes that both formats have. Both require UTF-8: text.Escape replaces what is not.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func journalMetrics(f *task.JournalFigures) []metric {
	tasks := metric{name: "retry_tasks", help: "Tasks in the journal by status.", label: "status"}
	for _, status := range []task.Status{
		task.Pending, task.InFlight, task.Succeeded, task.Exhausted, task.Failed, task.Cancelled,
	} {
		tasks.add(string(status), float64(f.Tasks[status]))
	}
	oldest := metric{
		name: "retry_oldest_unfinished_timestamp_seconds", help: "When the oldest task that has not finished was made.",
	}
	if !f.OldestUnfinished.IsZero() { // 0 would be a date
		oldest.add("", seconds(f.OldestUnfinished))
	}
	return []metric{
		tasks,
		single("retry_tasks_interrupted", "Unfinished tasks whose owner is dead; retry resume goes on with them.",
			float64(f.Interrupted)),
		oldest,
		single("retry_journal_attempts", "Attempts in the journal.", float64(f.Attempts)),
		single("retry_journal_waiting_seconds", "Time between the attempts in the journal.", f.Waiting.Seconds()),
		single("retry_journal_database_bytes", "Size of the database.", float64(f.DatabaseBytes)),
		single("retry_journal_wal_bytes", "Size of its write-ahead log.", float64(f.WALBytes)),
	}
}

func single(name, help string, value float64) metric {
	return metric{name: name, help: help, samples: []sample{{value: value}}}
}

// nameMetrics are about tasks that have a name, which bounds their number.
func nameMetrics(names []task.NameFigures) []metric {
	named := func(name, help string) metric { return metric{name: name, help: help, label: "name"} }
	running := named("retry_running", "Whether a task of the name runs or waits, and its retry is alive.")
	succeeded := named("retry_last_run_succeeded", "Whether the last run of the name that ended was a success.")
	success := named("retry_last_success_timestamp_seconds",
		"When the last run that was a success ended; 0 where the journal knows of none.")
	finished := named("retry_last_run_finished_timestamp_seconds", "When the last run ended.")
	duration := named("retry_last_run_duration_seconds", "How long the last run took, waits included.")
	attempts := named("retry_last_run_attempts", "Attempts of the last run.")
	seen := map[string]bool{}
	for _, n := range names {
		name := text.Escape(n.Name)
		if seen[name] { // two names may be equal after Escape, and samples must not repeat
			continue
		}
		seen[name] = true
		running.add(name, number(n.Running))
		// 0 is 1970, so an alert on the age also finds a job that never succeeded, or whose success was pruned.
		success.add(name, max(0, seconds(n.LastSuccess)))
		if n.FinishedAt.IsZero() {
			continue
		}
		succeeded.add(name, number(n.Succeeded))
		finished.add(name, seconds(n.FinishedAt))
		duration.add(name, n.Duration.Seconds())
		attempts.add(name, float64(n.Attempts))
	}
	return []metric{running, succeeded, success, finished, duration, attempts}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
