package crash

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const testBinary = "/bin/retry"

// story is a sound run, for a test to spoil: a first attempt that fails, a second whose owner dies, and a third that succeeds.
type story struct {
	records []record
	events  []event
	seen    seen
}

// idOf returns the id of a task whose attempts end so.
func idOf(exits ...int) string {
	for n := 0; ; n++ {
		id := strconv.Itoa(n)
		if ends(id, exits) {
			return id
		}
	}
}

func ends(id string, exits []int) bool {
	for i, exit := range exits {
		if exitOf(id, i+1) != exit {
			return false
		}
	}
	return true
}

func newStory() *story {
	id := idOf(1, 1, 0)
	t := &task.Task{
		Number: 1, ID: id, Command: []string{"child"}, Policy: task.Policy{Attempts: 3, Budget: time.Hour}, IdempotencyKey: "key",
		CreatedAt: noon, History: task.History{Began: noon}, FinishedAt: noon.Add(time.Minute), Status: task.Succeeded, AttemptCount: 3,
	}
	attempt := func(n int, o task.Outcome, v task.Verdict) task.Attempt {
		return task.Attempt{Number: n, Outcome: o, Decision: task.Decision{Verdict: v}}
	}
	line := func(kind string, n, limit, exit int) event {
		return event{
			Kind: kind, Task: id, Attempt: n, Key: "key", Max: limit, Deadline: "2026-03-04T13:00:00.000Z",
			At: noon.Add(time.Second), Exit: exit,
		}
	}
	told := newSeen()
	told.sights[id] = sight{ID: id, Status: task.InFlight, Key: "key", Count: 2}
	return &story{
		records: []record{{t, []task.Attempt{
			attempt(1, task.Outcome{Exit: 1}, task.VerdictRetry),
			attempt(2, task.Crashed(), task.VerdictInterrupted),
			attempt(3, task.Outcome{Exit: 0}, task.VerdictSucceeded),
		}}},
		events: []event{
			line(eventStart, 1, 3, 0), line(eventEnd, 1, 3, 1), line(eventStart, 2, 3, 0), line(eventStart, 3, 4, 0), line(eventEnd, 3, 4, 0),
		},
		seen: told,
	}
}

func (s *story) see(status task.Status, key string, count int) {
	id := s.records[0].ID
	s.seen.sights[id] = sight{ID: id, Status: status, Key: key, Count: count}
}

func (s *story) check() []string {
	return check(s.records, s.events, s.seen, testBinary)
}

// Each thing that must not happen is found, and a sound run is sound.
func TestCheck(t *testing.T) {
	tests := map[string]struct {
		spoil func(s *story)
		want  string // in the one problem; empty for none
	}{
		"sound":                  {func(*story) {}, ""},
		"seen at its end":        {func(s *story) { s.see(task.Succeeded, "key", 3) }, ""},
		"survivor ends in peace": {func(s *story) { s.events = slices.Insert(s.events, 3, at(s.events[2], eventEnd)) }, ""},
		"orphan comes late":      {func(s *story) { s.events[2].At = noon.Add(time.Hour) }, ""},

		"task lost":             {func(s *story) { s.records, s.seen = nil, seen{}; s.events = s.events[:1] }, "knows nothing"},
		"task seen, then lost":  {func(s *story) { s.seen.sights["other"] = sight{} }, "a reader saw"},
		"not ended":             {func(s *story) { s.records[0].Status = task.Pending; s.records[0].FinishedAt = noon.Add(time.Hour) }, "has not ended"},
		"attempt lost":          {func(s *story) { s.records[0].attempts = s.records[0].attempts[:2]; s.events = s.events[:3] }, "2 attempts of 3"},
		"start not in journal":  {func(s *story) { s.events = append(s.events, started(s.events[4], 4)) }, "has no attempt 4"},
		"attempt undecided":     {func(s *story) { s.records[0].attempts[1].Decision.Verdict = "" }, "decision"},
		"a gap":                 {func(s *story) { s.records[0].attempts[1].Number = 9 }, "has the number 9"},
		"too many attempts":     {func(s *story) { s.records[0].attempts[1].Outcome.Exit = 1; s.tooMany() }, "used up 3 attempts of 2"},
		"crashes in vain":       {func(s *story) { s.records[0].Reason = task.ReasonCrashes }, "after 0 crashes"},
		"started twice":         {func(s *story) { s.events = slices.Insert(s.events, 1, s.events[0]) }, "started twice"},
		"two alive":             {func(s *story) { s.events = slices.Insert(s.events, 4, at(s.events[3], eventOverlap)) }, "runs beside"},
		"survivor beside":       {func(s *story) { s.events = slices.Insert(s.events, 4, at(s.events[2], eventEnd)) }, "ended after attempt 3"},
		"started in disorder":   {func(s *story) { s.events[2], s.events[3], s.events[4] = s.events[3], s.events[4], s.events[2] }, "started after attempt 3"},
		"another key":           {func(s *story) { s.events[3].Key = "other" }, "the key is"},
		"another deadline":      {func(s *story) { s.events[3].Deadline = "2026-03-04T13:00:00.001Z" }, "the deadline is"},
		"no deadline":           {func(s *story) { s.events[0].Deadline = "" }, "the deadline is"},
		"another limit":         {func(s *story) { s.events[3].Max = 3 }, "the policy has 3"},
		"after its end":         {func(s *story) { s.events[3].At = noon.Add(time.Hour) }, "after its end"},
		"exit of another":       {func(s *story) { s.records[0].attempts[0].Outcome.Exit = 3 }, "the journal has exit 3"},
		"exit of nobody":        {func(s *story) { s.events = slices.Delete(s.events, 1, 2) }, "did not end"},
		"another stdin":         {func(s *story) { s.events[1].Stdin = "some" }, "did not read"},
		"success of a failure":  {func(s *story) { s.records[0].ID = idOf(1, 1, 1); s.rename() }, "was no success"},
		"end taken back":        {func(s *story) { s.see(task.Cancelled, "key", 3) }, "was seen CANCELLED"},
		"ran after its end":     {func(s *story) { s.see(task.Succeeded, "key", 2) }, "was seen SUCCEEDED after 2"},
		"attempt taken back":    {func(s *story) { s.see(task.InFlight, "key", 4) }, "was seen with 4"},
		"cancelled in vain":     {func(s *story) { s.seen.cancelled[s.records[0].ID] = true }, "was cancelled"},
		"owner robbed":          {func(s *story) { s.seen.refused[s.records[0].ID] = true }, "taken from its owner"},
		"cancelled at its end":  {func(s *story) { s.records[0].Status = task.Cancelled }, "led to SUCCEEDED"},
		"success of nobody":     {func(s *story) { s.records[0].attempts[2].Decision.Verdict = task.VerdictRetry }, "led to PENDING"},
		"two successes of once": {func(s *story) { s.records[0].Name = onceName; s.records = append(s.records, s.records[0]) }, "succeeded with --once"},
		"key seen to be others": {func(s *story) { s.see(task.InFlight, "other", 3) }, "other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.spoil(s)
			problems := s.check()
			if test.want == "" {
				if len(problems) > 0 {
					t.Errorf("%q", problems)
				}
				return
			}
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, test.want) }) {
				t.Errorf("%q, want %q", problems, test.want)
			}
		})
	}
}

func at(e event, kind string) event {
	e.Kind, e.Exit = kind, exitOf(e.Task, e.Attempt)
	return e
}

func started(e event, attempt int) event {
	e.Kind, e.Attempt = eventStart, attempt
	return e
}

// tooMany counts the attempt in the middle, and leaves room for two.
func (s *story) tooMany() {
	s.records[0].Policy.Attempts = 2
	s.records[0].attempts[1].Decision.Verdict = task.VerdictRetry
}

// rename gives the children the id of the task.
func (s *story) rename() {
	for i := range s.events {
		s.events[i].Task = s.records[0].ID
	}
}

func TestComplaint(t *testing.T) {
	tests := map[string]struct {
		a     actor
		e     end
		sound bool
	}{
		"success":              {actor{}, end{}, true},
		"the command's":        {actor{}, end{exit: 3, stderr: "retry: gave up"}, true},
		"killed, as it had to": {actor{fate: fate{step: "x"}}, end{killed: true, exit: -1}, true},
		"killed for nothing":   {actor{}, end{killed: true, exit: -1}, false},
		"beaten to it":         {actor{}, end{exit: exitInternal, stderr: "retry: resume x: the task is running"}, true},
		"error of its own":     {actor{}, end{exit: exitInternal, stderr: "retry: no room"}, false},
		"without a journal":    {actor{}, end{stderr: "retry: warning: going on without a journal: x"}, false},
		"panic":                {actor{}, end{exit: 2, stderr: "panic: x"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.a.complaint(test.e); (got == "") != test.sound {
				t.Errorf("got %q", got)
			}
		})
	}
}
