package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/sqlite/wake"
	"github.com/10f93571/retry/task"
)

var _ state.Queue = (*Queue)(nil)

// Queue is a journal as workers and the API use it. All writes of the process go through one goroutine, which puts those
// that come together into one transaction; reads have connections of their own.
type Queue struct {
	*Journal

	// Observe is told how long each transaction waited for other processes, and how long it took in all. It may be nil.
	Observe func(waited, took time.Duration)

	readers chan *conn.Conn
	opened  int               // readers
	writes  chan *queuedWrite // without room: what is sent is written, even where Close begins
	between chan func()       // done by the writer when it is in no transaction
	grown   chan struct{}     // tells copyLog of a transaction
	unsaved chan *queuedWrite // written, but not synced yet
	stopped chan struct{}     // closed by Close
	group   sync.WaitGroup
	peers   *wake.Peers
	look    atomic.Pointer[look] // the latest of Writable
	begun   time.Time            // when writeAll began its latest transaction
	latest  int                  // how many writes that had
}

// queuedWrite is a part of a transaction.
type queuedWrite struct {
	do      func(*conn.Conn) ([]state.Change, error) // may be called again after a failure
	durable bool                                     // it has to survive a power loss
	end     bool                                     // it ends a task
	changes []state.Change
	err     error
	done    chan struct{}
}

const (
	queueReaders = 3  // of which a server's lists take two
	groupSize    = 64 // of the writes in a transaction

	// groupTime is the least time between the begins of two transactions, unless a group is full: each costs as much as
	// several writes. It is kept after one with busyGroup writes or more.
	groupTime = time.Millisecond
	busyGroup = 4
)

// OpenQueue opens the journal in dir as a queue, and makes it where there is none.
func OpenQueue(ctx context.Context, dir string) (*Queue, error) {
	j, err := openOnFullDisk(ctx, dir)
	if err != nil {
		return nil, err
	}
	q := &Queue{
		Journal: j, readers: make(chan *conn.Conn, queueReaders), writes: make(chan *queuedWrite),
		between: make(chan func()), grown: make(chan struct{}, 1),
		unsaved: make(chan *queuedWrite, groupSize), stopped: make(chan struct{}), peers: wake.New(dir),
	}
	_ = j.conn.Use(func() error {
		_, err := j.conn.Exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", longestQueueLog))
		return err
	})
	for range queueReaders {
		c, _, err := openInPlace(ctx, filepath.Join(dir, DatabaseName))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the journal in %s: %w", dir, j.diagnose(err)), q.Close())
		}
		q.readers <- c
		q.opened++
	}
	copier, err := conn.Open(dataSource(filepath.Join(dir, DatabaseName)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the journal in %s: %w", dir, j.diagnose(err)), q.Close())
	}
	q.group.Go(q.writeAll)
	q.group.Go(q.syncAll)
	q.group.Go(func() { q.copyLog(copier) })
	return q, nil
}

// Close waits for the writes and the reads that have begun. The workers of this process are dead from then on.
func (q *Queue) Close() error {
	close(q.stopped)
	q.group.Wait()
	q.peers.Close()
	q.forgetWorkers()
	q.forgetOperations()
	var failures []error
	for range q.opened {
		failures = append(failures, (<-q.readers).Close())
	}
	return errors.Join(append(failures, q.Journal.Close())...)
}

// submit has a write done as a part of the next transaction, and returns when that is committed.
func (q *Queue) submit(ctx context.Context, durable bool, do func(*conn.Conn) ([]state.Change, error)) error {
	return q.pass(ctx, &queuedWrite{do: do, durable: durable})
}

// pass does for one write what submit does.
func (q *Queue) pass(ctx context.Context, w *queuedWrite) error {
	if ctx.Err() != nil { // a select may take another case that is ready as well
		return context.Cause(ctx)
	}
	w.done = make(chan struct{})
	select {
	case q.writes <- w:
	case <-q.stopped:
		return conn.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-w.done // it may be under way already, and then must not be taken for one that was not done
	return w.err
}

// look is a transaction that writes nothing.
type look struct {
	err   error
	ended time.Time
	done  chan struct{}
}

// lookAgain is how long the result of a look holds: anybody may ask, as often as he likes.
const lookAgain = time.Second

// Writable returns an error where the journal cannot be written, or ErrLocked where that is not known until ctx ends:
// another process holds the write lock for long.
func (q *Queue) Writable(ctx context.Context) error {
	l := q.look.Load()
	for l == nil || l.isOver() && time.Since(l.ended) > lookAgain {
		next := &look{done: make(chan struct{})}
		if q.look.CompareAndSwap(l, next) {
			go func() {
				defer close(next.done)
				next.err = q.submit(context.Background(), false, func(*conn.Conn) ([]state.Change, error) { return nil, nil })
				next.ended = time.Now()
			}()
		}
		l = q.look.Load()
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return state.ErrLocked
	}
}

func (l *look) isOver() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// writeAll writes what is submitted until Close.
func (q *Queue) writeAll() {
	defer close(q.unsaved)
	for {
		select {
		case w := <-q.writes:
			q.writeGroup(q.gather(w))
		case do := <-q.between:
			do()
		case <-q.stopped:
			for {
				select {
				case w := <-q.writes:
					q.writeGroup(q.gather(w))
				default:
					return
				}
			}
		}
	}
}

// gather returns the writes that come with the first one: those that were submitted during the transaction before, or
// come within groupTime of its begin, if that had several. Where few come, none is held up.
func (q *Queue) gather(first *queuedWrite) []*queuedWrite {
	group := []*queuedWrite{first}
	var over <-chan time.Time
	if left := groupTime - time.Since(q.begun); left > 0 && q.latest >= busyGroup {
		over = time.After(left)
	}
	for len(group) < groupSize {
		select {
		case w := <-q.writes:
			group = append(group, w)
			continue
		default:
		}
		if over == nil {
			break
		}
		select {
		case w := <-q.writes:
			group = append(group, w)
		case <-over:
			over = nil
		case <-q.stopped:
			over = nil
		}
	}
	q.begun, q.latest = time.Now(), len(group)
	return group
}

// writeGroup writes a group in one transaction. Where that fails, each is written alone, so that one bad write does not
// take the others with it.
func (q *Queue) writeGroup(group []*queuedWrite) {
	begun := time.Now()
	var entered time.Time
	err := q.write(context.Background(), func(c *conn.Conn) error {
		entered = time.Now()
		for _, w := range group {
			if w.changes, w.err = w.do(c); w.err != nil && !isAnswer(w.err) {
				return w.err
			}
		}
		return nil
	})
	if q.Observe != nil && !entered.IsZero() {
		q.Observe(entered.Sub(begun), time.Since(begun))
	}
	if err == nil && len(group) > 0 {
		err = q.moved()
	}
	_, faulty := errors.AsType[*state.Fault](err)
	switch {
	case err != nil && !faulty && len(group) > 1:
		for _, w := range group {
			q.writeGroup([]*queuedWrite{w})
		}
		return
	case errors.Is(err, state.ErrFull) && q.endsOf(group) != nil && os.Remove(filepath.Join(q.dir, reserveName)) == nil:
		ends := q.endsOf(group)
		failAll(slices.DeleteFunc(group, func(w *queuedWrite) bool { return w.end }), err)
		q.writeGroup(ends)
		return
	case err != nil:
		failAll(group, err)
		return
	}
	var changes []state.Change
	for _, w := range group {
		if w.err == nil {
			changes = append(changes, w.changes...)
		}
		if w.err == nil && w.durable {
			q.unsaved <- w
		} else {
			close(w.done)
		}
	}
	q.peers.Tell(changes)
	select {
	case q.grown <- struct{}{}:
	default:
	}
}

// endsOf returns the writes of a group that end a task: for them, a full disk has a reserve.
func (*Queue) endsOf(group []*queuedWrite) (ends []*queuedWrite) {
	for _, w := range group {
		if w.end {
			ends = append(ends, w)
		}
	}
	return ends
}

func failAll(group []*queuedWrite, err error) {
	for _, w := range group {
		w.err = err
		close(w.done)
	}
}

// isAnswer reports whether an error is an answer: nothing was written, and the others of the transaction may be.
func isAnswer(err error) bool {
	_, reused := errors.AsType[*state.KeyError](err)
	for _, answer := range []error{
		task.ErrNotOwner, state.ErrFinished, state.ErrUnfinished, state.ErrNotFound, state.ErrNamed, state.ErrSucceeded,
		state.ErrMayBeDone, state.ErrNested, state.ErrReply,
		state.ErrOwned, state.ErrDamaged, state.ErrInputDropped, state.ErrRevision, state.ErrNoPolicy, state.ErrLeaseLost,
	} {
		reused = reused || errors.Is(err, answer)
	}
	return reused
}

// syncAll waits for the disk, once for all that was committed meanwhile. The next transaction runs beside it.
func (q *Queue) syncAll() {
	for first := range q.unsaved {
		group := []*queuedWrite{first}
		for more := true; more; {
			select {
			case w, open := <-q.unsaved:
				if more = open; open {
					group = append(group, w)
				}
			default:
				more = false
			}
		}
		conn.Step("adds not synced")
		err := q.diagnose(q.sync())
		conn.Step("adds synced")
		for _, w := range group {
			w.err = err
			close(w.done)
		}
	}
}

// reading calls do with a connection for reading. It sees what was committed before.
func (q *Queue) reading(ctx context.Context, do func(*conn.Conn) error) error {
	select {
	case <-q.stopped:
		return conn.ErrClosed
	default:
	}
	select {
	case c := <-q.readers:
		defer func() { q.readers <- c }()
		return q.diagnose(conn.RetryBusy(ctx, func() error { return c.Use(func() error { return do(c) }) }))
	case <-q.stopped:
		return conn.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// selected returns what scan makes of each row of a query.
func selected[T any](ctx context.Context, q *Queue, query string, args []any, scan func(conn.Scanner) (T, error)) (list []T,
	err error) {
	err = q.reading(ctx, func(c *conn.Conn) error {
		list = nil
		return c.Each(ctx, query, args, func(row conn.Scanner) (bool, error) {
			item, err := scan(row)
			list = append(list, item)
			return true, err
		})
	})
	return list, err
}

// found returns the tasks that a query of selectTasks finds.
func (q *Queue) found(ctx context.Context, query string, args ...any) ([]*task.Task, error) {
	return selected(ctx, q, query, args, q.scanTask)
}

const selectBlob = "SELECT EXISTS (SELECT 1 FROM tasks WHERE blob = ?)"

// BlobInUse implements state.Queue.
func (q *Queue) BlobInUse(ctx context.Context, hash string, lastUsed time.Time) (used bool, err error) {
	for _, aside := range Asides(q.dir) {
		if info, err := os.Stat(aside); err == nil && !lastUsed.After(info.ModTime()) {
			return true, nil
		}
	}
	err = q.reading(ctx, func(c *conn.Conn) error {
		return c.Row(selectBlob, []any{hash}, &used)
	})
	return used, err
}
