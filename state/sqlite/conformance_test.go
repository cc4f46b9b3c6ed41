package sqlite

import (
	"context"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() (state.Store, error) {
		dir := t.TempDir()
		return func() (state.Store, error) {
			j, err := Open(context.Background(), dir)
			if err != nil {
				return nil, err
			}
			return checked{j, t}, nil
		}
	})
}

// checked is a journal whose file is checked before it is closed.
type checked struct {
	*Journal
	t *testing.T
}

func (c checked) Close() error {
	integrity(c.t, c.Journal)
	return c.Journal.Close()
}

// What the suite has for stores serves the tests of this one, too.
type (
	tester = storetest.Tester
	write  = storetest.Write
)

var (
	epoch       = storetest.Epoch
	interrupted = storetest.Interrupted
	succeeded   = storetest.Succeeded
	failed      = storetest.Failed
	exhausted   = storetest.Exhausted
	cancelled   = storetest.Cancelled
	newTask     = storetest.NewTask
	claimed     = storetest.Claimed
	recorded    = storetest.Recorded
	settled     = storetest.Settled
	must        = storetest.Must
	inFlight    = storetest.InFlight
	waiting     = storetest.Waiting
	exit        = storetest.Exit
	retryIn     = storetest.RetryIn
	stored      = storetest.Stored
	attempts    = storetest.Attempts
	showTask    = storetest.ShowTask
	showAttempt = storetest.ShowAttempt
	show        = storetest.Show
	showTime    = storetest.ShowTime
	refuses     = storetest.Refuses
	claiming    = storetest.Claiming
	recording   = storetest.Recording
	chained     = storetest.Chained
	chaining    = storetest.Chaining
	settling    = storetest.Settling
	cancelling  = storetest.Cancelling
	catchingUp  = storetest.CatchingUp
	apply       = storetest.Apply
)
