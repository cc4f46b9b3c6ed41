package sqlite

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// selectTasks reads tasks with the latest attempt of each, for scanTask.
const selectTasks = "SELECT " + taskColumns + `,
	(SELECT max(number) FROM attempts WHERE task = t.number), ` + attemptColumns + `
	FROM tasks t LEFT JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count `

// selectWaiting reads tasks that wait in the queue, without their attempts, for scanWaiting. Most are requests, of
// which the columns before others say all: a claim reads no more of those. These are rare ones, where any is set.
const selectWaiting = `SELECT t.number, t.id, t.kind, t.policy, coalesce(t.options, '{}'), t.idempotency_key,
	t.attempt_count, t.created_at, t.next_attempt_at, t.request, t.url, t.body, t.partition, t.payload, t.directory,
	t.kind = 'command' OR t.queue <> 1 OR t.once OR t.requeued_after OR t.requeued_at IS NOT NULL OR t.reason IS NOT NULL
		OR t.tags IS NOT NULL OR coalesce(t.name, t.parent) IS NOT NULL OR coalesce(length(t.environment), 0)
	FROM tasks t WHERE t.status = 'PENDING' AND t.queue > 0 `

const taskColumns = `t.number, t.id, t.parent, t.name, t.kind, t.status, t.reason, t.argv, t.directory, t.policy,
	coalesce(t.options, '{}'), t.idempotency_key, t.attempt_count, t.created_at, t.finished_at, t.next_attempt_at, t.once,
	t.environment, t.requeued_at, t.requeued_after, t.request, t.url, t.body, t.queue, t.partition, t.tags, t.payload,
	t.worker, t.nonce`

// scanWaiting reads a row of selectWaiting. rest says that selectTasks has to be asked for the whole task.
func (j *Journal) scanWaiting(scan conn.Scanner) (t *task.Task, rest bool, err error) {
	t = &task.Task{Status: task.Pending, Queue: task.QueueWorker}
	var policy, options, request string
	var apart task.Apart
	err = scan(&t.Number, &t.ID, (*string)(&t.Kind), &policy, &options, &t.IdempotencyKey,
		&t.AttemptCount, &t.CreatedAt, &t.NextAttemptAt, &request, &apart.URL, &apart.Body,
		&t.Partition, &t.Payload, &t.Directory, &rest)
	if err == nil && !rest {
		t.Damage = j.decode(t, policy, options, request, apart)
	}
	return t, rest, err
}

// scanTask reads a row of selectTasks. What it cannot read is the task's Damage: a bad row must not hide the others.
func (j *Journal) scanTask(scan conn.Scanner) (*task.Task, error) {
	t := &task.Task{}
	var argv, environment, tags []byte
	var policy, options, request string
	var apart task.Apart
	var latest int
	var last attemptRow
	columns := []any{&t.Number, &t.ID, &t.Parent, &t.Name, (*string)(&t.Kind), (*string)(&t.Status), (*string)(&t.Reason),
		&argv, &t.Directory, &policy, &options, &t.IdempotencyKey, &t.AttemptCount,
		&t.CreatedAt, &t.FinishedAt, &t.NextAttemptAt, &t.Once, &environment, &t.RequeuedAt, &t.RequeuedAfter, &request,
		&apart.URL, &apart.Body, (*int)(&t.Queue), &t.Partition, &tags, &t.Payload, &t.Worker, &t.Nonce, &latest}
	err := scan(append(columns, last.columns()...)...)
	if err != nil {
		return nil, err
	}
	t.Command, t.Environment, t.Last = splitStrings(argv), splitStrings(environment), last.attempt()
	j.findNote(t)
	if len(tags) > 0 {
		_ = json.Unmarshal(tags, &t.Tags) // a task does the same without its tags
	}
	t.Damage = cmp.Or(j.decode(t, policy, options, request, apart), checkCount(t, latest))
	return t, nil
}

// decode adds to a task what its columns hold as JSON. It returns the first mistake.
func (j *Journal) decode(t *task.Task, policy, options, request string, apart task.Apart) error {
	var damage [3]error
	t.Policy, damage[0] = j.known.policy(policy)
	t.Options, damage[1] = j.known.option(options)
	if t.Kind != task.KindCommand {
		t.Target, damage[2] = j.known.target(t.Kind, request, apart)
	} else if len(t.Command) == 0 {
		damage[2] = errors.New("argv: it names no command")
	}
	t.History = task.History{
		Began: t.Began(), Expires: t.Expiry(), Made: t.RequeuedAfter, Phase: t.Options.Phase(phase(t.Number, j.salt)),
	}
	return cmp.Or(damage[:]...)
}

// decoded keeps what was decoded last of the columns that many rows have in common: to compile the expressions of a
// policy takes longer than to read a row, and so does the JSON of a request.
type decoded struct {
	mutex    sync.Mutex
	policies map[string]task.Policy
	options  map[string]task.Options
	targets  map[string]task.Target // heads
}

const (
	mostDecoded = 64      // of the policies, and of the options
	mostTargets = 1024    // a service may send with many headers
	longestKept = 2 << 10 // of the texts of targets: those with a body in them are read once
)

func (d *decoded) policy(stored string) (task.Policy, error) {
	return recall(&d.mutex, &d.policies, mostDecoded, stored, unmarshalPolicy)
}

func (d *decoded) option(stored string) (task.Options, error) {
	return recall(&d.mutex, &d.options, mostDecoded, stored, unmarshalOptions)
}

// target returns a target of its own for each row.
func (d *decoded) target(kind task.Kind, stored string, apart task.Apart) (target task.Target, err error) {
	decode := func(stored string) (task.Target, error) { return task.DecodeTarget(kind, []byte(stored)) }
	switch {
	case stored == "":
		return nil, errors.New("request: there is none")
	case len(stored) > longestKept:
		target, err = decode(stored)
	default:
		target, err = recall(&d.mutex, &d.targets, mostTargets, stored, decode)
	}
	if err == nil && target.Kind() != kind { // one of another kind has the same text
		target, err = decode(stored)
	}
	if err == nil {
		target, err = task.JoinTarget(target, apart)
	}
	if err != nil {
		return nil, unreadable("request", err)
	}
	return target, nil
}

// recall decodes a text, unless it is among those that were decoded. It keeps so many of them at most.
func recall[T any](mutex *sync.Mutex, known *map[string]T, most int, stored string,
	decode func(string) (T, error)) (T, error) {
	mutex.Lock()
	defer mutex.Unlock()
	if value, found := (*known)[stored]; found {
		return value, nil
	}
	value, err := decode(stored)
	if err == nil {
		if *known == nil || len(*known) >= most {
			*known = map[string]T{}
		}
		(*known)[stored] = value
	}
	return value, err
}

// findNote looks for the processes of an attempt that was cut off before they were stored, be it before the attempt
// itself was.
func (j *Journal) findNote(t *task.Task) {
	if j.owners == nil || t.Status == task.Succeeded || t.Kind != task.KindCommand {
		return
	}
	key, process := j.owners.Noted(t.Number)
	id, text, _ := strings.Cut(key, " ")
	number, _ := strconv.Atoi(text)
	switch {
	case id != t.ID:
	case number > t.Last.Number:
		t.Last.Later, t.Last.Process = number, process
	case number == t.Last.Number && t.Last.Process == "" && t.Last.CutOff():
		t.Last.Process = process
	}
}

// checkCount finds damage: a task's attempt count is the number of its latest attempt.
func checkCount(t *task.Task, latest int) error {
	switch {
	case t.AttemptCount != latest:
		return fmt.Errorf("attempt_count: %d, and the latest attempt is %d", t.AttemptCount, latest)
	case t.RequeuedAfter < 0 || t.RequeuedAfter > t.AttemptCount:
		return fmt.Errorf("requeued_after: %d of %d attempts", t.RequeuedAfter, t.AttemptCount)
	}
	return nil
}

// unreadable describes a column's error without its hint, which is for a person who typed the text.
func unreadable(column string, err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		text = wrong.Value + " where another kind of value belongs" // rather than the names of Go types
	}
	return fmt.Errorf("%s: %.200s", column, text)
}

func splitStrings(joined []byte) []string {
	if len(joined) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(joined), "\x00"), "\x00")
}

func unmarshalOptions(stored string) (task.Options, error) {
	var s storedOptions
	if stored == "{}" { // those of a plain command
		return s.Options, nil
	}
	if err := json.Unmarshal([]byte(stored), &s); err != nil {
		return task.Options{}, unreadable("options", err)
	}
	s.Options.OnStart, s.Options.OnRetry = string(s.OnStart), string(s.OnRetry)
	s.Options.OnSuccess, s.Options.OnFailure = string(s.OnSuccess), string(s.OnFailure)
	s.Options.Report, s.Options.Source.Path = string(s.Report), string(s.Path)
	return s.Options, nil
}

const attemptColumns = `a.number, a.started_at, a.duration, a.exit, a.signal, a.error, a.message, a.decision, a.delay,
	a.shortened, a.process, a.success, a.rule, a.exchange, a.worker`

// attemptRow is a row of attemptColumns, all NULL for a task without an attempt. Two columns of output may follow.
type attemptRow struct {
	task.Attempt
	exit, success sql.NullInt64
	exchange      sql.NullString
}

// columns are the destinations for a row.
func (r *attemptRow) columns() []any {
	o, d := &r.Outcome, &r.Decision
	return []any{&r.Number, &r.StartedAt, &o.Duration, &r.exit, &o.Signal, (*string)(&o.Error), &o.Message,
		(*string)(&d.Verdict), &d.Delay, &d.Shortened, &r.Process, &r.success, &d.Rule, &r.exchange,
		&r.Worker, &o.Stdout, &o.Stderr}
}

func scanAttempt(scan conn.Scanner) (task.Attempt, error) {
	var row attemptRow
	err := scan(row.columns()...)
	return row.attempt(), err
}

func (r *attemptRow) attempt() task.Attempt {
	a := r.Attempt
	a.Outcome.Exit = task.NoExit
	if r.exit.Valid {
		a.Outcome.Exit = int(r.exit.Int64)
		a.Outcome.Reply = r.readExchange()
	}
	a.Decision.Success = r.success.Int64 != 0
	if !r.success.Valid { // an older retry did not store it
		a.Decision.Success = a.Decision.Verdict == task.VerdictSucceeded || a.Outcome.ExitCode() == 0
	}
	return a
}

// outcomeColumns are NULL for an attempt whose owner died, but for the duration of a bystander.
func outcomeColumns(o task.Outcome) (exit, duration any) {
	switch {
	case o.IsBystander():
		return nil, o.Duration.Microseconds()
	case o.IsCrash():
		return nil, nil
	}
	return o.Exit, o.Duration.Microseconds()
}

// readExchange returns the reply that an attempt got; nil for a command. It is empty if it cannot be read: the outcome
// does not depend on it.
func (r *attemptRow) readExchange() *task.Reply {
	if !r.exchange.Valid {
		return nil
	}
	var e exchange
	if json.Unmarshal([]byte(r.exchange.String), &e) != nil {
		e = exchange{}
	}
	return &task.Reply{
		Status: max(e.Status, 0), StatusName: e.StatusName, Written: max(e.Written, 0),
		ServerDelay: conn.DurationOf(e.ServerDelay),
		Default:     task.Eligibility{Event: e.Event},
		Phases: task.Phases{
			DNS: conn.DurationOf(e.DNS), Connect: conn.DurationOf(e.Connect), TLS: conn.DurationOf(e.TLS), FirstByte: conn.DurationOf(e.FirstByte),
			Total: r.Outcome.Duration,
		},
	}
}

func unmarshalPolicy(stored string) (p task.Policy, err error) {
	if err := json.Unmarshal([]byte(stored), &p); err != nil {
		return task.Policy{}, unreadable("policy", err)
	}
	if p.Attempts < 0 || p.Consecutive < 0 || min(p.Timeout, p.KillAfter, p.Budget, p.ResetAfter) < 0 {
		return task.Policy{}, errors.New("policy: a limit is negative")
	}
	return p, nil
}

// exchange is a task.Reply as it is stored, with times in microseconds. The total of the phases is the attempt's
// duration.
type exchange struct {
	Status      int    `json:"status,omitempty"`
	StatusName  string `json:"status_name,omitempty"`
	Written     int    `json:"written,omitempty"`
	Event       string `json:"event,omitempty"`
	ServerDelay int64  `json:"server_delay_us,omitempty"`
	DNS         int64  `json:"dns_us,omitempty"`
	Connect     int64  `json:"connect_us,omitempty"`
	TLS         int64  `json:"tls_us,omitempty"`
	FirstByte   int64  `json:"first_byte_us,omitempty"`
}

// marshalExchange returns nil, which is NULL, for a command's attempt.
func marshalExchange(e *task.Reply) (any, error) {
	if e == nil {
		return nil, nil
	}
	text, err := json.Marshal(exchange{
		Status: e.Status, StatusName: e.StatusName, Written: e.Written, Event: e.Default.Event,
		ServerDelay: e.ServerDelay.Microseconds(),
		DNS:         e.Phases.DNS.Microseconds(), Connect: e.Phases.Connect.Microseconds(), TLS: e.Phases.TLS.Microseconds(),
		FirstByte: e.Phases.FirstByte.Microseconds(),
	})
	return string(text), err
}
