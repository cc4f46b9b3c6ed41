package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type logsCommand struct {
	flags.StateFlag
	Attempt *flags.Count `placeholder:"N" help:"The attempt. Default the latest that has output."`
	Raw     bool         `help:"Print the bytes as they were, stdout's on stdout and stderr's on stderr. A terminal obeys whatever is in them."`
	Task    string       `arg:"" optional:"" help:"The task: its id, a beginning or an end of it, or its name."`
}

const logsUsage = `Show the end of what an attempt wrote: what --capture stderr, --capture both or held output (--output) kept of it.

Usage:
  retry logs [flags] TASK

Examples:
  retry logs nightly                 the last attempt of the newest run of that name
  retry logs b88690eb --attempt 1    an earlier one, by the id that retry status shows
`

func (c *logsCommand) Run(p *Process) (int, error) {
	if c.Task == "" {
		return 0, errors.New("no task to show the logs of\nhint: retry logs TASK; retry status lists the tasks")
	}
	return 0, p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) error {
		view, err := findView(ctx, journal, c.Task)
		if err != nil {
			return err
		}
		output, err := c.output(ctx, journal, view)
		if err != nil {
			return err
		}
		if c.Raw {
			return printRaw(p, output)
		}
		screen := render.ScreenOf(p.Stdout, p.Getenv)
		return render.Logs(p.Stdout, screen, view.Kind, output.Attempt, output.Stdout, output.Stderr)
	})
}

func (c *logsCommand) output(ctx context.Context, journal state.Store, view render.TaskView) (state.Output, error) {
	number := 0
	if c.Attempt != nil {
		number = int(*c.Attempt)
		if number < 1 || number > view.AttemptCount {
			return state.Output{}, fmt.Errorf("task %s has no attempt %d"+
				"\nhint: it has %s", render.ShortID(view.ID), number, text.Count(view.AttemptCount, "attempt"))
		}
	}
	output, err := journal.Output(ctx, view.Number, number)
	if errors.Is(err, state.ErrNoOutput) {
		attempt := ""
		if number > 0 {
			attempt = fmt.Sprintf(", attempt %d", number)
		}
		err = fmt.Errorf("task %s%s: %w\nhint: %s", render.ShortID(view.ID), attempt, err, noOutputHint(view, number))
	}
	return output, err
}

// noOutputHint says why there is no output, which depends on what the task's flags keep.
func noOutputHint(view render.TaskView, number int) string {
	capture, kept := view.Options.Capture, "--capture "+string(view.Options.Capture)
	if view.Options.Output.Held() { // held output is captured in any case
		kept = "--output " + string(view.Options.Output)
	}
	running := view.Status == task.InFlight && !view.Interrupted && (number == 0 || number == view.AttemptCount)
	switch isRequest := view.Kind != task.KindCommand; {
	case isRequest && capture == task.CaptureBoth:
		return "no reply had a body"
	case isRequest && capture == task.CaptureStderr:
		return "no error had a body; a run with --capture all keeps the end of every reply"
	case view.Kind == task.KindGRPC:
		return "a run with --capture all keeps the end of a reply"
	case isRequest:
		return "a run with --capture errors or --capture all keeps the end of a reply"
	case kept == "--capture ":
		return "a run with --capture stderr or --capture both keeps the end of it"
	case running:
		return "an attempt's output is kept when it has ended"
	case number == 0:
		return fmt.Sprintf("no attempt wrote anything that %s keeps", kept)
	}
	return fmt.Sprintf("it wrote nothing that %s keeps; retry logs %s shows the latest attempt that did",
		kept, render.ShortID(view.ID))
}

// printRaw writes the bytes to the stream they came from, or to stdout where both streams were one file.
func printRaw(p *Process, output state.Output) error {
	if _, err := io.WriteString(p.Stdout, output.Stdout); err != nil || output.Stderr == output.Stdout {
		return err
	}
	_, err := io.WriteString(p.Stderr, output.Stderr)
	return err
}
