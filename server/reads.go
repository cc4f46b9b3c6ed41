package server

import (
	"context"
	"time"

	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// listReads is how many reads of clients the store does at a time: fewer than it has connections, so that what a worker
// asks for is never behind thousands of them.
const listReads = 2

// readPatience is how long a client waits for its turn.
const readPatience = 5 * time.Second

// reads are the reads that clients ask for. Those of the server itself go to the store directly.
type reads struct {
	state.Queue
	turns chan struct{}
}

func newReads(q state.Queue) *reads { return &reads{Queue: q, turns: make(chan struct{}, listReads)} }

// taking calls read when it is its turn. That ends before anything is written to the client, which may be slow.
func taking[T any](ctx context.Context, r *reads, read func() (T, error)) (found T, err error) {
	select {
	case r.turns <- struct{}{}:
	default:
		given := time.NewTimer(readPatience)
		defer given.Stop()
		select {
		case r.turns <- struct{}{}:
		case <-given.C:
			return found, problem.Unavailable(time.Second, "too many clients read at once\nhint: send it again later")
		case <-ctx.Done():
			return found, context.Cause(ctx)
		}
	}
	defer func() { <-r.turns }()
	return read()
}

// Find implements state.Queue.
func (r *reads) Find(ctx context.Context, id string) (*task.Task, error) {
	return taking(ctx, r, func() (*task.Task, error) { return r.Queue.Find(ctx, id) })
}

// Page implements state.Queue.
func (r *reads) Page(ctx context.Context, f state.PageFilter) (state.Page, error) {
	return taking(ctx, r, func() (state.Page, error) { return r.Queue.Page(ctx, f) })
}

// AttemptsAfter implements state.Queue.
func (r *reads) AttemptsAfter(ctx context.Context, number int64, after, limit int) ([]task.Attempt, error) {
	return taking(ctx, r, func() ([]task.Attempt, error) { return r.Queue.AttemptsAfter(ctx, number, after, limit) })
}

// Groups implements state.Queue.
func (r *reads) Groups(ctx context.Context, f state.PageFilter, limit int) ([]state.Group, error) {
	return taking(ctx, r, func() ([]state.Group, error) { return r.Queue.Groups(ctx, f, limit) })
}

// ListPolicies implements state.Queue.
func (r *reads) ListPolicies(ctx context.Context) ([]state.StoredPolicy, error) {
	return taking(ctx, r, func() ([]state.StoredPolicy, error) { return r.Queue.ListPolicies(ctx) })
}

// Targets implements state.Queue.
func (r *reads) Targets(ctx context.Context) ([]state.TargetSettings, error) {
	return taking(ctx, r, func() ([]state.TargetSettings, error) { return r.Queue.Targets(ctx) })
}

// Operations implements state.Queue.
func (r *reads) Operations(ctx context.Context) ([]state.Operation, error) {
	return taking(ctx, r, func() ([]state.Operation, error) { return r.Queue.Operations(ctx) })
}
