package cli

import (
	"fmt"

	"github.com/docker/go-units"

	"github.com/10f93571/retry/task"
)

// streamFlags say what becomes of a command's streams; they go into the journal with the task.
type streamFlags struct {
	Stdin       string `enum:"auto,replay,null" default:"auto"`
	Output      string `enum:"stream,final,success,failure" default:"stream"`
	OutputLimit size   `default:"2GiB"`
	Capture     string `enum:"none,stderr,both" default:"none"`
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
