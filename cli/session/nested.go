package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

// OuterOf returns the task whose business a nested one is; nil for none. One that is unfinished runs the inner retry
// again when it is resumed, and one that was cancelled took all of it along. One that has ended otherwise left a daemon
// or a shell behind, and what that ran is nobody else's. Nor is what an inner one has left that had ended before the
// outer one was requeued.
func OuterOf(ctx context.Context, journal state.Store, t *task.Task) (*task.Task, error) {
	inner := t
	for id, seen := t.Parent, []string{t.ID}; id != "" && !slices.Contains(seen, id); {
		seen = append(seen, id)
		outer, err := journal.Find(ctx, id)
		switch {
		case errors.Is(err, state.ErrNotFound): // it was pruned, or had another journal or none
			return nil, nil
		case err != nil:
			return nil, err
		case !outer.Status.Finished(), outer.Status == task.Cancelled && t.CreatedAt.Before(outer.FinishedAt):
			if inner.Status.Finished() && inner.FinishedAt.Before(outer.RequeuedAt) {
				return nil, nil
			}
			return outer, nil
		}
		inner, id = outer, outer.Parent
	}
	return nil, nil
}

// outerAttempt is the attempt that a process runs in: its task's id, and its number. Both are empty for none.
type outerAttempt struct{ id, number string }

func (p *Host) outer() outerAttempt {
	return outerAttempt{p.Getenv(cmdexec.EnvTaskID), p.Getenv(cmdexec.EnvAttempt)}
}

// outerWasCancelled reports whether the attempt that this process runs in was cancelled, and its task requeued since
// the process began: the next attempt makes anew what is nested in it.
func (g *Journal) outerWasCancelled(ctx context.Context, t *task.Task) bool {
	if t.Parent != g.outer.id {
		return false
	}
	outer, err := g.Journal.Find(ctx, g.outer.id)
	if err != nil || outer.RequeuedAt.Before(started) {
		return false
	}
	attempts, err := g.Journal.Attempts(ctx, outer.Number)
	return err == nil && slices.ContainsFunc(attempts, func(a task.Attempt) bool {
		return strconv.Itoa(a.Number) == g.outer.number && a.Decision.Verdict == task.VerdictCancelled
	})
}

// CheckApart refuses to resume a task whose business is that of an outer one: an attempt of that would make it anew
// beside this one. A process that runs inside the outer one is a part of it.
func (p *Host) CheckApart(ctx context.Context, journal state.Store, t *task.Task) error {
	if t.Status.Finished() || t.Queue == task.QueueWorker {
		return nil
	}
	if pid, err := journal.Owner(t.Number); pid != 0 || err != nil { // the error is that of the adoption
		return nil
	}
	outer, err := OuterOf(ctx, journal, t)
	switch {
	case err != nil:
		return fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err)
	case outer == nil, !outer.Status.Finished() && slices.Contains(cmdexec.OuterTasks(p.Getenv), outer.ID):
		return nil
	}
	id, outerID := render.ShortID(t.ID), render.ShortID(outer.ID)
	what, hint := "was cancelled with all that ran in it", ""
	if !outer.Status.Finished() {
		what, hint = "has not ended, and may run it again", "retry resume "+outerID+" goes on with that one; or, "
	}
	return fmt.Errorf("resume %s: it ran inside %s, which %s"+
		"\nhint: %sto run this one apart: retry cancel %[1]s, then retry requeue --run %[1]s", id, outerID, what, hint)
}

// EndNested cancels a task that nobody carries, and what is nested in it: the end of the outer one has found it alive.
func EndNested(ctx context.Context, journal state.Store, t *task.Task) error {
	adopted, err := adopt(ctx, journal, t)
	switch {
	case errors.Is(err, state.ErrOwned), errors.Is(err, state.ErrFinished):
		return nil
	case err != nil:
		return fmt.Errorf("cancel %s: %w", render.ShortID(t.ID), err)
	}
	defer func() {
		_ = journal.Release(adopted.Number)
		if t.Name != "" {
			_ = journal.ReleaseName(t.Name)
		}
	}()
	now := time.Now()
	if err = journal.Cancel(ctx, t.Number, now); err == nil {
		err = journal.CancelNested(ctx, t, time.Time{}, now)
	}
	if err != nil && !errors.Is(err, state.ErrFinished) {
		return fmt.Errorf("cancel %s: %w", render.ShortID(t.ID), err)
	}
	return nil
}

// StopCancelled stops what runs of a task, as it was read before it was cancelled, and cancels what is nested in it.
// The note says what an attempt does that goes on.
func StopCancelled(ctx context.Context, journal state.Store, t *task.Task) (note string, err error) {
	note = stopOwner(ctx, journal, t)
	if pid, failed := journal.Owner(t.Number); pid != 0 || failed != nil { // a living owner ends what is nested
		return note, nil
	}
	return note, journal.CancelNested(ctx, t, time.Time{}, time.Now())
}

// stopOwner sends TERM to the process that runs the task; otherwise the attempt would run to its end. A process that
// runs other tasks too, as resume --all does, looks into its journal instead, and stops what was cancelled there.
func stopOwner(ctx context.Context, journal state.Store, t *task.Task) (note string) {
	pid, err := journal.Owner(t.Number)
	if t.Queue == task.QueueWorker && t.Status == task.InFlight {
		if dead, err := journal.Interrupted(ctx, t); err == nil && !dead {
			return "; its worker stops the attempt" // it was told by the journal
		}
	}
	switch {
	case err == nil && pid == 0:
		return stopSurvivors(journal, t)
	case err != nil || pid < 0:
		return "; an attempt that runs now goes on to its end: its process cannot be signalled from here"
	}
	if t.Status == task.Pending { // it waits, perhaps for what a killed attempt has left
		note = stopSurvivors(journal, t)
	}
	var sig os.Signal = syscall.SIGTERM
	owner, err := journal.Owner(lock.Name(OneOfSeveral(t.Number)))
	others := err == nil && owner == pid
	if others {
		sig = WakeSignal
	}
	if SignalOwner(journal, t.Number, sig) == 0 && others {
		note = cmp.Or(note, fmt.Sprintf("; an attempt that runs now goes on to its end, "+
			"since process %d carries other tasks too", pid))
	}
	return note
}

// SignalOwner sends a signal to the process that owns a task, and returns its number; 0 where it could not.
func SignalOwner(journal state.Store, number int64, sig os.Signal) (pid int) {
	pid, err := journal.Owner(number)
	if err != nil || pid <= 0 {
		return 0
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return 0
	}
	defer func() { _ = process.Release() }()
	// Ask again: the system may have given the number to another process between the first answer and FindProcess.
	if again, err := journal.Owner(number); err != nil || again != pid || process.Signal(sig) != nil {
		return 0
	}
	return pid
}

// stopSurvivors sends TERM to the processes that the last attempt left running when its retry died.
func stopSurvivors(journal state.Store, t *task.Task) (note string) {
	survivors := proc.Survivors{}
	if t.Last.CutOff() && !containerEnded(journal, t.Last) {
		switch found, err := survivors.Find(t, t.Last); {
		case err != nil:
			note = fmt.Sprintf("; its attempt may still be running, and cannot be seen from here: %v", err)
		case found != "":
			survivors.Signal(t, t.Last, syscall.SIGTERM)
			note = "; TERM sent to " + found + ", which it had left running"
		}
	}
	return note
}

// OneOfSeveral is a name that a process owns together with a task where it carries others, too, as resume --all does: a
// signal to stop would end all of that. No task has such a name.
func OneOfSeveral(number int64) string { return fmt.Sprintf("\x00one of several: %d", number) }

// unfinished returns the id of an outer task; empty where that has ended: what it has left behind, such as a daemon or
// a shell, runs its own.
func unfinished(ctx context.Context, journal state.Store, id string) string {
	if id == "" {
		return ""
	}
	if outer, err := journal.Find(ctx, id); err == nil && outer.Status.Finished() {
		return ""
	}
	return id
}

// isWithin reports whether a task is another one, or nested in it however deep. It may be where the journal does not
// say.
func isWithin(ctx context.Context, journal state.Store, id, outer string) bool {
	for range 100 {
		if id == "" || id == outer {
			return id != ""
		}
		t, err := journal.Find(ctx, id)
		if errors.Is(err, state.ErrNotFound) { // it was pruned, or has another journal
			return false
		}
		if err != nil {
			break
		}
		id = t.Parent
	}
	return true
}

// isOfEarlierLife reports whether this process was started by an attempt of a task that has ended since, and was
// requeued: it is a daemon's, and no part of the attempts to come.
func isOfEarlierLife(ctx context.Context, p *Host, journal state.Store, parent string) bool {
	attempt, err := strconv.Atoi(p.Getenv(cmdexec.EnvAttempt))
	if err != nil {
		return false
	}
	outer, err := journal.Find(ctx, parent)
	switch {
	case err != nil, outer.RequeuedAt.IsZero():
		return false
	case attempt == outer.RequeuedAfter: // what the on-start hook runs has the number of the last attempt before
		return p.Getenv(cmdexec.EnvStatus) != string(task.Pending)
	}
	return attempt < outer.RequeuedAfter
}

// containerEnded reports whether all of an attempt has ended with a retry that was PID 1 where it ran. A worker, for
// one, outlives its attempts.
func containerEnded(journal state.Store, a task.Attempt) bool {
	id := proc.ContainerOf(a.Process)
	if id == "" || id == proc.Container() {
		return false
	}
	pid, err := journal.Owner(lock.Name(containerName(id)))
	return pid == 0 && err == nil
}

// containerName is the name that a retry which is PID 1 owns as long as it lives. No task has such a name.
func containerName(id string) string { return "\x00container: " + id }

// noteContainer notes with which PID 1 this process ends: itself, or the one that an outer retry has told of, if both
// use the same journal.
func (p *Host) noteContainer(journal state.Owners) {
	id := p.Getenv(proc.EnvContainer)
	if os.Getpid() == 1 {
		id = strconv.FormatUint(rand.Uint64(), 36)
		if owned, _, err := journal.OwnName(containerName(id)); !owned || err != nil {
			return
		}
	} else if id == "" {
		return
	} else if pid, err := journal.Owner(lock.Name(containerName(id))); pid == 0 || err != nil {
		return
	}
	proc.SetContainer(id)
}
