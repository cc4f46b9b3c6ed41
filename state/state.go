// Package state says what a store of tasks is: what it is asked, what it answers, and how it fails. state/sqlite is
// one, and state/storetest checks what every one has to do.
package state

import (
	"context"
	"iter"
	"os"
	"time"

	"github.com/10f93571/retry/task"
)

// Store keeps tasks and their attempts. It is safe for concurrent use, and for use by several processes. Each write of
// a task names the attempt and the status that it expects; one that comes too late gets task.ErrNotOwner.
type Store interface {
	Writer
	Reader
	Owners
	Manager
	Policies
	Inputs
	Close() error // it ends the ownership of every task, too
}

// Writer is what a run writes.
type Writer interface {
	// Claim makes the intent of the task's next attempt durable before it starts. The first claim makes the task
	// itself, and gives it its number and phase. It returns ErrNamed where an unfinished task has the new one's name.
	Claim(ctx context.Context, t *task.Task, now time.Time) error
	// RecordAndClaim is Record followed by Claim, or nothing. Unclaim takes its claim back, where the attempt did not
	// begin.
	RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error
	Unclaim(ctx context.Context, t *task.Task) error
	// NoteProcess adds to the attempt in flight where its processes are found.
	NoteProcess(ctx context.Context, t *task.Task, process string) error
	// Record writes an attempt's outcome and the decision, with the task as it stands after them.
	Record(ctx context.Context, t *task.Task, a task.Attempt) error
	// Settle writes a decision that no attempt led to, taken while the task was Pending.
	Settle(ctx context.Context, t *task.Task, d task.Decision) error
	// CatchUp writes the end of a task of which the store could not be told all that led there.
	CatchUp(ctx context.Context, t *task.Task) error
	// CancelNested ends the tasks that the task's attempts made and left without an owner.
	CancelNested(ctx context.Context, t *task.Task, now time.Time) error
}

// Reader is what reports ask.
type Reader interface {
	// Find returns the task that a name, an id, or a unique beginning or end of an id stands for, or ErrNotFound.
	Find(ctx context.Context, ref string) (*task.Task, error)
	// All yields tasks, newest first, without their attempts.
	All(ctx context.Context, f Filter) iter.Seq2[*task.Task, error]
	// Unfinished returns the tasks that have not ended, oldest first.
	Unfinished(ctx context.Context) ([]*task.Task, error)
	// Attempts returns a task's attempts in their order, with the tails of their output; History leaves the tails out.
	Attempts(ctx context.Context, number int64) ([]task.Attempt, error)
	History(ctx context.Context, number int64) ([]task.Attempt, error)
	// Output returns what was captured of an attempt; of the latest that has anything for attempt 0. ErrNoOutput where
	// nothing was.
	Output(ctx context.Context, number int64, attempt int) (Output, error)
	// Named returns the unfinished task of a name, Newest the newest, Success the newest that succeeded; nil where
	// there is none.
	Named(ctx context.Context, name string) (*task.Task, error)
	Newest(ctx context.Context, name string) (*task.Task, error)
	Success(ctx context.Context, name string) (*task.Task, error)
	// Stats sums up the tasks made since a time by what they run, and says how many groups there are.
	Stats(ctx context.Context, since time.Time, limit int) (list []task.CommandStats, all int, err error)
	// Figures returns what a monitor wants to know.
	Figures(ctx context.Context) (task.JournalFigures, error)
	// Size returns how much room the store takes.
	Size() (Size, error)
}

// Owners knows which process runs a task, and which may use a name.
type Owners interface {
	// Owner returns the process that owns a task; 0 where none does, negative where the system does not tell which.
	Owner(number int64) (pid int, err error)
	// Interrupted reports whether an unfinished task has lost its owner.
	Interrupted(ctx context.Context, t *task.Task) (bool, error)
	// Adopt makes this process the owner of an interrupted task and returns it with its history. It returns ErrOwned,
	// ErrFinished or ErrDamaged where that cannot be. Release ends the ownership.
	Adopt(ctx context.Context, number int64) (*task.Task, error)
	Release(number int64) error
	// OwnName makes this process the one that may start or resume the task of a name, until it exits or releases the
	// name. Where another one is that, it returns false and its pid.
	OwnName(name string) (owned bool, pid int, err error)
	ReleaseName(name string) error
}

// Manager changes tasks for those who do not run them.
type Manager interface {
	// Cancel ends an unfinished task, whoever owns it, or returns ErrFinished.
	Cancel(ctx context.Context, number int64, now time.Time) error
	// Requeue gives a finished task fresh attempts.
	Requeue(ctx context.Context, t *task.Task, now time.Time) error
	// Remember keeps a success from being pruned.
	Remember(ctx context.Context, t *task.Task) error
	// Prune removes finished tasks, some at a time, and reports whether there are more. Prunable says what it would
	// remove in all.
	Prune(ctx context.Context, r Retention) (tasks int, more bool, err error)
	Prunable(ctx context.Context, r Retention) (Prunable, error)
	// Compact gives the room of what was removed back.
	Compact(ctx context.Context) error
}

// Policies keeps named policies.
type Policies interface {
	SetPolicy(ctx context.Context, p task.Policy, now time.Time) error
	// RemovePolicy returns ErrNoPolicy where there is none of the name, and Policy returns nil.
	RemovePolicy(ctx context.Context, name string) error
	Policy(ctx context.Context, name string) (*StoredPolicy, error)
	Policies(ctx context.Context) ([]StoredPolicy, error)
}

// Inputs keeps what came on stdin for a task, until that ends.
type Inputs interface {
	// Dir returns the directory for this machine's temporary files; empty where there is none.
	Dir() string
	// HasRoom reports whether there is room for inputs and outputs.
	HasRoom() bool
	// KeepInput makes the file for a task's stdin, CompleteInput says that it holds all of it, and DropInput removes
	// it.
	KeepInput(t *task.Task) (*os.File, error)
	CompleteInput(t *task.Task, file *os.File) error
	DropInput(t *task.Task)
	// Input opens what was kept, or returns ErrInputLost where that is not whole.
	Input(t *task.Task) (*os.File, error)
}

// StoredPolicy is a named policy as the journal holds it.
type StoredPolicy struct {
	task.Policy
	UpdatedAt time.Time
	Damage    error // what of it cannot be read; then only its name is known
}

// Output is the captured end of what an attempt wrote.
type Output struct {
	Attempt        int
	Stdout, Stderr string // the same where both streams were one file
}

// Filter says which tasks a list holds. Its zero value lets all of them pass.
type Filter struct {
	Statuses []task.Status // any of these
	Since    time.Time     // made at this time or later
	Name     string        // of this name; empty for any
	Limit    int           // no more than the newest so many; 0 is no limit
}

// Retention says which finished tasks may go, and how many rows at once. A success that --once remembers never goes.
type Retention struct {
	Before   time.Time     // they finished before this time; zero is at any time
	Statuses []task.Status // they have one of these; empty is every finished one
	Rows     int           // a step removes no more rows of all tables together
}

// Prunable is what Prune would remove in all.
type Prunable struct {
	Tasks          int
	Oldest, Newest time.Time // when the first and the last of them finished
}

// Finding is one line of `retry doctor`.
type Finding struct {
	Name  string `json:"name"`
	Level string `json:"level"` // "ok", "warning" or "problem"
	Text  string `json:"text"`
	Fix   string `json:"-"` // empty if nothing has to be done
}

// Size is how much room the journal takes on the disk, in bytes.
type Size struct {
	Database, WAL int64
}

// Total is the room of all files together.
func (s Size) Total() int64 { return s.Database + s.WAL }
