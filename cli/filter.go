package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// filterFlags choose the tasks of a list.
type filterFlags struct {
	ID     *string        `name:"id" placeholder:"NAME" help:"Only the tasks of this name: the runs of a job."`
	Status []wantedStatus `placeholder:"S" help:"Only tasks of these statuses: PENDING, IN_FLIGHT, INTERRUPTED, SUCCEEDED, EXHAUSTED, FAILED, CANCELLED."`
	Since  *flags.Since   `placeholder:"TIME" help:"Only tasks made within 2h, 3d or the like, or since 15:04, 2026-01-31 or an RFC 3339 time."`
	Limit  *flags.Count   `placeholder:"N" help:"The newest N tasks; 0 = all. Default 20, with --json all."`
}

// given reports whether a flag chooses tasks by their name, status or age.
func (f *filterFlags) given() bool {
	return f.ID != nil || len(f.Status) > 0 || f.Since != nil
}

// views yields the newest tasks that pass the filter, each with whether it was interrupted; a limit of 0 is all.
func (f *filterFlags) views(ctx context.Context, journal state.Store, limit int) iter.Seq2[render.TaskView, error] {
	return func(yield func(render.TaskView, error) bool) {
		yielded := 0
		for t, err := range journal.All(ctx, f.stored(limit)) {
			view := render.TaskView{Task: t}
			if err == nil {
				view, err = viewOf(ctx, journal, t)
			}
			if err == nil && !f.passes(view) {
				continue
			}
			if yielded++; !yield(view, err) || yielded == limit {
				return
			}
		}
	}
}

// stored is the part of the filter that a query can answer. It cannot tell which tasks were interrupted, so that it
// reads all unfinished ones.
func (f *filterFlags) stored(limit int) state.Filter {
	filter := state.Filter{Limit: limit}
	if f.ID != nil {
		filter.Name = *f.ID
	}
	if f.Since != nil {
		filter.Since = time.Time(*f.Since)
	}
	for _, s := range f.Status {
		if s == interrupted {
			filter.Limit = 0
			filter.Statuses = append(filter.Statuses, task.Pending, task.InFlight)
		} else {
			filter.Statuses = append(filter.Statuses, task.Status(s))
		}
	}
	return filter
}

func (f *filterFlags) passes(view render.TaskView) bool {
	return len(f.Status) == 0 || slices.Contains(f.Status, wantedStatus(view.Status)) ||
		view.Interrupted && slices.Contains(f.Status, interrupted)
}

// wantedStatus is a flag's value: a stored status or INTERRUPTED.
type wantedStatus string

// interrupted is shown like a status, but never stored: it says that an unfinished task has no owner.
const interrupted wantedStatus = "INTERRUPTED"

var wantedStatuses = []wantedStatus{
	wantedStatus(task.Pending), wantedStatus(task.InFlight), interrupted, wantedStatus(task.Succeeded),
	wantedStatus(task.Exhausted), wantedStatus(task.Failed), wantedStatus(task.Cancelled),
}

// UnmarshalText reads the value of a flag.
func (s *wantedStatus) UnmarshalText(text []byte) error {
	name := wantedStatus(strings.ToUpper(strings.TrimSpace(string(text))))
	if slices.Contains(wantedStatuses, name) {
		*s = name
		return nil
	}
	names := make([]string, len(wantedStatuses))
	for i, s := range wantedStatuses {
		names[i] = string(s)
	}
	return fmt.Errorf("invalid status %q"+
		"\nhint: give %s, or several with commas between", text, strings.Join(names, ", "))
}
