package task

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Attempt is one execution of a task, numbered from 1.
type Attempt struct {
	Number    int
	StartedAt time.Time
	Process   string // what the executor needs after a kill: where its processes are, or its part file
	Outcome   Outcome
	Decision  Decision // Verdict is empty while the attempt runs
	Worker    string   // the name of the worker that carried it; empty for a process of its own
	// Later is the number of an attempt that began after this one while the journal could not be written; 0 for none. Only
	// a note tells of that attempt, and Process leads to it. It may be the first one, where Number is 0.
	Later int
}

// Latest returns the number of the attempt that Process leads to; 0 is none.
func (a Attempt) Latest() int { return max(a.Number, a.Later) }

// CutOff reports whether the attempt may have left processes running: its owner died or was told to stop, or a signal
// that stops all of a service has reached the command first, so that its end looked like one of its own.
func (a Attempt) CutOff() bool {
	v := a.Decision.Verdict
	stopped := v != VerdictSucceeded && a.Outcome.Error == ErrorNone && slices.Contains(stopSignals, a.Outcome.Signal)
	stopped = stopped || v == VerdictInterrupted || v == VerdictCancelled
	return a.Later > 0 || a.Number > 0 && (stopped || a.Outcome.IsCrash())
}

var stopSignals = []string{"SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL"}

// ErrorClass names the way in which an attempt ended other than by itself.
type ErrorClass string

// The classes of error of a command.
const (
	ErrorNone          ErrorClass = ""
	ErrorTimeout       ErrorClass = "timeout"
	ErrorNotFound      ErrorClass = "not found"
	ErrorNotExecutable ErrorClass = "not executable"
	ErrorStart         ErrorClass = "start" // the system could not start the process: no memory, no such directory
)

// ErrorClasses are all of them but ErrorNone.
func ErrorClasses() []ErrorClass {
	return []ErrorClass{
		ErrorTimeout, ErrorNotFound, ErrorNotExecutable, ErrorStart,
		ErrorURL, ErrorDNS, ErrorConnect, ErrorTLS, ErrorReset, ErrorTruncated, ErrorProtocol, ErrorRedirects,
		ErrorRefused, ErrorLocal,
	}
}

// Outcome is how an attempt ended.
type Outcome struct {
	Exit      int           // the exit status, 128 + n for signal n; NoExit where the owner died first
	Signal    string        // "SIGKILL"; empty where no signal ended it
	Error     ErrorClass    // why it ended other than by itself
	Message   string        // the error for people
	Duration  time.Duration // of a crash: see IsBystander
	Stdout    string        // the end of stdout, if captured: ConditionTail bytes for the decision, then StoredTail bytes
	Stderr    string        // the same of stderr; of both streams where they are one file
	Final     bool          // no further attempt makes sense: its output is written already, or has no reader; not stored
	StdinRead bool          // no further attempt can have the same stdin; not stored
	GroupLeft bool          // it failed, and a part of its process group has not ended; not stored
	Stop      os.Signal     // the signal that asked retry itself to stop meanwhile; not stored
	Reply     *Reply        // of an HTTP request; nil for a command
}

// The bytes of the end of a captured stream that conditions can look at, and that are stored.
const (
	ConditionTail = 1 << 20
	StoredTail    = 8 << 10
)

// TrimTails shortens the captured output to what is stored.
func (o Outcome) TrimTails() Outcome {
	o.Stdout, o.Stderr = tail(o.Stdout), tail(o.Stderr)
	if o.Reply != nil {
		kept := *o.Reply
		kept.Body = tail(kept.Body)
		o.Reply = &kept
	}
	return o
}

// Masked hides what a regular expression matches in what the attempt said.
func (o Outcome) Masked(pattern string) Outcome {
	if pattern != "" {
		for _, said := range []*string{&o.Message, &o.Stdout, &o.Stderr} {
			*said = text.MaskPattern(*said, pattern)
		}
	}
	return o
}

func tail(text string) string {
	if len(text) <= StoredTail {
		return text
	}
	return strings.Clone(text[len(text)-StoredTail:]) // without Clone all of the text would stay in memory
}

// NoExit is the Exit of an attempt without an outcome.
const NoExit = -1

// Crashed is the outcome of an attempt whose owner died: it has none.
func Crashed() Outcome {
	return Outcome{Exit: NoExit, Message: "retry itself was killed, or the machine went down"}
}

// reply returns the attempt's reply; an empty one for a command.
func (o Outcome) reply() Reply {
	if o.Reply == nil {
		return Reply{}
	}
	return *o.Reply
}

// IsCrash reports whether the attempt's owner died before it ended.
func (o Outcome) IsCrash() bool {
	return o.Exit == NoExit
}

// IsBystander reports whether the attempt's owner died without a reason to blame the attempt for it: it had just begun,
// and others ran beside it. Who found it so has noted as its duration how long the dead owner had it; another crash has
// none.
func (o Outcome) IsBystander() bool {
	return o.IsCrash() && o.Duration > 0
}

// Started reports whether the command ran at all, or the request could be tried.
func (o Outcome) Started() bool {
	if o.Reply != nil {
		return o.Error != ErrorURL && o.Error != ErrorRefused && o.Error != ErrorLocal
	}
	return o.Error == ErrorNone || o.Error == ErrorTimeout
}

// Verdict is what a decision says.
type Verdict string

// The verdicts.
const (
	VerdictSucceeded   Verdict = "succeeded"
	VerdictRetry       Verdict = "retry"
	VerdictFailed      Verdict = "failed"
	VerdictExhausted   Verdict = "exhausted"
	VerdictCancelled   Verdict = "cancelled"
	VerdictInterrupted Verdict = "interrupted"
)

// Status returns the status that a verdict leads to.
func (v Verdict) Status() Status {
	switch v {
	case VerdictSucceeded:
		return Succeeded
	case VerdictFailed:
		return Failed
	case VerdictExhausted:
		return Exhausted
	case VerdictCancelled:
		return Cancelled
	default:
		return Pending
	}
}

// Decision is what follows from an outcome.
type Decision struct {
	Verdict      Verdict
	Reason       Reason
	Delay        time.Duration // before the next attempt, where the verdict is retry
	Shortened    bool          // the delay was cut so that one last attempt fits the budget
	Rule         int           // the number of the policy's rule that gave the delay, from 1; 0 for none
	Why          string        // of an outcome that is not eligible: the rest of a sentence about it; not stored
	Success      bool          // the outcome is a success under the policy, one of consecutive ones perhaps
	ConditionErr error         // why a condition could not be evaluated; not stored
}

// ErrStopped says that a signal ended what was under way.
var ErrStopped = errors.New("stopped by a signal")

// The exit statuses of retry that are not the command's own; the numbers are those of timeout(1) and env(1).
const (
	ExitSuccess       = 0
	ExitUnsuccessful  = 1  // the last attempt exited 0, but the task did not succeed
	ExitReplyLost     = 23 // curl's for a reply that could not be written
	ExitNoReply       = 56 // curl's for a reply that was not received
	ExitDeferred      = 75 // EX_TEMPFAIL of sysexits.h: another run has to continue the task
	ExitTimeout       = 124
	ExitInternal      = 125
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitSignalBase    = 128
)

// ExitCode returns the exit status that stands for the outcome. An HTTP request has curl's, whatever went wrong.
func (o Outcome) ExitCode() int {
	switch {
	case o.Reply != nil && o.IsCrash(): // nobody saw whether there was a reply
		return ExitNoReply
	case o.Reply != nil:
		return o.Exit
	case o.Error == ErrorTimeout:
		return ExitTimeout
	case o.Error == ErrorNotFound:
		return ExitNotFound
	case o.Error == ErrorNotExecutable:
		return ExitNotExecutable
	case o.Error == ErrorStart && !o.StdinRead, o.IsCrash():
		return ExitInternal
	}
	return o.Exit
}
