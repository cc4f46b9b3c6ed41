package render

import (
	"io"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/metrics"
	"github.com/10f93571/retry/task"
)

// family is a family with a sample for each name.
type family struct {
	name, help string
	samples    []sample
}

type sample struct {
	under string // the name
	value float64
}

func (f *family) add(under string, value float64) {
	f.samples = append(f.samples, sample{under, value})
}

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Metrics writes the figures of a journal as OpenMetrics. All are gauges: tasks are pruned from the journal, so its
// counts also shrink. It uses only what the Prometheus text format has, too, since node_exporter's textfile collector
// reads that one.
func Metrics(w io.Writer, f *task.JournalFigures) error {
	t := metrics.NewText(metrics.OpenMetrics)
	writeJournal(t, f)
	for _, named := range nameFamilies(f.Names) {
		t.Family(named.name, named.help, metrics.TypeGauge)
		for _, s := range named.samples {
			t.Sample(s.value, metrics.Label{Name: "name", Value: s.under})
		}
	}
	_, err := w.Write(t.End())
	return err
}

func writeJournal(t *metrics.Text, f *task.JournalFigures) {
	t.Family("retry_tasks", "Tasks in the journal by status.", metrics.TypeGauge)
	for _, status := range metrics.Statuses() {
		t.Sample(float64(f.Tasks[task.Status(status)]), metrics.Label{Name: "status", Value: status})
	}
	single := func(name, help string, value float64) {
		t.Family(name, help, metrics.TypeGauge)
		t.Sample(value)
	}
	single("retry_tasks_interrupted", "Unfinished tasks whose owner is dead; retry resume goes on with them.",
		float64(f.Interrupted))
	single("retry_workers", "Workers that live.", float64(f.Workers))
	single("retry_queued_tasks", "Tasks that wait for a worker.", float64(f.Queued))
	t.Family("retry_journal_pruned", "Finished tasks that were removed from the journal since it was made.", metrics.TypeGauge)
	for _, status := range metrics.Statuses() {
		if task.Status(status).Finished() {
			t.Sample(float64(f.Pruned[task.Status(status)]), metrics.Label{Name: "status", Value: status})
		}
	}
	if !f.OldestUnfinished.IsZero() { // 0 would be a date
		single("retry_oldest_unfinished_timestamp_seconds", "When the oldest task that has not finished was made.",
			seconds(f.OldestUnfinished))
	}
	single("retry_journal_attempts", "Attempts in the journal.", float64(f.Attempts))
	single("retry_journal_waiting_seconds", "Time between the attempts in the journal.", f.Waiting.Seconds())
	single("retry_journal_database_bytes", "Size of the database.", float64(f.DatabaseBytes))
	single("retry_journal_wal_bytes", "Size of its write-ahead log.", float64(f.WALBytes))
}

// nameFamilies are about tasks that have a name, which bounds their number.
func nameFamilies(names []task.NameFigures) []family {
	named := func(name, help string) family { return family{name: name, help: help} }
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
	return []family{running, succeeded, success, finished, duration, attempts}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
