package task

import (
	"math/rand/v2"
	"time"
)

// StdinMode says what a command finds on its stdin.
type StdinMode string

// The stdin modes.
const (
	StdinAuto   StdinMode = "auto"   // retry's own; what is seekable is read from the same place again
	StdinRest   StdinMode = "rest"   // retry's own: each attempt gets what the earlier ones have left
	StdinReplay StdinMode = "replay" // retry's own, kept, and given to each attempt from the start
	StdinNull   StdinMode = "null"   // nothing
)

// Source is what a command had as its stdin, so that a resume finds it again. The zero value is nothing, as most jobs
// have it; an older retry has stored it for a terminal, too. A file's device is left out: its number may be another one
// after a boot.
type Source struct {
	Path     string `json:"path,omitempty"` // of a file or a device
	Inode    uint64 `json:"inode,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Modified int64  `json:"modified,omitempty"` // nanoseconds since 1970
	Offset   int64  `json:"offset,omitempty"`   // where the first attempt began to read
	Pipe     bool   `json:"pipe,omitempty"`     // it was a pipe or a socket, which is gone with the process that had it
	Terminal bool   `json:"terminal,omitempty"`
}

// Destination is a file that a line's shell has opened as its stdout: a resume does not write there. The zero value is
// none.
type Destination struct {
	Path  string `json:"path,omitempty"`
	Inode uint64 `json:"inode,omitempty"`
}

// OutputMode says which attempts' output is passed on.
type OutputMode string

// The output modes. All but stream hold an attempt's output until the decision about it is known.
const (
	OutputStream  OutputMode = "stream"  // everything, as it comes
	OutputFinal   OutputMode = "final"   // the last attempt's
	OutputSuccess OutputMode = "success" // the last attempt's, of a task that succeeded
	OutputFailure OutputMode = "failure" // the last attempt's, of a task that failed
)

// Held reports whether output waits for the decision.
func (m OutputMode) Held() bool {
	return m != "" && m != OutputStream
}

// PassesOn reports whether the output of an attempt is passed on, given what the task came to.
func (m OutputMode) PassesOn(s Status) bool {
	switch m {
	case OutputFinal:
		return s.Finished()
	case OutputSuccess:
		return s == Succeeded
	case OutputFailure:
		return s == Failed || s == Exhausted
	}
	return false
}

// CaptureMode says of which streams the journal keeps the end.
type CaptureMode string

// The capture modes.
const (
	CaptureNone   CaptureMode = "none"
	CaptureStderr CaptureMode = "stderr"
	CaptureBoth   CaptureMode = "both"
)

// And returns the mode that keeps what either keeps.
func (m CaptureMode) And(other CaptureMode) CaptureMode {
	switch {
	case m == CaptureBoth || other == CaptureBoth:
		return CaptureBoth
	case m == CaptureStderr || other == CaptureStderr:
		return CaptureStderr
	}
	return CaptureNone
}

// DefaultHookTimeout is how long a hook may run.
const DefaultHookTimeout = 30 * time.Second

// Options are how a task is run, beside its policy. The zero value is a plain command.
type Options struct {
	Stdin       StdinMode     `json:"stdin,omitempty"`        // empty: auto
	Source      Source        `json:"source,omitzero"`        // of a command that inherits its stdin
	Stdout      Destination   `json:"stdout,omitzero"`        // of the line that has begun it
	Output      OutputMode    `json:"output,omitempty"`       // empty: stream
	OutputLimit int64         `json:"output_limit,omitempty"` // bytes that OutputFinal holds; 0 = no limit
	Capture     CaptureMode   `json:"capture,omitempty"`      // empty: none
	OnStart     string        `json:"on_start,omitempty"`     // shell commands; empty for none
	OnRetry     string        `json:"on_retry,omitempty"`
	OnSuccess   string        `json:"on_success,omitempty"`
	OnFailure   string        `json:"on_failure,omitempty"`
	Report      string        `json:"report,omitempty"`       // the absolute path of a file that a resume writes, too
	Ping        string        `json:"ping,omitempty"`         // a monitor's URL, perhaps with {env:NAME}; empty for none
	HookTimeout time.Duration `json:"hook_timeout,omitempty"` // of one hook; 0 = DefaultHookTimeout
	Signal      string        `json:"signal,omitempty"`       // that a timeout sends first, as SIGINT; empty: SIGTERM
	Seed        *uint64       `json:"seed,omitempty"`         // makes the jitter repeatable; nil: it is not
	Exhausted   string        `json:"exhausted,omitempty"`    // the JSON of a task to add when this one is dead; the API's
	Mask        string        `json:"mask,omitempty"`         // a regular expression for what must not be shown

	// ExhaustedPolicy is the JSON of the policy that the task of Exhausted gets, as it was when this task was made. It is
	// empty where Exhausted has the policy inline, and in tasks that an older version made.
	ExhaustedPolicy string `json:"exhausted_policy,omitempty"`
}

// Phase returns the task's phase: natural, unless the seed decides about all that is random.
func (o *Options) Phase(natural float64) float64 {
	if o.Seed == nil {
		return natural
	}
	return rand.New(rand.NewPCG(*o.Seed, 0)).Float64()
}

// NextHook is the hook that follows an attempt.
func (o *Options) NextHook(d Decision, s Status) string {
	if d.Verdict == VerdictRetry {
		return o.OnRetry
	}
	return o.FinalHook(s)
}

// FinalHook is the hook of a task that ended. A cancelled task did not fail, so it has none.
func (o *Options) FinalHook(s Status) string {
	switch s {
	case Succeeded:
		return o.OnSuccess
	case Failed, Exhausted:
		return o.OnFailure
	}
	return ""
}
