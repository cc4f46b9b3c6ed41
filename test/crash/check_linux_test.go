package crash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// taskHistory is one task, as its children logged it and as the journal has it.
type taskHistory struct {
	record
	events   []event
	sent     []delivery
	problems []string
}

func (l *taskHistory) problem(format string, args ...any) {
	l.problems = append(l.problems,
		fmt.Sprintf("task %s (%s %s): ", l.ID, l.Status, l.Reason)+fmt.Sprintf(format, args...))
}

// check returns the problems of the task. binary is the path of retry: a task that runs it has no logged children.
func check(records []record, events []event, sent []delivery, observed observations, binary string) (problems []string) {
	histories := map[string]*taskHistory{}
	for _, r := range records {
		histories[r.ID] = &taskHistory{record: r}
	}
	for _, e := range events {
		l := histories[e.Task]
		if l == nil {
			problems = append(problems, fmt.Sprintf("lost: the journal knows nothing of %+v", e))
			continue
		}
		l.events = append(l.events, e)
	}
	for _, d := range sent {
		l := histories[d.task]
		if l == nil {
			problems = append(problems, fmt.Sprintf("lost: the journal knows nothing of %+v", d))
			continue
		}
		l.sent = append(l.sent, d)
	}
	for id := range observed.stored {
		if histories[id] == nil {
			problems = append(problems, fmt.Sprintf("lost: the task %s was acknowledged", id))
		}
	}
	for id := range observed.byID {
		if histories[id] == nil {
			problems = append(problems, fmt.Sprintf("lost: a reader saw the task %s", id))
		}
	}
	if n := successes(records, onceName); n > 1 {
		problems = append(problems, fmt.Sprintf("%d tasks of one name succeeded with --once", n))
	}
	for _, r := range records {
		l := histories[r.ID]
		l.checkJournal()
		l.checkChildren()
		l.checkSent()
		if r.Target == nil && !slices.Contains(r.Command, binary) {
			l.checkOutcomes()
		}
		l.checkObserved(observed)
		problems = append(problems, l.problems...)
	}
	return problems
}

func successes(records []record, name string) (n int) {
	for _, r := range records {
		if r.Name == name && r.Status == task.Succeeded {
			n++
		}
	}
	return n
}

// checkJournal checks what the journal says of the task by itself.
func (l *taskHistory) checkJournal() {
	if !l.Status.Finished() {
		l.problem("has not ended")
	}
	if len(l.attempts) != l.AttemptCount {
		l.problem("has %d attempts of %d", len(l.attempts), l.AttemptCount)
	}
	counted, crashes := 0, 0
	for i, a := range l.attempts {
		if a.Number != i+1 || a.Decision.Verdict == "" {
			l.problem("its attempt %d has the number %d and the decision %q", i+1, a.Number, a.Decision.Verdict)
		}
		if a.Outcome.IsCrash() {
			crashes++
		} else {
			crashes = 0
		}
		v := a.Decision.Verdict
		cutOff := v == task.VerdictInterrupted || v == task.VerdictCancelled || a.Outcome.IsCrash()
		if a.Number > l.RequeuedAfter && !cutOff {
			counted++
		}
	}
	if l.Policy.Attempts > 0 && counted > l.Policy.Attempts {
		l.problem("used up %d attempts of %d", counted, l.Policy.Attempts)
	}
	if l.Reason == task.ReasonAttempts && counted < l.Policy.Attempts {
		l.problem("ended after %d attempts of %d, and crashes do not count", counted, l.Policy.Attempts)
	}
	l.checkEnd()
	if l.Reason == task.ReasonCrashes && crashes < task.MaxCrashes {
		l.problem("ended after %d crashes in a row", crashes)
	}
}

// checkEnd checks that the task ended as its last attempt did, or between two.
func (l *taskHistory) checkEnd() {
	if len(l.attempts) == 0 {
		return
	}
	if l.Requeued() { // and ended before another attempt
		return
	}
	last := l.attempts[len(l.attempts)-1].Decision.Verdict.Status()
	if last != l.Status && (last.Finished() || (l.Status != task.Cancelled && l.Status != task.Exhausted)) {
		l.problem("its last attempt led to %s", last)
	}
}

// checkChildren checks the log of the children: each attempt started at most once, no two at the same time, none after
// the end, all with the same key and limits.
func (l *taskHistory) checkChildren() {
	latest := 0
	started := map[int]bool{}
	for _, e := range l.events {
		switch e.Kind {
		case eventStart:
			if started[e.Attempt] {
				l.problem("attempt %d started twice: %+v", e.Attempt, e)
			}
			started[e.Attempt] = true
			if e.Attempt < latest {
				l.problem("attempt %d started after attempt %d", e.Attempt, latest)
			}
			latest = max(latest, e.Attempt)
			l.checkStart(e)
		case eventOverlap:
			l.problem("attempt %d runs beside %s: %+v", e.Attempt, e.Detail, e)
		case eventEnd:
			if e.Attempt != latest {
				l.problem("attempt %d ended after attempt %d had started", e.Attempt, latest)
			}
		}
	}
}

func (l *taskHistory) checkStart(e event) {
	if e.Attempt < 1 || e.Attempt > len(l.attempts) {
		l.problem("the journal has no attempt %d, which a child saw start: %+v", e.Attempt, e)
		return
	}
	if e.Key != l.IdempotencyKey {
		l.problem("the key is %s, attempt %d had %s", l.IdempotencyKey, e.Attempt, e.Key)
	}
	if e.Attempt <= l.RequeuedAfter { // it had another budget
		return
	}
	deadline, err := time.Parse(time.RFC3339, e.Deadline)
	if want, ok := l.Deadline(); err != nil || !ok || !deadline.Equal(want.Truncate(time.Millisecond)) {
		l.problem("the deadline is %v, attempt %d had %s", want, e.Attempt, e.Deadline)
	}
	interrupted := 0
	for _, a := range l.attempts[l.RequeuedAfter : e.Attempt-1] {
		if a.Decision.Verdict == task.VerdictInterrupted {
			interrupted++
		}
	}
	if e.Max-l.RequeuedAfter-interrupted != l.Policy.Attempts {
		l.problem("attempt %d had %d attempts after %d interrupted ones, the policy has %d", e.Attempt, e.Max,
			interrupted, l.Policy.Attempts)
	}
	// A child of a dead owner may run late: a resume waits for it only before it starts another child.
	if l.Status != task.Cancelled && !l.attempts[e.Attempt-1].Outcome.IsCrash() && e.At.After(l.FinishedAt) {
		l.problem("attempt %d started after its end at %v: %+v", e.Attempt, l.FinishedAt, e)
	}
}

// checkOutcomes checks that each attempt ended as the journal says.
func (l *taskHistory) checkOutcomes() {
	stdin := "" // the sum of what all of them read
	if at := slices.Index(l.Command, argReads); at >= 0 {
		stdin = l.Command[at+1]
	}
	for _, a := range l.attempts {
		v := a.Decision.Verdict
		stopped := (v == task.VerdictInterrupted || v == task.VerdictCancelled) && a.Outcome.Exit == exitInternal // before it began
		if a.Outcome.IsCrash() || a.Outcome.Signal != "" || stopped {
			continue
		}
		at := slices.IndexFunc(l.events, func(e event) bool { return e.Kind == eventEnd && e.Attempt == a.Number })
		if at < 0 {
			l.problem("attempt %d: the journal has exit %d of a child that did not end", a.Number, a.Outcome.Exit)
			continue
		}
		e := l.events[at]
		if a.Outcome.Exit != e.Exit || a.Outcome.Exit != exitOf(l.ID, a.Number) {
			l.problem("attempt %d: the journal has exit %d, the child %d", a.Number, a.Outcome.Exit, e.Exit)
		}
		if e.Stdin != stdin {
			l.problem("attempt %d did not read what it was given", a.Number)
		}
	}
	if l.Status == task.Succeeded && exitOf(l.ID, l.AttemptCount) != 0 {
		l.problem("attempt %d was no success", l.AttemptCount)
	}
}

// checkObserved checks that a reported end is final, and that no task that was seen is missing.
func (l *taskHistory) checkObserved(observed observations) {
	if s, ok := observed.byID[l.ID]; ok {
		if s.Status.Finished() && l.RequeuedAt.IsZero() && (s.Status != l.Status || s.Count != l.AttemptCount) {
			l.problem("has %d attempts, but was seen %s after %d", l.AttemptCount, s.Status, s.Count)
		}
		if s.Count > l.AttemptCount || s.Key != l.IdempotencyKey {
			l.problem("has %d attempts and the key %s, but was seen with %d and %s", l.AttemptCount, l.IdempotencyKey,
				s.Count, s.Key)
		}
	}
	if observed.cancelled[l.ID] && l.RequeuedAt.IsZero() && l.Status != task.Cancelled {
		l.problem("was cancelled")
	}
	if observed.refused[l.ID[max(0, len(l.ID)-shortID):]] && l.RequeuedAt.IsZero() && l.Status != task.Cancelled {
		l.problem("was taken from its owner, though nobody cancelled it")
	}
}

// shortID is the length of the ids in the messages of retry.
const shortID = 8

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const testBinary = "/bin/retry"

// history is a correct run, which each test makes wrong: a first attempt that fails, a second whose owner dies, and a
// third that succeeds.
type history struct {
	records []record
	events  []event
	sent    []delivery
	seen    observations
}

// idOf returns the id of a task whose attempts end with these statuses.
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

func newHistory() *history {
	id := idOf(1, 1, 0)
	t := &task.Task{
		Number: 1, ID: id, Command: []string{"child"}, Policy: task.Policy{Attempts: 3, Budget: time.Hour},
		IdempotencyKey: "key",
		CreatedAt:      noon, History: task.History{Began: noon}, FinishedAt: noon.Add(time.Minute), Status: task.Succeeded,
		AttemptCount: 3,
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
	observed := newObservations()
	observed.byID[id] = observation{ID: id, Status: task.InFlight, Key: "key", Count: 2}
	return &history{
		records: []record{{t, []task.Attempt{
			attempt(1, task.Outcome{Exit: 1}, task.VerdictRetry),
			attempt(2, task.Crashed(), task.VerdictInterrupted),
			attempt(3, task.Outcome{Exit: 0}, task.VerdictSucceeded),
		}}},
		events: []event{
			line(eventStart, 1, 3, 0), line(eventEnd, 1, 3, 1), line(eventStart, 2, 3, 0), line(eventStart, 3, 4, 0),
			line(eventEnd, 3, 4, 0),
		},
		seen: observed,
	}
}

func (s *history) see(status task.Status, key string, count int) {
	id := s.records[0].ID
	s.seen.byID[id] = observation{ID: id, Status: status, Key: key, Count: count}
}

func (s *history) check() []string {
	return check(s.records, s.events, s.sent, s.seen, testBinary)
}

// check finds every kind of error, and none in a correct run.
func TestCheck(t *testing.T) {
	tests := map[string]struct {
		spoil func(s *history)
		want  string // in the one problem; empty for none
	}{
		"sound":           {spoil: func(*history) {}},
		"seen at its end": {spoil: func(s *history) { s.see(task.Succeeded, "key", 3) }},
		"survivor ends in peace": {
			spoil: func(s *history) { s.events = slices.Insert(s.events, 3, at(s.events[2], eventEnd)) },
		},
		"orphan comes late": {spoil: func(s *history) { s.events[2].At = noon.Add(time.Hour) }},

		"task lost": {
			spoil: func(s *history) { s.records, s.seen = nil, observations{}; s.events = s.events[:1] },
			want:  "knows nothing",
		},
		"task seen, then lost": {
			spoil: func(s *history) { s.seen.byID["other"] = observation{} }, want: "a reader saw",
		},
		"not ended": {
			spoil: func(s *history) { s.records[0].Status = task.Pending; s.records[0].FinishedAt = noon.Add(time.Hour) },
			want:  "has not ended",
		},
		"attempt lost": {
			spoil: func(s *history) { s.records[0].attempts = s.records[0].attempts[:2]; s.events = s.events[:3] },
			want:  "2 attempts of 3",
		},
		"start not in journal": {
			spoil: func(s *history) { s.events = append(s.events, started(s.events[4], 4)) },
			want:  "has no attempt 4",
		},
		"attempt undecided": {
			spoil: func(s *history) { s.records[0].attempts[1].Decision.Verdict = "" }, want: "decision",
		},
		"a gap": {
			spoil: func(s *history) { s.records[0].attempts[1].Number = 9 }, want: "has the number 9",
		},
		"too many attempts": {
			spoil: func(s *history) { s.records[0].attempts[1].Outcome.Exit = 1; s.tooMany() },
			want:  "used up 3 attempts of 2",
		},
		"crashes in vain": {
			spoil: func(s *history) { s.records[0].Reason = task.ReasonCrashes }, want: "after 0 crashes",
		},
		"started twice": {
			spoil: func(s *history) { s.events = slices.Insert(s.events, 1, s.events[0]) },
			want:  "started twice",
		},
		"two alive": {
			spoil: func(s *history) { s.events = slices.Insert(s.events, 4, at(s.events[3], eventOverlap)) },
			want:  "runs beside",
		},
		"survivor beside": {
			spoil: func(s *history) { s.events = slices.Insert(s.events, 4, at(s.events[2], eventEnd)) },
			want:  "ended after attempt 3",
		},
		"started in disorder": {
			spoil: func(s *history) { s.events[2], s.events[3], s.events[4] = s.events[3], s.events[4], s.events[2] },
			want:  "started after attempt 3",
		},
		"another key": {spoil: func(s *history) { s.events[3].Key = "other" }, want: "the key is"},
		"another deadline": {
			spoil: func(s *history) { s.events[3].Deadline = "2026-03-04T13:00:00.001Z" },
			want:  "the deadline is",
		},
		"no deadline":   {spoil: func(s *history) { s.events[0].Deadline = "" }, want: "the deadline is"},
		"another limit": {spoil: func(s *history) { s.events[3].Max = 3 }, want: "the policy has 3"},
		"after its end": {
			spoil: func(s *history) { s.events[3].At = noon.Add(time.Hour) }, want: "after its end",
		},
		"exit of another": {
			spoil: func(s *history) { s.records[0].attempts[0].Outcome.Exit = 3 },
			want:  "the journal has exit 3",
		},
		"exit of nobody": {
			spoil: func(s *history) { s.events = slices.Delete(s.events, 1, 2) }, want: "did not end",
		},
		"another stdin": {spoil: func(s *history) { s.events[1].Stdin = "some" }, want: "did not read"},
		"success of a failure": {
			spoil: func(s *history) { s.records[0].ID = idOf(1, 1, 1); s.rename() }, want: "was no success",
		},
		"end taken back": {
			spoil: func(s *history) { s.see(task.Cancelled, "key", 3) }, want: "was seen CANCELLED",
		},
		"ran after its end": {
			spoil: func(s *history) { s.see(task.Succeeded, "key", 2) }, want: "was seen SUCCEEDED after 2",
		},
		"attempt taken back": {
			spoil: func(s *history) { s.see(task.InFlight, "key", 4) }, want: "was seen with 4",
		},
		"cancelled in vain": {
			spoil: func(s *history) { s.seen.cancelled[s.records[0].ID] = true }, want: "was cancelled",
		},
		"owner robbed": {
			spoil: func(s *history) { s.seen.refused[s.records[0].ID] = true }, want: "taken from its owner",
		},
		"cancelled at its end": {
			spoil: func(s *history) { s.records[0].Status = task.Cancelled }, want: "led to SUCCEEDED",
		},
		"success of nobody": {
			spoil: func(s *history) { s.records[0].attempts[2].Decision.Verdict = task.VerdictRetry },
			want:  "led to PENDING",
		},
		"two successes of once": {
			spoil: func(s *history) { s.records[0].Name = onceName; s.records = append(s.records, s.records[0]) },
			want:  "succeeded with --once",
		},
		"key seen to be others": {spoil: func(s *history) { s.see(task.InFlight, "other", 3) }, want: "other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newHistory()
			test.spoil(s)
			problems := s.check()
			if test.want == "" {
				if len(problems) > 0 {
					t.Errorf("got %q, want no problems", problems)
				}
				return
			}
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, test.want) }) {
				t.Errorf("got %q, want %q", problems, test.want)
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
func (s *history) tooMany() {
	s.records[0].Policy.Attempts = 2
	s.records[0].attempts[1].Decision.Verdict = task.VerdictRetry
}

// rename gives the children the id of the task.
func (s *history) rename() {
	for i := range s.events {
		s.events[i].Task = s.records[0].ID
	}
}

func TestComplaint(t *testing.T) {
	tests := map[string]struct {
		a     process
		e     result
		sound bool
	}{
		"success":       {a: process{}, e: result{}, sound: true},
		"the command's": {a: process{}, e: result{exit: 3, stderr: "retry: gave up"}, sound: true},
		"killed, as it had to": {
			a: process{kill: killPlan{step: "x"}}, e: result{killed: true, exit: -1}, sound: true,
		},
		"killed for nothing": {a: process{}, e: result{killed: true, exit: -1}},
		"beaten to it": {
			a: process{}, e: result{exit: exitInternal, stderr: "retry: resume x: the task is running"},
			sound: true,
		},
		"error of its own":  {a: process{}, e: result{exit: exitInternal, stderr: "retry: no room"}},
		"without a journal": {a: process{}, e: result{stderr: "retry: warning: going on without a journal: x"}},
		"panic":             {a: process{}, e: result{exit: 2, stderr: "panic: x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.a.problem(test.e); (got == "") != test.sound {
				t.Errorf("got %q, want a problem: %v", got, !test.sound)
			}
		})
	}
}
