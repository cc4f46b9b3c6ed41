package task

// Transition is a step of a task from one status to another. Those of Transitions are all there are; the journal can spell no other.
type Transition struct {
	Event    string
	From, To Status // From is empty where the event makes the task
}

// The events of a task's life that are not a verdict.
const (
	EventCreate  = "create"
	EventClaim   = "claim"
	EventRequeue = "requeue"
)

// Transitions lists every step a task can take. A verdict's event is its name.
func Transitions() []Transition {
	return []Transition{
		{EventCreate, "", Pending},
		{EventClaim, Pending, InFlight},
		{string(VerdictSucceeded), InFlight, Succeeded},
		{string(VerdictRetry), InFlight, Pending},
		{string(VerdictInterrupted), InFlight, Pending},
		{string(VerdictInterrupted), Pending, Pending},
		{string(VerdictFailed), InFlight, Failed},
		{string(VerdictExhausted), InFlight, Exhausted},
		{string(VerdictExhausted), Pending, Exhausted},
		{string(VerdictCancelled), InFlight, Cancelled},
		{string(VerdictCancelled), Pending, Cancelled},
		{EventRequeue, Succeeded, Pending},
		{EventRequeue, Failed, Pending},
		{EventRequeue, Exhausted, Pending},
		{EventRequeue, Cancelled, Pending},
	}
}

// Allowed reports whether event may lead from one status to another.
func Allowed(event string, from, to Status) bool {
	for _, t := range Transitions() {
		if t == (Transition{event, from, to}) {
			return true
		}
	}
	return false
}
