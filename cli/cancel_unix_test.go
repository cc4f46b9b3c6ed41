//go:build unix

package cli

import (
	"context"
	"errors"
	"iter"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// many is a journal of many tasks that wait.
type many struct {
	state.Store
	read, cancelled int
}

const manyTasks = 10_000

func (m *many) All(context.Context, state.Filter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		for m.read < manyTasks {
			m.read++
			if !yield(&task.Task{Number: int64(m.read), ID: "0198", Status: task.Pending, Command: []string{"true"}}, nil) {
				return
			}
		}
	}
}

func (m *many) Cancel(context.Context, int64, time.Time) error {
	m.cancelled++
	return nil
}

func (m *many) Interrupted(context.Context, *task.Task) (bool, error)                { return true, nil }
func (m *many) Owner(int64) (int, error)                                             { return 0, nil }
func (m *many) CancelNested(context.Context, *task.Task, time.Time, time.Time) error { return nil }

// Whoever closes the pipe, as head does, ends it: nothing more is read, or cancelled.
func TestCancelEndsWithItsReader(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		read, stdout, err := os.Pipe()
		testkit.Must(t, err, read.Close())
		journal := &many{}
		err = (&cancelCommand{All: true, DryRun: dryRun}).cancelMany(t.Context(), stdout, journal)
		testkit.Must(t, stdout.Close())
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("dry run %v: got %v, want a broken pipe", dryRun, err)
		}
		if most := 500; journal.read > most {
			t.Errorf("dry run %v: got %d tasks read, want %d at most", dryRun, journal.read, most)
		}
		if want := map[bool]int{true: 0, false: 1}[dryRun]; journal.cancelled != want {
			t.Errorf("dry run %v: got %d tasks cancelled, want %d", dryRun, journal.cancelled, want)
		}
	}
}
