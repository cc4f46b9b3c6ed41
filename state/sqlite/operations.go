package sqlite

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
)

// The statement that removes ended operations is a scan: there are few operations.
const (
	putOperation = `INSERT INTO operations (id, status, operation) VALUES (?1, ?2, ?3)
		ON CONFLICT (id) DO UPDATE SET status = ?2, operation = ?3`
	pruneOperations = `DELETE FROM operations WHERE status <> ?1 AND id <= (SELECT id FROM operations WHERE status <> ?1
		ORDER BY id DESC LIMIT 1 OFFSET ?2)`
)

// PutOperation implements state.Queue.
func (q *Queue) PutOperation(ctx context.Context, o state.Operation) error {
	return q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		o := o
		const query = "SELECT status FROM operations WHERE id = ? AND status <> ?"
		err := c.Each(ctx, query, []any{o.ID, state.OperationRunning}, func(scan conn.Scanner) (bool, error) {
			return false, scan(&o.Status)
		})
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if _, err := c.Exec(putOperation, o.ID, o.Status, string(text)); err != nil {
			return nil, err
		}
		_, err = c.Exec(pruneOperations, state.OperationRunning, state.OperationsKept)
		return nil, err
	})
}

// Operation implements state.Queue.
func (q *Queue) Operation(ctx context.Context, id string) (*state.Operation, error) {
	const query = "SELECT operation FROM operations WHERE id = ?"
	found, err := selected(ctx, q, query, []any{id}, scanJSON[state.Operation])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Operations implements state.Queue.
func (q *Queue) Operations(ctx context.Context) ([]state.Operation, error) {
	const query = "SELECT operation FROM operations WHERE status = ?"
	return selected(ctx, q, query, []any{state.OperationRunning}, scanJSON[state.Operation])
}

// carriedOperations has the queue of this process that carries an operation: the system does not tell a process of its
// own locks.
var carriedOperations sync.Map

type operationKey struct{ dir, id string }

// OwnOperation implements state.Queue, by a lock of the kernel.
func (q *Queue) OwnOperation(_ context.Context, id string) (bool, error) {
	key := operationKey{q.dir, id}
	if _, carried := carriedOperations.LoadOrStore(key, q); carried {
		return false, nil
	}
	owned, err := q.owners.Acquire(lock.Operation(id))
	if !owned || err != nil {
		carriedOperations.Delete(key)
	}
	return owned, err
}

// DisownOperation implements state.Queue.
func (q *Queue) DisownOperation(id string) error {
	err := q.owners.Release(lock.Operation(id))
	carriedOperations.Delete(operationKey{q.dir, id})
	return err
}

// forgetOperations makes the operations that this queue carries free for others.
func (q *Queue) forgetOperations() {
	carriedOperations.Range(func(key, owner any) bool {
		if owner == q {
			carriedOperations.Delete(key)
		}
		return true
	})
}
