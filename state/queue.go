package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/task"
)

// Queue is a store of tasks that workers carry, and of what the API shows. It is safe for concurrent use, also by
// several processes. A task is made by Add, and every later write of an attempt names the task, the attempt, the status
// and the nonce of the claim: one that comes late gets task.ErrNotOwner.
type Queue interface {
	Adder
	Carrier
	Workers
	Browser
	Operator
	Settings
	Close() error
}

// Adder makes tasks.
type Adder interface {
	// Add stores new tasks, all of them or none, and returns when they survive a power loss. Where an earlier task of the
	// partition has the same idempotency key, with the same payload, that one is returned in place of the new one; with
	// another payload the error is a *KeyError. Of a name that an unfinished task has, it is ErrNamed.
	Add(ctx context.Context, tasks []*task.Task) ([]Added, error)
}

// Added is what became of a task that was given to Add.
type Added struct {
	Task     *task.Task // as it is stored
	Replayed bool       // it is an earlier one
}

// KeyError says that an idempotency key belongs to a task with another payload.
type KeyError struct {
	Index int    // of the task among those given to Add
	ID    string // of the task that has the key
}

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("the idempotency key is that of task %s, which is another request", e.ID)
}

// UnfollowedError says that the task which follows the end of another one was not made.
type UnfollowedError struct {
	ID  string // of the task that has ended
	Err error
}

// Error implements error.
func (e *UnfollowedError) Error() string {
	return fmt.Sprintf("the onExhausted of task %s was not made a task: %v"+
		"\nhint: GET /retry-tasks/%[1]s?view=full shows it", e.ID, e.Err)
}

// Unwrap is for package errors.
func (e *UnfollowedError) Unwrap() error { return e.Err }

// ErrLeaseLost says that other workers hold this one for dead, and have taken its tasks.
var ErrLeaseLost = errors.New("the worker's lease has ended: other workers have its tasks")

// Carrier is for a worker: what is due, and how attempts begin and end.
type Carrier interface {
	// Waiting returns queued tasks that are due until a time, in the order of Position, after a position; those of a
	// lane alone, if one is given. It returns at most limit.
	Waiting(ctx context.Context, after Position, until time.Time, lane *Lane, limit int) ([]Item, error)
	// Claim begins the next attempts of tasks that are due. The result has the order of numbers, with nil for a task that
	// is not due any more, or that another worker has. One whose budget has ended is not claimed, and has no nonce: its
	// end is to be settled. One for which ready returns false stays as it is; a nil ready is never asked. One with Once
	// whose name has succeeded meanwhile is cancelled.
	Claim(ctx context.Context, worker int64, numbers []int64, now time.Time,
		ready func(*task.Task) bool) ([]*task.Task, error)
	// NoteProcess stores with the attempt in flight how to find its processes. NoteStart keeps the same for a moment,
	// until that is stored or other tasks begin. It costs next to nothing.
	NoteProcess(ctx context.Context, t *task.Task, process string) error
	NoteStart(t *task.Task, process string)
	// Settle writes the outcome and the decision of a claimed attempt, and adds the task that follows from its end; nil
	// is none. To settle twice is no error. An attempt without a number is the end of a task that was not claimed. Where
	// the key of what follows is another request's, the end is written all the same, and the error is an
	// *UnfollowedError.
	Settle(ctx context.Context, t *task.Task, a task.Attempt, follows *task.Task) error
	// TellUnfollowed has Changes say that the task which follows the end of another one was not made.
	TellUnfollowed(t *task.Task)
	// BeginHook tells other processes, until EndHook or the end of this one, that a hook runs after an attempt of a task.
	// Called before Settle, it has them see that as soon as the next attempt is due. It returns false where another
	// process has told so, which may be one that Settle refuses in a moment.
	BeginHook(number int64) (bool, error)
	EndHook(number int64) error
	// KeepEnd keeps the end of a claimed task beside a store that Settle cannot write. Claim and TakeOver write it first.
	KeepEnd(t *task.Task) error
	// Cancelled returns the attempts that were cancelled while they ran, of tasks with such numbers. Changes says so, too,
	// but may lose it.
	Cancelled(ctx context.Context, numbers []int64) ([]Change, error)
	// Unfinished reports whether any queued task has not ended; with a time, whether one was due by then or runs.
	Unfinished(ctx context.Context, due time.Time) (bool, error)
	// CancelNested ends the tasks that the attempts of a task have made before a time, and that nobody carries; a zero
	// time is any. What they have queued was handed over, and stays.
	CancelNested(ctx context.Context, t *task.Task, before, now time.Time) error
	// Changes returns what has changed in the store since the call, in this process and in others, until ctx ends.
	Changes(ctx context.Context) <-chan Change
}

// Position is a place in the order of waiting tasks: by the time of the next attempt, then by number.
type Position struct {
	Due    time.Time
	Number int64
}

// Before reports whether a position comes before another one.
func (p Position) Before(other Position) bool {
	if p.Due.Equal(other.Due) {
		return p.Number < other.Number
	}
	return p.Due.Before(other.Due)
}

// Compare is for sorting: by Before.
func (p Position) Compare(other Position) int {
	return cmp.Or(p.Due.Compare(other.Due), cmp.Compare(p.Number, other.Number))
}

// Item is what a scheduler knows of a waiting task.
type Item struct {
	Position
	Lane
}

// Lane is a way on which tasks hold each other up: those of one partition to one host.
type Lane struct {
	Partition string
	Host      string // empty for commands
}

// Change is a step of a task that somebody may wait for.
type Change struct {
	Number  int64
	ID      string
	Status  task.Status
	Attempt int       // the count of attempts
	At      time.Time // when it was written
	Due     time.Time // of a task that waits for a worker; else zero
	Lane              // of that task
	// Unfollowed says that the task has ended before, and that its onExhausted was not made a task.
	Unfollowed bool   `json:",omitempty"`
	Target     string // a host whose TargetSettings have changed; the fields above are zero
	Lost       bool   // changes were lost: look at everything again; the fields above are zero
	// Precaution says of Lost that nothing is known to be lost: a worker looks now and then all the same.
	Precaution bool
}

// Workers knows which workers live.
type Workers interface {
	// Register makes this process a worker and returns its number. It lives until Unregister, or until the process ends.
	Register(ctx context.Context, w Worker) (number int64, err error)
	// Renew says that the worker goes on; it returns ErrLeaseLost where others have taken its tasks.
	Renew(ctx context.Context, number int64, now time.Time) error
	Unregister(ctx context.Context, number int64) error
	// Dead returns the workers with tasks that have died, or that have not renewed for longer than their time; without one
	// of their own it is visibility.
	Dead(ctx context.Context, now time.Time, visibility time.Duration) ([]Worker, error)
	// TakeOver makes a worker the holder of the attempts of a dead one, at most limit, and returns the tasks, each with
	// its history. Of one that only did not renew, it takes no commands: their processes may run.
	TakeOver(ctx context.Context, by int64, from Worker, limit int, now time.Time) ([]*task.Task, error)
	// List returns the workers that live, or have tasks.
	ListWorkers(ctx context.Context) ([]Worker, error)
}

// Worker is a process that carries tasks.
type Worker struct {
	Number      int64
	Name        string // host and process id
	Concurrency int
	Visibility  time.Duration // how long it may do without a renewal; 0: as long as who asks
	StartedAt   time.Time
	RenewedAt   time.Time // StartedAt before the first renewal
	Tasks       int       // attempts that it has in hand
	Stale       bool      // it lives, but did not renew in time
	Gone        bool      // its process has ended
}

// Browser is for who looks at tasks.
type Browser interface {
	// Find returns the task with an id, with its history, or ErrNotFound.
	Find(ctx context.Context, id string) (*task.Task, error)
	// Page returns tasks, newest first. It looks at a bounded number of rows, and so may return fewer than the limit, even
	// none, with a cursor.
	Page(ctx context.Context, f PageFilter) (Page, error)
	// AttemptsAfter returns attempts of a task, oldest first, after an attempt's number.
	AttemptsAfter(ctx context.Context, number int64, after, limit int) ([]task.Attempt, error)
	// Groups returns the dead letters in groups of the same host, policy and error, the largest first.
	Groups(ctx context.Context, f PageFilter, limit int) ([]Group, error)
	// CountUnfinished returns how many tasks wait or run, whoever carries them. It costs less than Counts.
	CountUnfinished(ctx context.Context) (int, error)
	// Counts returns how many tasks have each status, how many are due, and since when the oldest is.
	Counts(ctx context.Context, now time.Time) (Counts, error)
}

// PageFilter selects tasks. Its zero value selects all of them.
type PageFilter struct {
	Statuses  []task.Status // any of these
	PolicyID  string
	Partition *string // nil for any
	Host      string
	Tag       string
	Error     string    // how the last attempt ended, as a Group has it
	Since     time.Time // made at this time or later
	Until     time.Time // made before
	Limit     int       // 0 is DefaultPage
	Bytes     int       // ends a page with the task by which its tasks have more than these; 0 for no limit
	Cursor    int64     // numbers below it; 0 for all
}

// DefaultPage is how many tasks a page has at most where its filter does not say.
const DefaultPage = 50

// Page is a part of a list.
type Page struct {
	Tasks []*task.Task
	Next  int64 // the Cursor of the next part; 0 for none
}

// Backlog is what waits for a worker.
type Backlog struct {
	Waiting, Due int       // all queued tasks that wait, and those whose time has come
	OldestDue    time.Time // zero for none
}

// Group is a number of tasks that ended in the same way.
type Group struct {
	Host, PolicyID, Error string
	Count                 int
	First, Last           time.Time // when the first and the last of them ended
	Example               string    // the id of the last
}

// Counts is how many tasks there are.
type Counts struct {
	ByStatus  map[task.Status]int
	Due       int            // queued tasks whose time has come
	OldestDue time.Time      // zero for none
	Dead      map[string]int // EXHAUSTED and FAILED tasks by the name of their policy
}

// Operator is for who changes tasks that others carry.
type Operator interface {
	// Cancel ends an unfinished task. It reports the status before, and ErrFinished where that was an end already.
	Cancel(ctx context.Context, number int64, now time.Time) (before task.Status, err error)
	// Requeue gives a finished task fresh attempts, due at a time, or returns ErrUnfinished, ErrReply, or ErrSucceeded
	// where its name has succeeded in another run and --once lets it succeed once.
	Requeue(ctx context.Context, number int64, due time.Time) error
	// RequeueDead is Requeue for one of many tasks that were read before. Where that one has been requeued since, however
	// it has ended then, it returns ErrUnfinished; ErrNested where it ran inside another task that is there.
	RequeueDead(ctx context.Context, t *task.Task, due time.Time) error
	// Reschedule moves the next attempt of a waiting task to a time, and reports whether it waits.
	Reschedule(ctx context.Context, number int64, due time.Time) (bool, error)
}

// Settings keeps what the API is told beside tasks.
type Settings interface {
	// PutPolicy stores a policy. expected is the revision that it must have, "" for any, "new" for none; ErrRevision says
	// that it has another.
	PutPolicy(ctx context.Context, p task.Policy, expected string, now time.Time) (StoredPolicy, error)
	DeletePolicy(ctx context.Context, name, expected string) error // or ErrNoPolicy, ErrRevision
	GetPolicy(ctx context.Context, name string) (*StoredPolicy, error)
	ListPolicies(ctx context.Context) ([]StoredPolicy, error)

	// PutTarget bounds what goes to a host. The zero value has no bounds.
	PutTarget(ctx context.Context, t TargetSettings) error
	Targets(ctx context.Context) ([]TargetSettings, error)

	// PutOperation stores the progress of a requeue of many tasks. One that has ended keeps its status, whoever writes
	// later. Of those that have ended, the last OperationsKept remain, in the order of their ids.
	PutOperation(ctx context.Context, o Operation) error
	Operation(ctx context.Context, id string) (*Operation, error) // nil for none
	Operations(ctx context.Context) ([]Operation, error)          // unfinished ones
	// OwnOperation makes this process the only one that carries an operation, until DisownOperation or until the process
	// ends. It reports false where another one does.
	OwnOperation(ctx context.Context, id string) (bool, error)
	DisownOperation(id string) error

	// BlobInUse reports whether a task has the body with a hash, or may have had it when it was last used: one of a
	// damaged journal that was set aside since then.
	BlobInUse(ctx context.Context, hash string, lastUsed time.Time) (bool, error)
}

// NewRevision is the revision of a policy that does not exist yet.
const NewRevision = "new"

// ErrRevision says that a policy was changed by somebody else.
var ErrRevision = errors.New("the policy has changed")

// TargetSettings bounds what goes to one host.
type TargetSettings struct {
	Host          string  `json:"host"`
	Paused        bool    `json:"paused"`
	MaxConcurrent int     `json:"maxConcurrent"` // 0 = the worker's own bound
	RatePerSecond float64 `json:"ratePerSecond"` // 0 = no bound
}

// OperationsKept is how many operations a store keeps that have ended.
const OperationsKept = 1000

// OperationRunning is the status of an operation that has not ended.
const OperationRunning = "running"

// Operation is a requeue of many tasks at a rate.
type Operation struct {
	ID            string // a later operation has a greater one
	Filter        PageFilter
	RatePerSecond float64
	Exec          bool   // who made it may run commands: it requeues those, too
	Status        string // OperationRunning, "done" or "cancelled"
	Matched       int
	Requeued      int
	Skipped       int
	CreatedAt     time.Time
}
