package cli

import (
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/task"
)

// streamFlags say what becomes of a command's streams; they go into the journal with the task.
type streamFlags struct {
	Stdin       string     `enum:"auto,replay,null" default:"auto"`
	Output      string     `enum:"stream,final,success,failure" default:"stream"`
	OutputLimit flags.Size `default:"2GiB"`
	Capture     string     `enum:"none,stderr,both" default:"none"`
}

// over puts what the flags say into a task's options. What they leave as it is stays empty.
func (f *streamFlags) over(o task.Options) task.Options {
	if mode := task.StdinMode(f.Stdin); mode != task.StdinAuto {
		o.Stdin = mode
	}
	if mode := task.OutputMode(f.Output); mode.Held() {
		o.Output = mode
	}
	if o.Output == task.OutputFinal {
		o.OutputLimit = int64(f.OutputLimit)
	}
	if mode := task.CaptureMode(f.Capture); mode != task.CaptureNone {
		o.Capture = mode
	}
	return o
}

// hookFlags are commands to run beside a task, and the seed of its jitter; they go into the journal with it, too.
type hookFlags struct {
	OnRetry   string
	OnSuccess string
	OnFailure string
	Seed      *uint64
}

func (f *hookFlags) options() task.Options {
	return task.Options{OnRetry: f.OnRetry, OnSuccess: f.OnSuccess, OnFailure: f.OnFailure, Seed: f.Seed}
}
