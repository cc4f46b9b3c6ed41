package cli

import (
	"fmt"

	"github.com/docker/go-units"

	"github.com/10f93571/retry/runner"
)

// streamFlags say what becomes of a command's streams; they go into the journal with the task.
type streamFlags struct {
	Stdin       string `group:"Streams" enum:"auto,replay,null" default:"auto" placeholder:"auto|replay|null" help:"auto: retry's own, a file from the same place in each attempt. replay: keep it, and give every attempt the same bytes. null: nothing."`
	Output      string `group:"Streams" enum:"stream,final,success,failure" default:"stream" placeholder:"stream|final|success|failure" help:"stream: as it comes. The others hold an attempt's output. final: pass on the last attempt's; success: only if it succeeded; failure: only if the task failed."`
	OutputLimit size   `group:"Streams" default:"2GiB" placeholder:"SIZE" help:"With --output final: pass an attempt's output on once it is larger, and do not try again. Default 2GiB; 0 = no limit."`
	Capture     string `group:"Streams" enum:"none,stderr,both" default:"none" placeholder:"none|stderr|both" help:"Keep the end of each attempt's output in the journal: 8 KiB."`
}

// over puts what the flags say into a task's options. What they leave as it is stays empty.
func (f *streamFlags) over(o runner.Options) runner.Options {
	if mode := runner.StdinMode(f.Stdin); mode != runner.StdinAuto {
		o.Stdin = mode
	}
	if mode := runner.OutputMode(f.Output); mode.Held() {
		o.Output = mode
	}
	if o.Output == runner.OutputFinal {
		o.OutputLimit = int64(f.OutputLimit)
	}
	if mode := runner.CaptureMode(f.Capture); mode != runner.CaptureNone {
		o.Capture = mode
	}
	return o
}

// hookFlags are commands to run beside a task, and the seed of its jitter; they go into the journal with it, too.
type hookFlags struct {
	OnRetry   string  `group:"Hooks" placeholder:"CMD" help:"A shell command to run when an attempt is to be followed by another."`
	OnSuccess string  `group:"Hooks" placeholder:"CMD" help:"One to run when the task has succeeded."`
	OnFailure string  `group:"Hooks" placeholder:"CMD" help:"One to run when the task has failed in the end."`
	Seed      *uint64 `group:"Running" placeholder:"N" help:"Make the jitter repeatable."`
}

func (f *hookFlags) options() runner.Options {
	return runner.Options{OnRetry: f.OnRetry, OnSuccess: f.OnSuccess, OnFailure: f.OnFailure, Seed: f.Seed}
}

// size is a flag's value that is a number of bytes: 2GiB, 512M, 4096.
type size int64

// UnmarshalText reads the value of a flag.
func (s *size) UnmarshalText(text []byte) error {
	n, err := units.RAMInBytes(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no size\nhint: write it like 512M, 2GiB, or a number of bytes", text)
	}
	*s = size(n)
	return nil
}

func (s size) String() string {
	return units.BytesSize(float64(s))
}
