package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// CreateQueue makes an empty queue and returns what opens it. Each opening stands for a process of its own: one that is
// closed while its worker is registered stands for a process that has died.
type CreateQueue func(t *testing.T) (open func() (state.Queue, error))

// RunQueue checks that a store keeps what state.Queue promises.
func RunQueue(t *testing.T, create CreateQueue) {
	s := queueSuite{create}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"AddStoresTasks", s.addStoresTasks},
		{"AddIsAllOrNothing", s.addIsAllOrNothing},
		{"OnceUnderACancel", s.onceUnderACancel},
		{"RequeueOfWhatWasRead", s.requeueOfWhatWasRead},
		{"Keys", s.keys},
		{"KeysInOneBatch", s.keysInOneBatch},
		{"EqualAddsMakeOneTask", s.equalAddsMakeOneTask},
		{"AKeyIsFreeAfterPruning", s.aKeyIsFreeAfterPruning},
		{"AnEndedContextWritesNothing", s.anEndedContextWritesNothing},
		{"AClosedQueueAnswers", s.aClosedQueueAnswers},
		{"WaitingIsInOrder", s.waitingIsInOrder},
		{"WaitingInALane", s.waitingInALane},
		{"EachTaskIsClaimedOnce", s.eachTaskIsClaimedOnce},
		{"ClaimStoresTheIntent", s.claimStoresTheIntent},
		{"AClaimAnswersInOrder", s.aClaimAnswersInOrder},
		{"ClaimWaitsForTheTime", s.claimWaitsForTheTime},
		{"WhatIsNotReadyIsNotClaimed", s.whatIsNotReadyIsNotClaimed},
		{"ABudgetThatIsOverIsNotClaimed", s.aBudgetThatIsOverIsNotClaimed},
		{"SettleStoresTheOutcome", s.settleStoresTheOutcome},
		{"SettleWritesOnlyTransitions", s.settleWritesOnlyTransitions},
		{"LateWritersAreRefused", s.lateWritersAreRefused},
		{"SettleTwiceIsNoError", s.settleTwiceIsNoError},
		{"SettleAfterACancelAddsTheOutcomeAlone", s.settleAfterACancelAddsTheOutcomeAlone},
		{"SettleAddsWhatFollowsOnce", s.settleAddsWhatFollowsOnce},
		{"SettleOfAPrunedTaskIsLate", s.settleOfAPrunedTaskIsLate},
		{"NoteProcess", s.noteProcess},
		{"Unfinished", s.unfinished},
		{"WorkersAreListed", s.workersAreListed},
		{"ADeadWorkerIsReplaced", s.aDeadWorkerIsReplaced},
		{"AStaleWorkerKeepsItsCommands", s.aStaleWorkerKeepsItsCommands},
		{"AWorkerThatRenewsKeepsAll", s.aWorkerThatRenewsKeepsAll},
		{"TheNextRescuerTakesOver", s.theNextRescuerTakesOver},
		{"AWorkerThatLeavesKeepsNothing", s.aWorkerThatLeavesKeepsNothing},
		{"AKeptEndIsWrittenBeforeATakeover", s.aKeptEndIsWrittenBeforeATakeover},
		{"AKeptEndIsWrittenBeforeAClaim", s.aKeptEndIsWrittenBeforeAClaim},
		{"ThreeCrashesExhaust", s.threeCrashesExhaust},
		{"CancelEndsWhatIsUnfinished", s.cancelEndsWhatIsUnfinished},
		{"RequeueGivesFreshAttempts", s.requeueGivesFreshAttempts},
		{"WhatCannotBeRequeued", s.whatCannotBeRequeued},
		{"RescheduleMovesWhatWaits", s.rescheduleMovesWhatWaits},
		{"CancelNested", s.cancelNested},
		{"PageFilters", s.pageFilters},
		{"APageStaysWhileTasksAreAdded", s.aPageStaysWhileTasksAreAdded},
		{"APageEndsByItsBytes", s.aPageEndsByItsBytes},
		{"AttemptsAfter", s.attemptsAfter},
		{"Groups", s.groups},
		{"Counts", s.counts},
		{"PoliciesHaveRevisions", s.policiesHaveRevisions},
		{"Targets", s.targets},
		{"Operations", s.operations},
		{"OperationOwner", s.operationOwner},
		{"BlobInUse", s.blobInUse},
		{"ChangesAreTold", s.changesAreTold},
		{"ChangesThatAreLostAreTold", s.changesThatAreLostAreTold},
		{"ChangesEnd", s.changesEnd},
		{"TheQueueIsItsModel", s.theQueueIsItsModel},
	} {
		t.Run(test.name, test.run)
	}
}

type queueSuite struct {
	create CreateQueue
}

// start makes an empty queue, and opens it as one process.
func (s queueSuite) start(t *testing.T) *process {
	t.Helper()
	return startProcess(t, s.create(t))
}

// process is one opening of a queue, with a worker where one was registered.
type process struct {
	state.Queue
	t      Tester
	open   func() (state.Queue, error)
	number int64 // of its worker
	gone   bool
}

func startProcess(t *testing.T, open func() (state.Queue, error)) *process {
	t.Helper()
	q, err := open()
	Must(t, err)
	p := &process{Queue: q, t: t, open: open}
	t.Cleanup(p.die)
	return p
}

// another opens the same queue as another process, with a worker.
func (p *process) another(t *testing.T) *process {
	t.Helper()
	return startProcess(t, p.open).register()
}

// register makes the process a worker.
func (p *process) register() *process {
	p.t.Helper()
	var err error
	p.number, err = p.Register(context.Background(), state.Worker{Name: "worker", Concurrency: 4})
	Must(p.t, err)
	return p
}

// die ends the process. What it leaves is for others.
func (p *process) die() {
	if !p.gone {
		p.gone = true
		Must(p.t, p.Close())
	}
}

// NewRequest returns a task for a worker that no queue knows yet.
func NewRequest(host string) *task.Task {
	t := NewTask()
	t.Kind, t.Command, t.Queue, t.Target = KindRequest, nil, task.QueueWorker, &Request{Authority: host}
	return t
}

func queuedCommand() *task.Task {
	t := NewTask()
	t.Queue = task.QueueWorker
	return t
}

// keyed returns a request with a key and a payload.
func keyed(partition, key, payload string) *task.Task {
	t := NewRequest("example.org")
	t.Partition, t.IdempotencyKey, t.Payload = partition, key, payload
	return t
}

// add stores tasks, and returns how they are stored.
func (p *process) add(tasks ...*task.Task) []*task.Task {
	p.t.Helper()
	added, err := p.Add(context.Background(), tasks)
	Must(p.t, err)
	stored := make([]*task.Task, len(added))
	for i, a := range added {
		stored[i] = a.Task
	}
	return stored
}

// claim begins an attempt of a task, and returns the task as its executor has it.
func (p *process) claim(number int64, now time.Time) *task.Task {
	p.t.Helper()
	got, err := p.Claim(context.Background(), p.number, []int64{number}, now, nil)
	Must(p.t, err)
	if len(got) != 1 || got[0] == nil || got[0].Nonce == 0 {
		p.t.Fatalf("got %+v of task %d, want a claim", got, number)
	}
	got[0].BeginAttempt()
	return got[0]
}

// inFlight returns a new task with an attempt in flight.
func (p *process) inFlight(t *task.Task) *task.Task {
	p.t.Helper()
	return p.claim(p.add(t)[0].Number, Epoch)
}

// settle ends the attempt of a claimed task. If that is refused, the task stays as it was.
func (p *process) settle(t *task.Task, o task.Outcome, d task.Decision, now time.Time, follows *task.Task) error {
	moved, a := *t, task.Attempt{Number: t.AttemptCount, StartedAt: Epoch, Outcome: o, Decision: d}
	moved.ApplyDecision(a, now)
	err := p.Settle(context.Background(), &moved, a, follows)
	if err == nil {
		*t = moved
	}
	return err
}

// settleEnd ends a task that waits.
func (p *process) settleEnd(t *task.Task, d task.Decision, now time.Time) error {
	moved := *t
	moved.Move(d, now)
	err := p.Settle(context.Background(), &moved, task.Attempt{Decision: d}, nil)
	t.Nonce = moved.Nonce // a second call is the same worker's
	return err
}

// takeOver takes all attempts of the dead workers, at a time, in pieces.
func (p *process) takeOver(now time.Time, limit int) (taken []*task.Task) {
	p.t.Helper()
	dead, err := p.Dead(context.Background(), now, visibility)
	Must(p.t, err)
	for _, d := range dead {
		for {
			tasks, err := p.TakeOver(context.Background(), p.number, d, limit, now)
			Must(p.t, err)
			if len(tasks) > limit {
				p.t.Fatalf("got %d tasks at once, want at most %d", len(tasks), limit)
			}
			if taken = append(taken, tasks...); len(tasks) == 0 {
				break
			}
		}
	}
	return taken
}

const visibility = 30 * time.Second

// stored reads a task and its attempts back.
func (p *process) stored(id string) (*task.Task, []task.Attempt) {
	p.t.Helper()
	t, err := p.Find(context.Background(), id)
	Must(p.t, err)
	list, err := p.AttemptsAfter(context.Background(), t.Number, 0, 1000)
	Must(p.t, err)
	return t, list
}

// all returns every task, newest first.
func (p *process) all(f state.PageFilter) (tasks []*task.Task) {
	p.t.Helper()
	f.Limit = cmp.Or(f.Limit, 100)
	for {
		page, err := p.Page(context.Background(), f)
		Must(p.t, err)
		if len(page.Tasks) > f.Limit {
			p.t.Fatalf("got a page of %d tasks, want at most %d", len(page.Tasks), f.Limit)
		}
		tasks = append(tasks, page.Tasks...)
		if page.Next == 0 {
			return tasks
		}
		f.Cursor = page.Next
	}
}

// showQueued writes what a queue has to remember beside ShowTask.
func showQueued(t *task.Task) string {
	return fmt.Sprintf("%s | to %q partition %q tags %q payload %q queue %d", ShowTask(t), t.Host(), t.Partition, t.Tags,
		t.Payload, t.Queue)
}

// snapshot is the text of everything that is stored.
func (p *process) snapshot() string {
	p.t.Helper()
	var lines []string
	for _, t := range p.all(state.PageFilter{}) {
		found, list := p.stored(t.ID)
		lines = append(lines, showQueued(found), fmt.Sprintf("worker %d nonce %d", found.Worker, found.Nonce))
		for _, a := range list {
			lines = append(lines, ShowAttempt(a), fmt.Sprintf("process %q by %q", a.Process, a.Worker))
		}
	}
	return strings.Join(lines, "\n")
}

// unchanged checks that something leaves no trace, and returns the wanted error.
func (p *process) unchanged(t *testing.T, what string, want error, do func() error) {
	t.Helper()
	before := p.snapshot()
	if err := do(); !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
	if after := p.snapshot(); after != before {
		t.Errorf("%s: got\n%s\nwant no change of\n%s", what, after, before)
	}
}

// expect compares a task and its attempts with what is stored.
func (p *process) expect(t *testing.T, want *task.Task, list ...task.Attempt) {
	t.Helper()
	found, attempts := p.stored(want.ID)
	if g, w := Show(found, attempts), Show(want, list); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if last := list[max(0, len(list)-1):]; len(last) > 0 && ShowAttempt(found.Last) != ShowAttempt(last[0]) {
		t.Errorf("got as the last attempt\n%s\nwant\n%s", ShowAttempt(found.Last), ShowAttempt(last[0]))
	}
}
