// Package storetest checks that a store keeps what package state promises: Run of a state.Store, RunQueue of a
// state.Queue. It knows nothing of how a store is made. Pruning, inputs and statistics have their tests in
// state/sqlite.
package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Create makes an empty store and returns what opens it. Each opening stands for a process of its own.
type Create func(t *testing.T) (open func() (state.Store, error))

// Run runs the whole suite.
func Run(t *testing.T, create Create) {
	s := suite{create}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"RecordStoresTheOutcomeAndTheDecision", s.recordStoresTheOutcomeAndTheDecision},
		{"ClaimStoresTheIntent", s.claimStoresTheIntent},
		{"SettleStoresTheDecision", s.settleStoresTheDecision},
		{"SettleKeepsTheTimeItIsGiven", s.settleKeepsTheTimeItIsGiven},
		{"SettleOfAnUnknownTaskWritesNothing", s.settleOfAnUnknownTaskWritesNothing},
		{"Cancel", s.cancel},
		{"Hasten", s.hasten},
		{"LateWritersAreRefused", s.lateWritersAreRefused},
		{"RecordAfterACancelAddsTheOutcomeAlone", s.recordAfterACancelAddsTheOutcomeAlone},
		{"RecordAfterTheOwnCancelAddsNothing", s.recordAfterTheOwnCancelAddsNothing},
		{"RecordOfAnotherAttemptIsRefused", s.recordOfAnotherAttemptIsRefused},
		{"ForbiddenTransitionsAreNotWritten", s.forbiddenTransitionsAreNotWritten},
		{"AnEndedContextWritesNothing", s.anEndedContextWritesNothing},
		{"AnIDIsTakenOnce", s.anIDIsTakenOnce},
		{"AChainIsARecordAndAClaim", s.aChainIsARecordAndAClaim},
		{"AnUnclaimLeavesARecord", s.anUnclaimLeavesARecord},
		{"CatchUpWritesTheEnd", s.catchUpWritesTheEnd},
		{"CatchUpAfterAWait", s.catchUpAfterAWait},
		{"CatchUpIsRefusedWhereAnotherHasGoneOn", s.catchUpIsRefusedWhereAnotherHasGoneOn},
		{"CatchUpIsOfTheTaskItself", s.catchUpIsOfTheTaskItself},
		{"AKeptEndIsWritten", s.aKeptEndIsWritten},
		{"AKeptEndIsOfItsRun", s.aKeptEndIsOfItsRun},
		{"ANameHasOneUnfinishedTask", s.aNameHasOneUnfinishedTask},
		{"OnceIsOnce", s.onceIsOnce},
		{"OnceUnderACancel", s.onceUnderACancel},
		{"MayBeDone", s.mayBeDone},
		{"CreateWaits", s.createWaits},
		{"NamedAndSuccess", s.namedAndSuccess},
		{"Requeue", s.requeue},
		{"WhatCannotBeRequeued", s.whatCannotBeRequeued},
		{"OneOfManyClaims", s.oneOfManyClaims},
		{"TheStoreIsItsModel", s.theStoreIsItsModel},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct {
	create Create
}

// open opens a new store.
func (s suite) open(t *testing.T) state.Store {
	t.Helper()
	return opened(t, s.create(t))
}

func opened(t *testing.T, open func() (state.Store, error)) state.Store {
	t.Helper()
	j, err := open()
	Must(t, err)
	t.Cleanup(func() { Must(t, j.Close()) })
	return j
}

// Of many that claim the same attempt at once, one gets it; so it is with an outcome.
func (s suite) oneOfManyClaims(t *testing.T) {
	open := s.create(t)
	first := opened(t, open)
	tk := Waiting(t, first)
	stores := []state.Store{first}
	for range 7 {
		stores = append(stores, opened(t, open))
	}
	for _, w := range []Write{Claiming(), Recording(RetryIn(0)), Claiming(), Recording(Succeeded)} {
		copies := make([]task.Task, len(stores))
		results := make([]error, len(stores))
		var group sync.WaitGroup
		for i, j := range stores {
			copies[i] = *tk
			group.Go(func() { results[i] = w.Do(j, &copies[i]) })
		}
		group.Wait()
		winners := 0
		for i, err := range results {
			switch {
			case err == nil:
				winners++
				*tk = copies[i]
			case !errors.Is(err, task.ErrNotOwner):
				t.Errorf("%s: got %v, want %v", w.Name, err, task.ErrNotOwner)
			}
		}
		if winners != 1 {
			t.Fatalf("%s: got %d that succeeded, want 1", w.Name, winners)
		}
	}
	list, err := first.Attempts(context.Background(), tk.Number)
	Must(t, err)
	if len(list) != 3 {
		t.Errorf("got %d attempts, want 3", len(list))
	}
}
