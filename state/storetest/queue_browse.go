package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// variety makes tasks that differ in all that a filter looks at. It returns them oldest first.
func (p *process) variety(t *testing.T) (tasks []*task.Task) {
	t.Helper()
	ends := []struct {
		outcome  task.Outcome
		decision task.Decision
	}{
		{Exit(0), Succeeded}, {Exit(3), Failed}, {task.Outcome{Exit: 7, Error: task.ErrorConnect}, Exhausted},
		{task.Outcome{Exit: 137, Signal: "SIGKILL"}, RetryIn(time.Hour)}, {task.Crashed(), Interrupted},
		{task.Outcome{Exit: 22, Reply: &task.Reply{Status: 503}}, Exhausted},
	}
	for i := range 60 {
		tk := NewRequest([]string{"a", "b:8080"}[i%2])
		if i%5 == 0 {
			tk = queuedCommand()
		}
		tk.Policy.Name = []string{"default", "fast", "slow"}[i%3]
		tk.Partition = []string{"", "x"}[i/3%2]
		tk.Tags = [][]string{nil, {"red"}, {"red", "blue"}, {"redder"}}[i%4]
		tk.CreatedAt = Epoch.Add(time.Duration(i) * time.Minute)
		tk = p.add(tk)[0]
		if e := i % 8; e < len(ends) {
			tk = p.claim(tk.Number, Epoch.AddDate(0, 0, 1))
			Must(t, p.settle(tk, ends[e].outcome, ends[e].decision, Epoch.AddDate(0, 0,
				1).Add(time.Duration(i*37%61)*time.Second), nil))
		} else if e == 6 {
			tk = p.claim(tk.Number, Epoch.AddDate(0, 0, 1))
		}
		tasks = append(tasks, tk)
	}
	return tasks
}

// Of many tasks that were read before, one that was requeued since is none of them any more, however it has ended.
func (s queueSuite) requeueOfWhatWasRead(t *testing.T) {
	p := s.start(t).register()
	dead := p.inFlight(NewRequest("example.org"))
	Must(t, p.settle(dead, Exit(1), Failed, Epoch, nil))
	read, _ := p.stored(dead.ID)
	Must(t, p.Requeue(t.Context(), dead.Number, Epoch))
	Must(t, p.settle(p.claim(dead.Number, Epoch), Exit(0), Succeeded, Epoch.Add(time.Second), nil))
	p.unchanged(t, "requeue what was dead", state.ErrUnfinished, func() error {
		return p.RequeueDead(t.Context(), read, Epoch)
	})
	now, _ := p.stored(dead.ID)
	Must(t, p.RequeueDead(t.Context(), now, Epoch))
}

// lastError is how a Group names the end of a task's last attempt.
func lastError(t *task.Task) string {
	switch o := t.Last.Outcome; {
	case t.Last.Number != t.AttemptCount || t.AttemptCount == 0 || o.IsCrash():
		return ""
	case o.Error != "":
		return string(o.Error)
	case o.Reply != nil && o.Reply.Status != 0:
		return fmt.Sprintf("status %d", o.Reply.Status)
	case o.Signal != "":
		return o.Signal
	default:
		return fmt.Sprintf("exit %d", o.Exit)
	}
}

// selects is what PageFilter means.
func selects(f state.PageFilter, t *task.Task) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, t.Status)) &&
		(f.PolicyID == "" || t.Policy.Name == f.PolicyID) && (f.Partition == nil || t.Partition == *f.Partition) &&
		(f.Host == "" || t.Host() == f.Host) && (f.Tag == "" || slices.Contains(t.Tags, f.Tag)) &&
		(f.Error == "" || lastError(t) == f.Error) &&
		!t.CreatedAt.Truncate(time.Microsecond).Before(f.Since) &&
		(f.Until.IsZero() || t.CreatedAt.Truncate(time.Microsecond).Before(f.Until))
}

// Each filter, and each pair of them, selects what it says.
func (s queueSuite) pageFilters(t *testing.T) {
	p := s.start(t).register()
	tasks := p.variety(t)
	none, x, created := "", "x", tasks[20].CreatedAt.Truncate(time.Microsecond)
	filters := []state.PageFilter{
		{}, {Statuses: []task.Status{task.Pending}}, {Statuses: []task.Status{task.InFlight, task.Exhausted, task.Failed}},
		{PolicyID: "fast"}, {PolicyID: "unknown"}, {Partition: &none}, {Partition: &x}, {Host: "a"}, {Host: "b:8080"},
		{Host: "b"}, {Tag: "red"}, {Tag: "blue"}, {Tag: "re"}, {Tag: `red","blue`},
		{Error: "connect"}, {Error: "status 503"}, {Error: "SIGKILL"}, {Error: "exit 3"}, {Error: "exit"},
		{Since: created}, {Since: created.Add(time.Microsecond)}, {Until: created}, {Until: created.Add(time.Microsecond)},
	}
	for _, one := range filters {
		for _, two := range filters {
			f := both(one, two)
			var want []string
			for _, tk := range slices.Backward(tasks) {
				if selects(f, tk) {
					want = append(want, tk.ID)
				}
			}
			for _, limit := range []int{7, 100} {
				f.Limit = limit
				var got []string
				for _, tk := range p.all(f) {
					got = append(got, tk.ID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v: got\n%v\nwant\n%v", f, got, want)
				}
			}
		}
	}
	if page, err := p.Page(t.Context(), state.PageFilter{}); err != nil || len(page.Tasks) == 0 {
		t.Errorf("got %d tasks, %v without a limit; want some", len(page.Tasks), err)
	}
}

// both has what either filter has; the second one where both have something.
func both(one, two state.PageFilter) state.PageFilter {
	fields, other := reflect.ValueOf(&one).Elem(), reflect.ValueOf(two)
	for i := range fields.NumField() {
		if !other.Field(i).IsZero() {
			fields.Field(i).Set(other.Field(i))
		}
	}
	return one
}

// Who reads on finds each task once, though others are added and move meanwhile.
func (s queueSuite) aPageStaysWhileTasksAreAdded(t *testing.T) {
	p := s.start(t).register()
	var want []int64
	for range 25 {
		want = append(want, p.add(NewRequest("example.org"))[0].Number)
	}
	slices.Reverse(want)
	var got []int64
	f := state.PageFilter{Limit: 4}
	for {
		page, err := p.Page(t.Context(), f)
		Must(t, err)
		for _, tk := range page.Tasks {
			got = append(got, tk.Number)
		}
		if f.Cursor = page.Next; f.Cursor == 0 {
			break
		}
		p.add(NewRequest("example.org"), NewRequest("example.org"))
		claimed := p.claim(want[len(want)-1], Epoch.AddDate(1, 0, 0))
		_, err = p.Cancel(t.Context(), want[len(want)-1], Epoch)
		Must(t, err)
		_ = p.settle(claimed, Exit(1), Failed, Epoch, nil) // else its worker carries it still
		Must(t, p.Requeue(t.Context(), want[len(want)-1], Epoch))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A page ends with the task by which it has too many bytes, so each has one at least, and none is left out.
func (s queueSuite) aPageEndsByItsBytes(t *testing.T) {
	p := s.start(t).register()
	for range 5 {
		tk := NewRequest("example.org")
		tk.Tags = []string{strings.Repeat("x", 10_000)}
		p.add(tk)
	}
	for _, tt := range []struct {
		bytes, limit int
		want         []int
	}{
		{bytes: 0, limit: 5, want: []int{5}},
		{bytes: 1 << 20, limit: 5, want: []int{5}},
		{bytes: 15_000, limit: 5, want: []int{2, 2, 1}},
		{bytes: 15_000, limit: 1, want: []int{1, 1, 1, 1, 1}},
		{bytes: 1, limit: 5, want: []int{1, 1, 1, 1, 1}},
	} {
		var got []int
		numbers := map[int64]bool{}
		f := state.PageFilter{Limit: tt.limit, Bytes: tt.bytes}
		for {
			page, err := p.Page(t.Context(), f)
			Must(t, err)
			if len(page.Tasks) > 0 { // the last may be empty
				got = append(got, len(page.Tasks))
			}
			for _, tk := range page.Tasks {
				numbers[tk.Number] = true
			}
			if f.Cursor = page.Next; f.Cursor == 0 {
				break
			}
		}
		if !slices.Equal(got, tt.want) || len(numbers) != 5 {
			t.Errorf("%d bytes, %d tasks: got pages of %v with %d tasks, want %v with 5", tt.bytes, tt.limit, got,
				len(numbers), tt.want)
		}
	}
}

func (s queueSuite) attemptsAfter(t *testing.T) {
	p := s.start(t).register()
	tk := p.inFlight(NewRequest("example.org"))
	for i := range 5 {
		o := Exit(i)
		o.Stdout = fmt.Sprint("the end of ", i)
		Must(t, p.settle(tk, o, RetryIn(0), Epoch, nil))
		tk = p.claim(tk.Number, Epoch)
	}
	for _, test := range []struct {
		after, limit int
		want         []int
	}{{0, 2, []int{1, 2}}, {2, 3, []int{3, 4, 5}}, {4, 10, []int{5, 6}}, {6, 10, nil}, {0, 10, []int{1, 2, 3, 4, 5, 6}}} {
		list, err := p.AttemptsAfter(t.Context(), tk.Number, test.after, test.limit)
		Must(t, err)
		var got []int
		for _, a := range list {
			got = append(got, a.Number)
			if want := fmt.Sprint("the end of ", a.Number-1); a.Number < 6 && a.Outcome.Stdout != want || a.Worker != "worker" {
				t.Errorf("got %q by %q of attempt %d, want %q", a.Outcome.Stdout, a.Worker, a.Number, want)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("got %v after %d, want %v", got, test.after, test.want)
		}
	}
	if list, err := p.AttemptsAfter(t.Context(), 1<<40, 0, 10); len(list) != 0 || err != nil {
		t.Errorf("got %v, %v of an unknown task, want none", list, err)
	}
}

// Groups are of the dead letters that a filter selects.
func (s queueSuite) groups(t *testing.T) {
	p := s.start(t).register()
	tasks := p.variety(t)
	dead := []task.Status{task.Exhausted, task.Failed}
	x := "x"
	for _, f := range []state.PageFilter{{}, {Host: "a"}, {PolicyID: "fast"}, {Partition: &x}, {Error: "connect"},
		{Tag: "red"},
		{Statuses: []task.Status{task.Failed}}, {Since: tasks[30].CreatedAt}} {
		want, effective := map[[3]string]*state.Group{}, f
		if len(f.Statuses) == 0 {
			effective.Statuses = dead
		}
		for _, tk := range tasks {
			if !selects(effective, tk) {
				continue
			}
			key := [3]string{tk.Host(), tk.Policy.Name, lastError(tk)}
			g := want[key]
			if g == nil {
				g = &state.Group{First: tk.FinishedAt}
				want[key] = g
			}
			g.Count++
			if tk.FinishedAt.Before(g.First) {
				g.First = tk.FinishedAt
			}
			if tk.FinishedAt.After(g.Last) {
				g.Last, g.Example = tk.FinishedAt, tk.ID
			}
		}
		got, err := p.Groups(t.Context(), f, 100)
		Must(t, err)
		if len(got) != len(want) || len(got) == 0 {
			t.Errorf("%+v: got %d groups, want %d", f, len(got), len(want))
		}
		for i, g := range got {
			w := want[[3]string{g.Host, g.PolicyID, g.Error}]
			if w == nil || g.Count != w.Count || g.Example != w.Example || ShowTime(g.First) != ShowTime(w.First) ||
				ShowTime(g.Last) != ShowTime(w.Last) {
				t.Errorf("%+v: got %+v, want %+v", f, g, w)
			}
			if i > 0 && g.Count > got[i-1].Count {
				t.Errorf("%+v: got a group of %d after one of %d", f, g.Count, got[i-1].Count)
			}
		}
		if first, err := p.Groups(t.Context(), f, 1); err != nil || len(first) != 1 || first[0] != got[0] {
			t.Errorf("%+v: got %+v, %v of one group; want %+v", f, first, err, got[0])
		}
	}
}

func (s queueSuite) counts(t *testing.T) {
	p := s.start(t).register()
	if got, err := p.Counts(t.Context(), Epoch); err != nil || got.Due != 0 || !got.OldestDue.IsZero() ||
		len(got.Dead) != 0 {
		t.Errorf("got %+v, %v of an empty queue; want nothing", got, err)
	}
	tasks := p.variety(t)
	unfinished := 0
	for _, tk := range tasks {
		if !tk.Status.Finished() {
			unfinished++
		}
	}
	if got, err := p.CountUnfinished(t.Context()); err != nil || got != unfinished || got == 0 {
		t.Errorf("got %d unfinished tasks, %v; want %d", got, err, unfinished)
	}
	for _, now := range []time.Time{Epoch, Epoch.Add(20 * time.Minute), Epoch.AddDate(1, 0, 0), Epoch.AddDate(-1, 0, 0)} {
		want := state.Counts{ByStatus: map[task.Status]int{}, Dead: map[string]int{}}
		for _, tk := range tasks {
			want.ByStatus[tk.Status]++
			if tk.Status == task.Failed || tk.Status == task.Exhausted {
				want.Dead[tk.Policy.Name]++
			}
			if tk.Status == task.Pending && !tk.NextAttemptAt.Truncate(time.Microsecond).After(now) {
				want.Due++
				if want.OldestDue.IsZero() || tk.NextAttemptAt.Before(want.OldestDue) {
					want.OldestDue = tk.NextAttemptAt
				}
			}
		}
		got, err := p.Counts(t.Context(), now)
		Must(t, err)
		got.OldestDue, want.OldestDue = got.OldestDue.UTC(), want.OldestDue.UTC().Truncate(time.Microsecond)
		for _, counts := range []*state.Counts{&got, &want} { // a status without tasks may be left out
			for status, n := range counts.ByStatus {
				if n == 0 {
					delete(counts.ByStatus, status)
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
	}
}
