package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/10f93571/retry/task"
)

// taskRow is a task as the journal holds it, with its latest attempt.
type taskRow struct {
	number, count, created, finished, next, once, requeued, requeuedAfter, latest integer

	id, parent, name, kind, status, reason, request, policy, options, key sql.NullString

	argv, directory, environment []byte

	last attemptRow

	policies *policyTexts
}

// columns are the places to scan selectTasks into. None of them refuses a value: one bad row must not hide the others.
func (r *taskRow) columns() []any {
	return append([]any{&r.number, &r.id, &r.parent, &r.name, &r.kind, &r.status, &r.reason, &r.argv, &r.directory, &r.policy, &r.options, &r.key,
		&r.count, &r.created, &r.finished, &r.next, &r.once, &r.environment, &r.requeued, &r.requeuedAfter, &r.request, &r.latest}, r.last.columns()...)
}

// task is what can be read of the row; its Damage says what cannot.
func (r *taskRow) task() *task.Task {
	t := &task.Task{
		Number: r.number.Int64, ID: r.id.String, Parent: r.parent.String, Name: r.name.String, Once: r.once.Int64 != 0, Kind: task.Kind(r.kind.String),
		Command: splitStrings(r.argv), Directory: string(r.directory), Environment: splitStrings(r.environment), IdempotencyKey: r.key.String,
		CreatedAt: moment(r.created), RequeuedAt: moment(r.requeued), RequeuedAfter: int(r.requeuedAfter.Int64),
		Status: task.Status(r.status.String), Reason: task.Reason(r.reason.String), AttemptCount: int(r.count.Int64),
		FinishedAt: moment(r.finished), NextAttemptAt: moment(r.next), Last: r.last.attempt(),
	}
	for _, read := range []func(*task.Task) error{r.checkStatus, r.readPolicy, r.readOptions, r.checkCommand, r.readTarget, r.checkCount} {
		t.Damage = also(t.Damage, read(t))
	}
	return t
}

// also says two errors in one line; either may be nil.
func also(a, b error) error {
	if a == nil || b == nil {
		return errors.Join(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// unreadable is what a column's own error says of it, without a hint for who typed it: nobody did.
func unreadable(column string, err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		text = wrong.Value + " where another kind of value belongs" // without the names of our types
	}
	return fmt.Errorf("%s: %.200s", column, text)
}

func (r *taskRow) checkStatus(t *task.Task) error {
	if t.Status.Finished() && !slices.Contains(finishedStatuses, t.Status) {
		return fmt.Errorf("status: %.200q", t.Status)
	}
	return nil
}

func (r *taskRow) readPolicy(t *task.Task) error {
	p, err := r.policies.read(r.policy.String)
	if err == nil {
		t.Policy = p
	}
	return err
}

func (r *taskRow) readOptions(t *task.Task) error {
	if !r.options.Valid {
		return nil
	}
	options, err := unmarshalOptions(r.options.String)
	if err != nil {
		return unreadable("options", err)
	}
	t.Options = options
	return nil
}

func (r *taskRow) checkCommand(t *task.Task) error {
	if t.Kind == task.KindCommand && len(t.Command) == 0 {
		return errors.New("argv: it names no command")
	}
	return nil
}

// checkCount knows that a task's count is the number of its latest attempt: what follows from another one is absurd.
func (r *taskRow) checkCount(*task.Task) error {
	count, latest := r.count.Int64, r.latest.Int64
	switch {
	case !r.count.Valid || count < 0:
		return fmt.Errorf("attempt_count: %d", count)
	case count != latest:
		return fmt.Errorf("attempt_count: %d, and the latest attempt is %d", count, latest)
	case r.requeuedAfter.Int64 < 0 || r.requeuedAfter.Int64 > count:
		return fmt.Errorf("requeued_after: %d of %d attempts", r.requeuedAfter.Int64, count)
	}
	return nil
}

// attemptRow is an attempt as the journal holds it; all of it is null for a task without one.
type attemptRow struct {
	number, started, duration, exit, delay, shortened, success, rule integer

	signal, class, message, decision, process, exchange sql.NullString
}

// columns are the places to scan attemptColumns into.
func (r *attemptRow) columns() []any {
	return []any{&r.number, &r.started, &r.duration, &r.exit, &r.signal, &r.class, &r.message, &r.decision, &r.delay, &r.shortened, &r.process,
		&r.success, &r.rule, &r.exchange}
}

func (r *attemptRow) attempt() task.Attempt {
	a := task.Attempt{
		Number: int(r.number.Int64), StartedAt: moment(r.started), Process: r.process.String,
		Outcome: task.Outcome{
			Exit: task.NoExit, Signal: r.signal.String, Error: task.ErrorClass(r.class.String), Message: r.message.String,
			Duration: fromMicros(r.duration),
		},
		Decision: task.Decision{
			Verdict: task.Verdict(r.decision.String), Delay: fromMicros(r.delay), Shortened: r.shortened.Int64 != 0,
			Rule: int(r.rule.Int64), Success: r.success.Int64 != 0,
		},
	}
	if r.exit.Valid {
		a.Outcome.Exit = int(r.exit.Int64)
		a.Outcome.Reply = r.readExchange(a.Outcome.Duration)
	}
	if !r.success.Valid { // an older retry decided, which kept no more than this
		a.Decision.Success = a.Decision.Verdict == task.VerdictSucceeded || a.Outcome.ExitCode() == 0
	}
	return a
}

// policyTexts are the policies that were read lately, by the text in the journal. Thousands of tasks have few different ones, and to
// compile their expressions takes longer than to read the rest of a task.
type policyTexts struct {
	mutex sync.Mutex
	known map[string]task.Policy
}

// mostTexts bounds what is remembered. Beyond it all is forgotten.
const mostTexts = 64

// read returns the policy of a text. It is shared: nobody changes its lists.
func (c *policyTexts) read(text string) (task.Policy, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p, ok := c.known[text]; ok {
		return p, nil
	}
	p, err := unmarshalPolicy(text)
	if err != nil {
		return p, err
	}
	if c.known == nil || len(c.known) >= mostTexts {
		c.known = map[string]task.Policy{}
	}
	c.known[text] = p
	return p, nil
}

func unmarshalPolicy(text string) (p task.Policy, err error) {
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, unreadable("policy", err)
	}
	if p.Attempts < 0 || p.Consecutive < 0 || min(p.Timeout, p.KillAfter, p.Budget, p.ResetAfter) < 0 {
		return p, errors.New("policy: a limit is negative")
	}
	return p, nil
}
