package render

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// The lines that both OpenMetrics 1.0 and the Prometheus text format 0.0.4 allow, of those that gauges need.
var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\\"]+)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"\})? (-?[0-9]+(?:\.[0-9]+)?)$`)
)

// reserved are endings that belong to other types of metric.
var reserved = []string{"_total", "_created", "_count", "_sum", "_bucket", "_info", "_gsum", "_gcount"}

// parseMetrics reads a text as strictly as both formats together. It returns the samples, by "name label value".
func parseMetrics(text string) (samples map[string]float64, err error) {
	samples = map[string]float64{}
	body, ended := strings.CutSuffix(text, "# EOF\n")
	if !ended || !utf8.ValidString(text) {
		return nil, fmt.Errorf("it does not end with EOF, or is no UTF-8")
	}
	var family, previous string
	seen := map[string]bool{}
	for line := range strings.Lines(body) {
		line, whole := strings.CutSuffix(line, "\n")
		help, kind, sample := helpLine.FindStringSubmatch(line), typeLine.FindStringSubmatch(line),
			sampleLine.FindStringSubmatch(line)
		switch {
		case !whole:
			err = fmt.Errorf("an unfinished line")
		case help != nil && previous == "type":
			err = fmt.Errorf("a family without a sample before it")
		case help != nil:
			family, err = help[1], once(seen, "family "+help[1])
			if slices.ContainsFunc(reserved, func(end string) bool { return strings.HasSuffix(family, end) }) ||
				!strings.HasPrefix(family, "retry_") {
				err = fmt.Errorf("the name is another type's")
			}
		case kind != nil:
			if previous != "help" || kind[1] != family {
				err = fmt.Errorf("a type without its help")
			}
		case sample != nil:
			if sample[1] != family || previous == "help" {
				err = fmt.Errorf("a sample outside its family")
			} else {
				key := strings.Join(sample[1:4], " ")
				err = once(seen, key)
				samples[strings.TrimSpace(key)], _ = strconv.ParseFloat(sample[4], 64)
			}
		default:
			err = fmt.Errorf("neither help, type nor sample")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, line)
		}
		previous = kindOf(help, kind)
	}
	if previous == "type" {
		return nil, fmt.Errorf("the last family has no sample")
	}
	return samples, nil
}

func kindOf(help, kind []string) string {
	switch {
	case help != nil:
		return "help"
	case kind != nil:
		return "type"
	}
	return "sample"
}

func once(seen map[string]bool, key string) error {
	if seen[key] {
		return fmt.Errorf("twice")
	}
	seen[key] = true
	return nil
}

// metricsOf writes figures and reads them back.
func metricsOf(t interface {
	Helper()
	Fatalf(string, ...any)
}, f *task.JournalFigures) map[string]float64 {
	t.Helper()
	var b strings.Builder
	if err := Metrics(&b, f); err != nil {
		t.Fatalf("%v", err)
	}
	samples, err := parseMetrics(b.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return samples
}

func TestTheParserOfMetricsIsStrict(t *testing.T) {
	const head = "# HELP retry_x X.\n# TYPE retry_x gauge\n"
	for name, text := range map[string]string{
		"no end":              head + "retry_x 1\n",
		"something after it":  head + "retry_x 1\n# EOF\n\n",
		"no sample":           head + "# EOF\n",
		"no sample, then one": head + "# HELP retry_y Y.\n# TYPE retry_y gauge\nretry_y 1\n# EOF\n",
		"a blank line":        head + "\nretry_x 1\n# EOF\n",
		"no type":             "# HELP retry_x X.\nretry_x 1\n# EOF\n",
		"no help":             "# TYPE retry_x gauge\nretry_x 1\n# EOF\n",
		"another's type":      "# HELP retry_x X.\n# TYPE retry_y gauge\nretry_x 1\n# EOF\n",
		"a label twice":       head + "retry_x{name=\"a\"} 1\nretry_x{name=\"a\"} 2\n# EOF\n",
		"a family twice":      head + "retry_x 1\n" + head + "# EOF\n",
		"another's sample":    head + "retry_y 1\n# EOF\n",
		"a raw quote":         head + "retry_x{name=\"\"\"} 1\n# EOF\n",
		"an unknown escape":   head + `retry_x{name="\t"} 1` + "\n# EOF\n",
		"a raw newline":       head + "retry_x{name=\"a\nb\"} 1\n# EOF\n",
		"invalid UTF-8":       head + "retry_x{name=\"\xff\"} 1\n# EOF\n",
		"no value":            head + "retry_x \n# EOF\n",
		"a name of a counter": "# HELP retry_x_total X.\n# TYPE retry_x_total gauge\nretry_x_total 1\n# EOF\n",
	} {
		if samples, err := parseMetrics(text); err == nil {
			t.Errorf("%s: got %v", name, samples)
		}
	}
}

func TestMetrics(t *testing.T) {
	at := time.UnixMilli(1_767_323_045_678)
	f := task.JournalFigures{
		Tasks: map[task.Status]int{task.Succeeded: 198000, task.Failed: 2}, Interrupted: 3, OldestUnfinished: at,
		Attempts: 1_000_000, Workers: 2, Queued: 9, Pruned: map[task.Status]int{task.Failed: 7},
		Waiting: 90 * time.Second, DatabaseBytes: 129_069_056, WALBytes: 4096,
		Names: []task.NameFigures{
			{Name: "nightly", Running: true, FinishedAt: at, LastSuccess: at.Add(-time.Hour),
				Duration: 1500 * time.Millisecond, Attempts: 5},
			{Name: "new"},
			{Name: "fine", FinishedAt: at, LastSuccess: at, Succeeded: true},
		},
	}
	got := metricsOf(t, &f)
	want := map[string]float64{
		"retry_tasks status PENDING": 0, "retry_tasks status IN_FLIGHT": 0, "retry_tasks status SUCCEEDED": 198000,
		"retry_tasks status EXHAUSTED": 0, "retry_tasks status FAILED": 2, "retry_tasks status CANCELLED": 0,
		"retry_tasks_interrupted": 3, "retry_oldest_unfinished_timestamp_seconds": 1767323045.678,
		"retry_journal_attempts":        1e6,
		"retry_journal_waiting_seconds": 90, "retry_journal_database_bytes": 129069056, "retry_journal_wal_bytes": 4096,
		"retry_running name nightly": 1, "retry_running name new": 0, "retry_running name fine": 0,
		"retry_last_run_succeeded name nightly": 0, "retry_last_run_succeeded name fine": 1,
		"retry_last_success_timestamp_seconds name nightly":      1767319445.678,
		"retry_last_success_timestamp_seconds name new":          0,
		"retry_last_success_timestamp_seconds name fine":         1767323045.678,
		"retry_last_run_finished_timestamp_seconds name nightly": 1767323045.678,
		"retry_last_run_finished_timestamp_seconds name fine":    1767323045.678,
		"retry_last_run_duration_seconds name nightly":           1.5, "retry_last_run_duration_seconds name fine": 0,
		"retry_last_run_attempts name nightly": 5, "retry_last_run_attempts name fine": 0,
	}
	for _, status := range []string{"SUCCEEDED", "EXHAUSTED", "CANCELLED"} {
		want["retry_journal_pruned status "+status] = 0
	}
	want["retry_journal_pruned status FAILED"], want["retry_workers"], want["retry_queued_tasks"] = 7, 2, 9
	for key, value := range want {
		if had, ok := got[key]; !ok || had != value {
			t.Errorf("%s: got %v (%v), want %v", key, had, ok, value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d samples, want %d: %v", len(got), len(want), got)
	}
}

// A family without a sample is left out, and a time that never was has none: 0 would be 1970.
func TestMetricsOfAnEmptyJournal(t *testing.T) {
	got := metricsOf(t, &task.JournalFigures{})
	if _, ok := got["retry_oldest_unfinished_timestamp_seconds"]; ok || len(got) != 17 {
		t.Errorf("got %v", got)
	}
}

// Whatever names hold, the text is valid and nothing in it reaches a terminal raw.
func TestMetricsOfNastyNames(t *testing.T) {
	f := task.JournalFigures{Names: []task.NameFigures{
		{Name: rude}, {Name: "\xff"}, {Name: `\xff`}, {Name: `a"} 1`}, {Name: "a\nretry_tasks 9"}, {Name: "日本"},
		{Name: "\x00"}, {Name: `\`},
	}}
	for _, name := range nasty {
		f.Names = append(f.Names, task.NameFigures{Name: name})
	}
	got := metricsOf(t, &f)
	for _, want := range []string{
		`retry_running name \\x1b]0;title\\x07\\x1b[2J\\u202e\\u009b\\xff\\r\\n\"\\`, `retry_running name \\xff`,
		`retry_running name a\"} 1`,
		`retry_running name a\\nretry_tasks 9`, `retry_running name 日本`, `retry_running name \\x00`, `retry_running name \\`,
	} {
		if _, ok := got[want]; !ok {
			t.Errorf("no %s in %v", want, got)
		}
	}
}

func TestMetricsAreValidForAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := task.JournalFigures{Waiting: time.Duration(rapid.Int64Min(0).Draw(t, "waiting")),
			DatabaseBytes: rapid.Int64Min(0).Draw(t, "bytes")}
		for range rapid.IntRange(0, 5).Draw(t, "names") {
			name := string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\\n\x1b\xffn{}"))), 1,
				6).Draw(t, "name"))
			f.Names = append(f.Names, task.NameFigures{Name: name, FinishedAt: now,
				Duration: time.Duration(rapid.Int64Min(0).Draw(t, "took"))})
		}
		for key := range metricsOf(t, &f) {
			if text.Escape(key) != key {
				t.Fatalf("got %q, want it escaped", key)
			}
		}
	})
}
