// Package state defines what a store of tasks does, and how it fails. state/sqlite is a store; state/storetest has the
// tests that every store must pass.
package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"os"
	"time"

	"github.com/10f93571/retry/task"
)

// Store keeps tasks and their attempts. It is safe for concurrent use, also by several processes. Each write of a task
// expects an attempt and a status; it returns task.ErrNotOwner if another process has changed the task.
type Store interface {
	Writer
	Reader
	Owners
	Manager
	Policies
	Inputs
	Close() error // it also releases every task
}

// Writer is for the process that runs a task.
type Writer interface {
	// Claim stores that the task's next attempt starts. The first claim also stores the task, and sets its number and
	// phase; it returns ErrNamed if an unfinished task has the same name. Where Once is set, it returns ErrSucceeded if a
	// task of the name has succeeded, and ErrMayBeDone for a request if another of the name may have done so. A stored
	// task whose name has succeeded meanwhile it cancels, and returns ErrNotOwner.
	Claim(ctx context.Context, t *task.Task, now time.Time) error
	// Create stores a new task as the first claim does, but without an attempt: it waits. In place of an unfinished task
	// of its name it cancels that in the same write; nil for none.
	Create(ctx context.Context, t, instead *task.Task) error
	// RecordAndClaim is Record and Claim in one write. Unclaim undoes its claim if the attempt did not begin.
	RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error
	Unclaim(ctx context.Context, t *task.Task) error
	// NoteProcess stores with the attempt in flight how to find its processes.
	NoteProcess(ctx context.Context, t *task.Task, process string) error
	// ClaimLate does so for an attempt that has begun at a time, and that Claim could not store. It stores the end of the
	// attempt before it, too.
	ClaimLate(ctx context.Context, t *task.Task, began time.Time, process string) error
	// NoteStart keeps the same for a moment, until it is stored or other tasks begin. It costs next to nothing.
	NoteStart(t *task.Task, process string)
	// NoteAssumed stores with the task's last attempt how to find its processes, now that a user has said that they have
	// ended.
	NoteAssumed(ctx context.Context, t *task.Task, process string) error
	// Record writes an attempt's outcome and decision, with the task's new status.
	Record(ctx context.Context, t *task.Task, a task.Attempt) error
	// Settle writes a decision about a pending task, without an attempt.
	Settle(ctx context.Context, t *task.Task, d task.Decision) error
	// CatchUp writes the end of a task after writes in between have failed.
	CatchUp(ctx context.Context, t *task.Task) error
	// KeepEnd keeps the end of a task where even CatchUp fails. Who adopts the task writes it first.
	KeepEnd(t *task.Task) error
	// CancelNested ends the tasks that the task's attempts made before a time, and that have no owner; a zero time is
	// any.
	CancelNested(ctx context.Context, t *task.Task, before, now time.Time) error
}

// Reader is for reports.
type Reader interface {
	// Find returns the task with a name, an id, or a unique beginning or end of an id, or ErrNotFound.
	Find(ctx context.Context, ref string) (*task.Task, error)
	// All yields tasks, newest first, without their attempts.
	All(ctx context.Context, f Filter) iter.Seq2[*task.Task, error]
	// Unfinished returns the tasks that have not ended and are not queued for workers alone, oldest first.
	Unfinished(ctx context.Context) ([]*task.Task, error)
	// Nested returns the tasks made by a task's last attempt that may have left processes running, or have a living owner.
	Nested(ctx context.Context, t *task.Task) ([]*task.Task, error)
	// NextAttempt returns when the next attempt of a task is due; zero for none.
	NextAttempt(ctx context.Context, number int64) (time.Time, error)
	// Attempts returns a task's attempts in their order, with the tails of their output; History leaves the tails out.
	Attempts(ctx context.Context, number int64) ([]task.Attempt, error)
	History(ctx context.Context, number int64) ([]task.Attempt, error)
	// Output returns the captured output of an attempt, or ErrNoOutput. Attempt 0 is the latest one with output.
	Output(ctx context.Context, number int64, attempt int) (Output, error)
	// Named returns the unfinished task with a name, Success the newest that succeeded, and MayBeDone the newest of t's
	// name that may have done what t would do; nil if there is none.
	Named(ctx context.Context, name string) (*task.Task, error)
	Success(ctx context.Context, name string) (*task.Task, error)
	MayBeDone(ctx context.Context, t *task.Task) (*task.Task, error)
	// Stats sums up the tasks made since a time in groups that run the same. It returns at most limit groups, 0 being
	// no limit, and how many there are.
	Stats(ctx context.Context, since time.Time, limit int) (list []task.CommandStats, all int, err error)
	// Due returns how many tasks in the queue should have begun.
	Due(ctx context.Context, now time.Time) (int, error)
	// Targets returns the bounds of what goes to hosts, in the order of their names.
	Targets(ctx context.Context) ([]TargetSettings, error)
	// Groups returns the dead letters in groups of the same host, policy and error, the largest first.
	Groups(ctx context.Context, f PageFilter, limit int) ([]Group, error)
	// Figures returns what a monitoring system asks for.
	Figures(ctx context.Context) (task.JournalFigures, error)
	// Size returns how much disk space the store uses.
	Size() (Size, error)
}

// Owners knows which process runs a task, and which may use a name.
type Owners interface {
	// Owner returns the process that owns a task; 0 if none does, negative if the system does not tell which.
	Owner(number int64) (pid int, err error)
	// HookOwner returns the worker's process that runs a hook of a task after an attempt, like Owner.
	HookOwner(number int64) (pid int, err error)
	// Interrupted reports whether an unfinished task has lost its owner.
	Interrupted(ctx context.Context, t *task.Task) (bool, error)
	// ListWorkers returns the workers that live, or have tasks.
	ListWorkers(ctx context.Context) ([]Worker, error)
	// Adopt makes this process the owner of an interrupted task and returns it with its history, or returns ErrOwned,
	// ErrFinished, ErrQueued or ErrDamaged. Release ends the ownership.
	Adopt(ctx context.Context, number int64) (*task.Task, error)
	Release(number int64) error
	// OwnName lets this process alone start or resume the task with a name, until it exits or releases the name. If
	// another process owns the name, OwnName returns false and its pid.
	OwnName(name string) (owned bool, pid int, err error)
	ReleaseName(name string) error
}

// Manager is for processes that do not run the task.
type Manager interface {
	// Cancel ends an unfinished task, even one with an owner, or returns ErrFinished.
	Cancel(ctx context.Context, number int64, now time.Time) error
	// Requeue gives a finished task new attempts and makes this process its owner, or returns ErrDamaged, ErrUnfinished,
	// ErrNamed, ErrOwned, or ErrInputDropped if the task needs a stdin that is gone. Release or Adopt follows.
	Requeue(ctx context.Context, t *task.Task, now time.Time) error
	// Hasten makes a task that waits due now, whoever owns it, and reports whether it waits. The owner finds that by
	// NextAttempt.
	Hasten(ctx context.Context, number int64, now time.Time) (bool, error)
	// Amend changes the policy, the options, the environment and the parent of a task that this process has adopted. Once
	// may be set by it, and is never unset.
	Amend(ctx context.Context, t *task.Task) error
	// Remember keeps a success from being pruned, or a request that may have been one.
	Remember(ctx context.Context, t *task.Task) error
	// Prune removes some finished tasks, and reports whether there are more. Prunable returns what it would remove in
	// all.
	Prune(ctx context.Context, r Retention) (tasks int, more bool, err error)
	Prunable(ctx context.Context, r Retention) (Prunable, error)
	// CutOff returns the finished commands of the retention, Ended or not, that have a name or run inside another task,
	// and whose last attempt was cut off. It looks at so many of the oldest tasks that may be removed; 0 is all.
	CutOff(ctx context.Context, r Retention, most int) ([]*task.Task, error)
	// Compact returns the space of removed tasks to the file system.
	Compact(ctx context.Context) error
}

// Policies keeps named policies.
type Policies interface {
	SetPolicy(ctx context.Context, p task.Policy, now time.Time) error
	// RemovePolicy returns ErrNoPolicy if there is no policy with the name, and Policy returns nil.
	RemovePolicy(ctx context.Context, name string) error
	Policy(ctx context.Context, name string) (*StoredPolicy, error)
	Policies(ctx context.Context) ([]StoredPolicy, error)
}

// Inputs keeps the stdin of a task until the task ends.
type Inputs interface {
	// Dir returns the directory for this machine's temporary files; it may be empty.
	Dir() string
	// HasRoom reports whether there is room for inputs and outputs.
	HasRoom() bool
	// KeepInput creates the file for a task's stdin, CompleteInput marks it as complete, and DropInput removes it.
	KeepInput(t *task.Task) (*os.File, error)
	CompleteInput(t *task.Task, file *os.File) error
	DropInput(t *task.Task)
	// Input opens the kept stdin, or returns ErrInputLost if it is incomplete.
	Input(t *task.Task) (*os.File, error)
}

// StoredPolicy is a named policy in the journal.
type StoredPolicy struct {
	task.Policy
	UpdatedAt time.Time
	Damage    error // why it cannot be read; then only its name is known
}

// Revision is a hash of what the policy says: PutPolicy and DeletePolicy expect it. That of a damaged one is empty.
func (p *StoredPolicy) Revision() string {
	if p.Damage != nil {
		return ""
	}
	text, err := p.MarshalJSON()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Output is the captured end of what an attempt wrote.
type Output struct {
	Attempt        int
	Stdout, Stderr string // the same text if both streams were one file
}

// Filter selects tasks. Its zero value selects all of them.
type Filter struct {
	Statuses []task.Status // any of these
	Since    time.Time     // made at this time or later
	Until    time.Time     // made or requeued at this time or earlier; zero for any
	Begun    bool          // of the unfinished ones only those that do not wait for any worker: there may be a million
	Name     string        // of this name; empty for any
	Host     *string       // to this host, empty for commands; nil for any
	PolicyID *string       // with a policy of this name; nil for any
	Error    string        // how the last attempt ended, as a Group has it; empty for any
	Limit    int           // at most so many, the newest ones; 0 is no limit
}

// Retention selects the finished tasks that Prune removes. It never removes a success that --once remembers, nor a
// request of --once that may have been one. A task that CutOff returns stays, unless it is among Ended: a later run of
// the name finds by it what is left of its last attempt.
type Retention struct {
	Before   time.Time     // they finished before this time; zero is any time
	Statuses []task.Status // they have one of these; empty is every finished one
	Ended    []int64       // the numbers of tasks that were cut off, and of which nothing runs any more
	Outer    []string      // the ids of tasks in which something ran that runs still
	Rows     int           // how many rows of all tables Prune removes at most
}

// Prunable is what Prune would remove in all.
type Prunable struct {
	Tasks          int
	Oldest, Newest time.Time // when the first and the last one finished
}

// Finding is one line of `retry doctor`.
type Finding struct {
	Name  string `json:"name"`
	Level string `json:"level"` // "ok", "warning" or "problem"
	Text  string `json:"text"`
	Fix   string `json:"-"` // empty if nothing has to be done
}

// Size is how much disk space the journal uses, in bytes.
type Size struct {
	Database, WAL int64
}

// Total is the size of all files.
func (s Size) Total() int64 { return s.Database + s.WAL }
