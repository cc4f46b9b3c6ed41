package session

import (
	"fmt"
	"os"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

// CheckInput refuses to give fresh attempts to a command whose stdin is lost.
func CheckInput(t *task.Task) error {
	source := t.Options.Source
	if source == (task.Source{}) || source.Terminal || t.Options.Stdin == task.StdinReplay { // what was kept is gone
		return nil
	}
	file, err := reopened(t, "requeue --run")
	if err != nil {
		return fmt.Errorf("requeue %s: %w", render.ShortID(t.ID), err)
	}
	return file.Close()
}

// reopened returns the file that a command had as its stdin. The verb is for the hint, which says how to do without.
func reopened(t *task.Task, verb string) (file *os.File, err error) {
	if t.Options.Stdin == task.StdinRest && !t.Options.Source.Pipe {
		err = fmt.Errorf("nobody knows how much of its stdin, %q, has been read", t.Options.Source.Path)
	} else {
		file, err = stdio.Reopen(t.Options.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: retry %s --stdin null %s goes on without it, --stdin rest with this command's own",
			err, verb, render.ShortID(t.ID))
	}
	return file, nil
}
