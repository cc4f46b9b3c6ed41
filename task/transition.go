package task

import "slices"

// Transition is a step of a task from one status to another. A store writes only those that Transitions lists.
type Transition struct {
	Event    string
	From, To Status // From is empty where the event makes the task
}

// The events of a task's life that are not a verdict.
const (
	EventCreate   = "create"
	EventAdd      = "add" // for a worker, or before a wait for what an earlier run has left
	EventClaim    = "claim"
	EventRetryNow = "retry now" // an outcome and the claim of the attempt that follows at once, in one step
	EventUnclaim  = "unclaim"   // the claim of an attempt that did not begin is taken back
	EventCatchUp  = "catch up"  // an attempt, or the end, of a task whose store could not be written in between
	EventRequeue  = "requeue"
)

// Transitions lists every step a task can take. A verdict's event is its name.
func Transitions() []Transition { return transitions[:] }

// transitions is constant, and part of the program's data: Allowed asks it for each write.
var transitions = [...]Transition{
	{EventCreate, "", InFlight},
	{EventAdd, "", Pending},
	{EventClaim, Pending, InFlight},
	{EventRetryNow, InFlight, InFlight},
	{EventUnclaim, InFlight, Pending},
	{string(VerdictSucceeded), InFlight, Succeeded},
	{string(VerdictRetry), InFlight, Pending},
	{string(VerdictInterrupted), InFlight, Pending},
	{string(VerdictInterrupted), Pending, Pending},
	{string(VerdictFailed), InFlight, Failed},
	{string(VerdictExhausted), InFlight, Exhausted},
	{string(VerdictExhausted), Pending, Exhausted},
	{string(VerdictCancelled), InFlight, Cancelled},
	{string(VerdictCancelled), Pending, Cancelled},
	{EventCatchUp, InFlight, InFlight},
	{EventCatchUp, Pending, InFlight},
	{EventCatchUp, InFlight, Succeeded},
	{EventCatchUp, InFlight, Failed},
	{EventCatchUp, InFlight, Exhausted},
	{EventCatchUp, InFlight, Cancelled},
	{EventCatchUp, Pending, Succeeded},
	{EventCatchUp, Pending, Failed},
	{EventCatchUp, Pending, Exhausted},
	{EventCatchUp, Pending, Cancelled},
	{EventRequeue, Succeeded, Pending},
	{EventRequeue, Failed, Pending},
	{EventRequeue, Exhausted, Pending},
	{EventRequeue, Cancelled, Pending},
}

// Allowed reports whether event may lead from one status to another.
func Allowed(event string, from, to Status) bool {
	return slices.Contains(transitions[:], Transition{event, from, to})
}
