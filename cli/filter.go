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
	Failed bool           `help:"Only tasks that failed or gave up."`
	Live   bool           `help:"Only tasks that run or wait now, in a living process."`
	Status []wantedStatus `placeholder:"S" help:"Only tasks of these statuses: running, waiting, interrupted, succeeded, gave-up, failed, cancelled, or fail for failed and gave-up. As in JSON: PENDING, IN_FLIGHT, EXHAUSTED."`
	Since  *flags.Since   `placeholder:"TIME" help:"Only tasks made within 2h, 3d or the like, or since yesterday, 15:04, 2026-01-31 or an RFC 3339 time."`
	Limit  *flags.Count   `placeholder:"N" help:"So many tasks, the newest; 0 = all. Default 20, with --json all."`
}

// given reports whether a flag chooses tasks by their name, status or age.
func (f *filterFlags) given() bool {
	return f.ID != nil || len(f.wanted()) > 0 || f.Since != nil
}

// wanted are the statuses that all flags ask for; none is any.
func (f *filterFlags) wanted() []wantedStatus {
	wanted := slices.Clone(f.Status)
	if f.Failed {
		wanted = append(wanted, unsuccessful)
	}
	if f.Live {
		wanted = append(wanted, running, waiting)
	}
	return wanted
}

// listed yields what runs, waits or is interrupted first, then the others, each newest first.
func (f *filterFlags) listed(ctx context.Context, journal state.Store, limit int) iter.Seq2[render.TaskView, error] {
	return func(yield func(render.TaskView, error) bool) {
		open := map[int64]bool{} // a task may end while they are listed
		yielded := 0
		for _, finished := range []bool{false, true} {
			for view, err := range f.of(ctx, journal, f.stored(limit), finished) {
				if err == nil && !finished {
					open[view.Number] = true
				} else if err == nil && open[view.Number] {
					continue
				}
				if yielded++; !yield(view, err) || err != nil || yielded == limit {
					return
				}
			}
		}
	}
}

// of yields those tasks that have finished, or those that have not.
func (f *filterFlags) of(ctx context.Context, journal state.Store, filter state.Filter,
	finished bool) iter.Seq2[render.TaskView, error] {
	statuses := []task.Status{task.Pending, task.InFlight, task.Succeeded, task.Exhausted, task.Failed, task.Cancelled}
	filter.Statuses = slices.DeleteFunc(statuses, func(s task.Status) bool {
		return s.Finished() != finished || len(filter.Statuses) > 0 && !slices.Contains(filter.Statuses, s)
	})
	if len(filter.Statuses) == 0 {
		return func(func(render.TaskView, error) bool) {}
	}
	return f.passing(ctx, journal, filter)
}

// views yields the newest tasks that pass the filter, each with whether it was interrupted; a limit of 0 is all.
func (f *filterFlags) views(ctx context.Context, journal state.Store, limit int) iter.Seq2[render.TaskView, error] {
	return func(yield func(render.TaskView, error) bool) {
		yielded := 0
		for view, err := range f.passing(ctx, journal, f.stored(limit)) {
			if yielded++; !yield(view, err) || yielded == limit {
				return
			}
		}
	}
}

func (f *filterFlags) passing(ctx context.Context, journal state.Store,
	filter state.Filter) iter.Seq2[render.TaskView, error] {
	return func(yield func(render.TaskView, error) bool) {
		viewOf := viewer(ctx, journal)
		for t, err := range journal.All(ctx, filter) {
			view := render.TaskView{Task: t}
			if err == nil {
				view, err = viewOf(t)
			}
			if (err != nil || f.passes(view)) && !yield(view, err) {
				return
			}
		}
	}
}

// stored is the part of the filter that a query can answer. Whether a task has an owner it cannot: then all that may
// pass are read.
func (f *filterFlags) stored(limit int) state.Filter {
	filter := state.Filter{Limit: limit}
	if f.ID != nil {
		filter.Name = *f.ID
	}
	if f.Since != nil {
		filter.Since = time.Time(*f.Since)
	}
	wanted := f.wanted()
	filter.Begun = len(wanted) > 0 && !slices.ContainsFunc(wanted, func(s wantedStatus) bool {
		return s != interrupted && s != running
	})
	for _, s := range wanted {
		stored := s.stored()
		if s == interrupted || s == running || s == waiting {
			filter.Limit = 0
		}
		filter.Statuses = append(filter.Statuses, stored...)
	}
	slices.Sort(filter.Statuses)
	filter.Statuses = slices.Compact(filter.Statuses)
	return filter
}

func (f *filterFlags) passes(view render.TaskView) bool {
	wanted := f.wanted()
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(s wantedStatus) bool { return s.has(view) })
}

// wantedStatus is a flag's value: a stored status, or one of those below.
type wantedStatus string

// Statuses that are shown but not stored: they say whether a task has an owner, or stand for two.
const (
	interrupted  wantedStatus = "INTERRUPTED"
	running      wantedStatus = "RUNNING"
	waiting      wantedStatus = "WAITING"
	unsuccessful wantedStatus = "FAIL"
)

// stored returns the stored statuses that tasks of this one may have.
func (s wantedStatus) stored() []task.Status {
	switch s {
	case interrupted:
		return []task.Status{task.Pending, task.InFlight}
	case running:
		return []task.Status{task.InFlight}
	case waiting:
		return []task.Status{task.Pending}
	case unsuccessful:
		return []task.Status{task.Failed, task.Exhausted}
	}
	return []task.Status{task.Status(s)}
}

// has reports whether a task is of this status.
func (s wantedStatus) has(view render.TaskView) bool {
	switch s {
	case interrupted:
		return view.Interrupted
	case running, waiting:
		return !view.Interrupted && slices.Contains(s.stored(), view.Status)
	}
	return slices.Contains(s.stored(), view.Status)
}

// statusWords are the statuses as people type them.
var statusWords = [...]string{"running", "waiting", "interrupted", "succeeded", "gave-up", "failed", "cancelled", "fail"}

// UnmarshalText reads the value of a flag.
func (s *wantedStatus) UnmarshalText(text []byte) error {
	status := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToUpper(strings.TrimSpace(string(text))))
	switch *s = wantedStatus(status); *s {
	case "GAVE_UP":
		*s = wantedStatus(task.Exhausted)
	case interrupted, running, waiting, unsuccessful, wantedStatus(task.Pending), wantedStatus(task.InFlight),
		wantedStatus(task.Succeeded), wantedStatus(task.Exhausted), wantedStatus(task.Failed), wantedStatus(task.Cancelled):
	default:
		last := len(statusWords) - 1
		return fmt.Errorf("invalid status %q\nhint: give %s or %s, or several with commas between", text,
			strings.Join(statusWords[:last], ", "), statusWords[last])
	}
	return nil
}
