package crash

import (
	"fmt"
	"slices"
	"time"

	"github.com/10f93571/retry/task"
)

// life is one task, as its children saw it and as the journal has it.
type life struct {
	record
	events   []event
	problems []string
}

func (l *life) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf("task %s (%s %s): ", l.ID, l.Status, l.Reason)+fmt.Sprintf(format, args...))
}

// check returns what is wrong. binary is that of retry: a task that runs it has no child of ours.
func check(records []record, events []event, told seen, binary string) (problems []string) {
	lives := map[string]*life{}
	for _, r := range records {
		lives[r.ID] = &life{record: r}
	}
	for _, e := range events {
		l := lives[e.Task]
		if l == nil {
			problems = append(problems, fmt.Sprintf("lost: the journal knows nothing of %+v", e))
			continue
		}
		l.events = append(l.events, e)
	}
	for id := range told.sights {
		if lives[id] == nil {
			problems = append(problems, fmt.Sprintf("lost: a reader saw the task %s", id))
		}
	}
	if n := successes(records, onceName); n > 1 {
		problems = append(problems, fmt.Sprintf("%d tasks of one name succeeded with --once", n))
	}
	for _, r := range records {
		l := lives[r.ID]
		l.checkJournal()
		l.checkChildren()
		if !slices.Contains(r.Command, binary) {
			l.checkOutcomes()
		}
		l.checkTold(told)
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
func (l *life) checkJournal() {
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
		if v := a.Decision.Verdict; v != task.VerdictInterrupted && v != task.VerdictCancelled && !a.Outcome.IsCrash() {
			counted++
		}
	}
	if l.Policy.Attempts > 0 && counted > l.Policy.Attempts {
		l.problem("used up %d attempts of %d", counted, l.Policy.Attempts)
	}
	l.checkEnd()
	if l.Reason == task.ReasonCrashes && crashes < task.MaxCrashes {
		l.problem("ended after %d crashes in a row", crashes)
	}
}

// checkEnd checks that the task ended as its last attempt did, or between two.
func (l *life) checkEnd() {
	if len(l.attempts) == 0 {
		return
	}
	last := l.attempts[len(l.attempts)-1].Decision.Verdict.Status()
	if last != l.Status && (last.Finished() || (l.Status != task.Cancelled && l.Status != task.Exhausted)) {
		l.problem("its last attempt led to %s", last)
	}
}

// checkChildren checks what the children say: each attempt started at most once, none beside another, none after the end, all
// with the same key and limits.
func (l *life) checkChildren() {
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

func (l *life) checkStart(e event) {
	if e.Attempt < 1 || e.Attempt > len(l.attempts) {
		l.problem("the journal has no attempt %d, which a child saw start: %+v", e.Attempt, e)
		return
	}
	if e.Key != l.IdempotencyKey {
		l.problem("the key is %s, attempt %d had %s", l.IdempotencyKey, e.Attempt, e.Key)
	}
	deadline, err := time.Parse(time.RFC3339, e.Deadline)
	if want, ok := l.Deadline(); err != nil || !ok || !deadline.Equal(want.Truncate(time.Millisecond)) {
		l.problem("the deadline is %v, attempt %d had %s", want, e.Attempt, e.Deadline)
	}
	interrupted := 0
	for _, a := range l.attempts[:e.Attempt-1] {
		if a.Decision.Verdict == task.VerdictInterrupted {
			interrupted++
		}
	}
	if e.Max-interrupted != l.Policy.Attempts {
		l.problem("attempt %d had %d attempts after %d interrupted ones, the policy has %d", e.Attempt, e.Max, interrupted, l.Policy.Attempts)
	}
	// What a dead owner had started may come to itself late: a resume waits for it only before it starts another.
	if l.Status != task.Cancelled && !l.attempts[e.Attempt-1].Outcome.IsCrash() && e.At.After(l.FinishedAt) {
		l.problem("attempt %d started after its end at %v: %+v", e.Attempt, l.FinishedAt, e)
	}
}

// checkOutcomes checks that an attempt of which the journal knows how it ended did so.
func (l *life) checkOutcomes() {
	stdin := "" // the sum of what all of them read
	if at := slices.Index(l.Command, argReads); at >= 0 {
		stdin = l.Command[at+1]
	}
	for _, a := range l.attempts {
		if a.Outcome.IsCrash() || a.Outcome.Signal != "" {
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

// checkTold checks that an end that somebody was told of is final, and that nothing seen was taken back.
func (l *life) checkTold(told seen) {
	if s, ok := told.sights[l.ID]; ok {
		if s.Status.Finished() && (s.Status != l.Status || s.Count != l.AttemptCount) {
			l.problem("has %d attempts, but was seen %s after %d", l.AttemptCount, s.Status, s.Count)
		}
		if s.Count > l.AttemptCount || s.Key != l.IdempotencyKey {
			l.problem("has %d attempts and the key %s, but was seen with %d and %s", l.AttemptCount, l.IdempotencyKey, s.Count, s.Key)
		}
	}
	if told.cancelled[l.ID] && l.Status != task.Cancelled {
		l.problem("was cancelled")
	}
	if told.refused[l.ID[max(0, len(l.ID)-shortID):]] && l.Status != task.Cancelled {
		l.problem("was taken from its owner, though nobody cancelled it")
	}
}

// shortID is how much of an id is in what retry says.
const shortID = 8
