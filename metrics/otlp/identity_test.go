package otlp

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func span16(taskID string, attempt int) string {
	id := SpanID(taskID, attempt)
	return hex.EncodeToString(id[:])
}

func TestTraceParent(t *testing.T) {
	e := &Exporter{config: Config{Sampler: Sampler{Parent: true, Ratio: 1}}}
	own := "00-0199e3a47c007abc8def0123456789ab-"
	for _, row := range []struct{ name, caller, want string }{
		{"a caller", caller, "00-4bf92f3577b34da6a3ce929d0e0e4736-%s-01"},
		{"not sampled", caller[:53] + "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-%s-00"},
		{"unknown flags", caller[:53] + "ff", "00-4bf92f3577b34da6a3ce929d0e0e4736-%s-03"},
		{"a later version", "cc" + caller[2:] + "-what-will-come", "00-4bf92f3577b34da6a3ce929d0e0e4736-%s-01"},
		{"none", "", own + "%s-01"},
		{"the forbidden version", "ff" + caller[2:], own + "%s-01"},
		{"version 0 with more", caller + "-x", own + "%s-01"},
		{"version 1 without its dash", "01" + caller[2:] + "x", own + "%s-01"},
		{"capitals", strings.ToUpper(caller), own + "%s-01"},
		{"no trace", "00-" + strings.Repeat("0", 32) + caller[35:], own + "%s-01"},
		{"no span", caller[:36] + strings.Repeat("0", 16) + "-01", own + "%s-01"},
		{"no dashes", strings.ReplaceAll(caller, "-", "0"), own + "%s-01"},
		{"cut", caller[:54], own + "%s-01"},
		{"a newline", caller[:53] + "0\n", own + "%s-01"},
	} {
		want := fmt.Sprintf(row.want, span16(taskID, 7))
		if got := e.TraceParent(row.caller, taskID, 7); got != want {
			t.Errorf("%s: got %s, want %s", row.name, got, want)
		}
		if strings.HasPrefix(want, own) {
			want = ""
		}
		if got := (*Exporter)(nil).TraceParent(row.caller, taskID, 7); got != want {
			t.Errorf("%s, and nobody collects spans: got %q, want %q", row.name, got, want)
		}
	}
	if got := e.TraceParent("", "not a UUID", 1); len(got) != len(caller) || got == e.TraceParent("", "another", 1) {
		t.Errorf("an id that is no UUID: got %s", got)
	}
}

// Two workers that make attempts of a task agree; two attempts and two tasks differ.
func TestSpanIDsAreStable(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{taskID, "0199e3a4-7c00-7abc-8def-0123456789ac"} {
		for n := -3; n < 100; n++ {
			seen[span16(id, n)] = true
		}
	}
	if len(seen) != 2*103 {
		t.Errorf("got %d ids, want %d", len(seen), 2*103)
	}
	if got, want := span16(taskID, 1), "9b26a4e6237f9c91"; got != want { // other versions of retry derive it, too
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSamplers(t *testing.T) {
	const notSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for _, row := range []struct {
		name    string
		sampler Sampler
		caller  string
		want    bool
	}{
		{"parentbased_always_on", Sampler{Parent: true, Ratio: 1}, "", true},
		{"parentbased_always_on, sampled", Sampler{Parent: true, Ratio: 1}, caller, true},
		{"parentbased_always_on, not sampled", Sampler{Parent: true, Ratio: 1}, notSampled, false},
		{"parentbased_always_off", Sampler{Parent: true}, "", false},
		{"parentbased_always_off, sampled", Sampler{Parent: true}, caller, true},
		{"always_on, not sampled", Sampler{Ratio: 1}, notSampled, true},
		{"always_off", Sampler{}, caller, false},
	} {
		e := &Exporter{config: Config{Sampler: row.sampler}, queue: make(chan span, 2)}
		e.Attempt(&Task{ID: taskID, Caller: row.caller}, &Attempt{Number: 1})
		e.Task(&Task{ID: taskID, Caller: row.caller}, &TaskEnd{Attempts: 1})
		if got := len(e.queue) == 2; got != row.want || len(e.queue) == 1 {
			t.Errorf("%s: got %d spans", row.name, len(e.queue))
		}
		if got := strings.HasSuffix(e.TraceParent(row.caller, taskID, 1), "-01"); got != row.want {
			t.Errorf("%s: the header says sampled: %v, want %v", row.name, got, row.want)
		}
	}
}

// The ids of tasks begin with the time and have fixed bits: a share of them is sampled all the same.
func TestARatioOfUUIDs(t *testing.T) {
	const tasks = 20000
	e := &Exporter{config: Config{Sampler: Sampler{Ratio: 0.25}}, queue: make(chan span, tasks)}
	for range tasks {
		e.Attempt(&Task{ID: uuid.Must(uuid.NewV7()).String()}, &Attempt{Number: 1})
	}
	if got := float64(len(e.queue)) / tasks; got < 0.22 || got > 0.28 {
		t.Errorf("got a share of %v, want 0.25", got)
	}
}

// A task that was requeued is another span, with its own attempts below it.
func TestARequeuedTask(t *testing.T) {
	e := &Exporter{config: Config{Sampler: Sampler{Ratio: 1}}, queue: make(chan span, 2)}
	task := &Task{ID: taskID, RequeuedAfter: 3}
	e.Attempt(task, &Attempt{Number: 4})
	e.Task(task, &TaskEnd{Attempts: 4, Status: "EXHAUSTED", Reason: "attempts"})
	attempt, again := <-e.queue, <-e.queue
	if attempt.ParentSpanID != again.SpanID || again.SpanID == span16(taskID, 0) || again.ParentSpanID != "" {
		t.Errorf("got attempt %+v of task %+v", attempt, again)
	}
	if again.Status == nil || again.Status.Message != "attempts" {
		t.Errorf("got status %v", again.Status)
	}
}

func FuzzParseParent(f *testing.F) {
	f.Add(caller)
	f.Add("01" + caller[2:] + "-x")
	f.Fuzz(func(t *testing.T, header string) {
		p, ok := parseParent(header)
		if !ok {
			return
		}
		if again := p.header(p.span); again[3:53] != header[3:53] {
			t.Errorf("%q: read as %s", header, again)
		}
	})
}
