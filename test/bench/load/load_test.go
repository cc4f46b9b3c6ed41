package load

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a system whose worker is a goroutine for each task. It can be told to do wrong.
type fake struct {
	mu       sync.Mutex
	tasks    []Task
	cancel   context.CancelFunc // ends the worker; nil where there is none
	sending  sync.WaitGroup
	added    int
	early    time.Duration // tasks start so long before they are due
	lose     bool          // what was in hand is lost in a kill
	countIt  bool          // a kill uses up an attempt
	twice    bool          // each task is sent once more after it succeeded
	resets   int
	attempts map[string]int
}

func (*fake) Name() string                { return "fake" }
func (*fake) Handicaps(row string) string { return "handicap of " + row }
func (*fake) Hold() error                 { return nil }
func (*fake) Processes() (int, int)       { return os.Getpid(), os.Getpid() }
func (f *fake) Close() error              { return f.Kill() }

func (f *fake) Reset(context.Context, bool) error {
	err := f.Kill()
	f.tasks, f.attempts = nil, map[string]int{}
	f.resets++
	return err
}

// burn uses some ticks of processor time: with less, each of two readings may see none.
func burn() {
	before, err := ProcessorTime(os.Getpid())
	for now := before; runtime.GOOS == "linux" && err == nil && now-before < 3*tick; {
		now, err = ProcessorTime(os.Getpid())
	}
}

func (f *fake) Fill(_ context.Context, tasks []Task) error {
	f.mu.Lock()
	f.tasks = append(f.tasks, tasks...)
	working := f.cancel != nil
	f.mu.Unlock()
	if working {
		return f.Work(context.Background())
	}
	return nil
}

func (f *fake) Add(ctx context.Context, t Task) error {
	f.mu.Lock()
	f.added++
	f.mu.Unlock()
	return f.Fill(ctx, []Task{t})
}

func (f *fake) StoreBytes(context.Context) (int64, string, error) {
	return int64(100 * len(f.tasks)), "nowhere", nil
}

// Work starts a goroutine for every task that is not far off, anew where one was killed.
func (f *fake) Work(context.Context) error {
	burn()
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.tasks = slices.DeleteFunc(f.tasks, func(t Task) bool {
		soon := time.Until(t.Due) < time.Hour
		if soon {
			f.sending.Go(func() { f.carry(ctx, t) })
		}
		return soon
	})
	return nil
}

func (f *fake) carry(ctx context.Context, t Task) {
	select {
	case <-time.After(time.Until(t.Due) - f.early):
	case <-ctx.Done():
		return
	}
	sends := max(t.Attempts, 1)
	if f.twice {
		sends++
	}
	for n := 1; n <= sends; n++ {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, strings.NewReader(Body))
		response, err := http.DefaultClient.Do(request)
		if ctx.Err() != nil && !f.lose {
			if f.countIt {
				t.Attempts--
			}
			f.mu.Lock()
			f.tasks = append(f.tasks, t)
			f.mu.Unlock()
		}
		if err != nil {
			return
		}
		response.Body.Close()
		if response.StatusCode == http.StatusNoContent && !f.twice {
			return
		}
	}
}

func (f *fake) Kill() error {
	f.mu.Lock()
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
	f.mu.Unlock()
	f.sending.Wait()
	return nil
}

func tiny() Sizes {
	return Sizes{Attempts: 200, Clients: 4, Creating: 20 * time.Millisecond, Scheduled: 50, Span: 100 * time.Millisecond,
		Settle: 200 * time.Millisecond, Half: 100, Million: 10, InHand: 8, Waiting: 1000, Patience: 10 * time.Second,
		Back: 10 * time.Second, SecondTries: 300 * time.Millisecond}
}

func measure(t *testing.T, f *fake, rows string) map[string]Result {
	t.Helper()
	chosen, err := Choose(rows)
	if err != nil {
		t.Fatal(err)
	}
	results, err := Plan{Systems: []System{f}, Rows: chosen, Runs: 1, Sizes: tiny(), Log: io.Discard}.Measure(t.Context())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	named := map[string]Result{}
	for _, r := range results {
		if r.Error != "" {
			t.Errorf("%s: got error %s", r.Row, r.Error)
		}
		named[r.Row] = r
	}
	return named
}

// number is the figure of a row, by its name.
func number(t *testing.T, r Result, name string) float64 {
	t.Helper()
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	t.Fatalf("%s: got numbers %v, want one called %q", r.Row, r.Numbers, name)
	return 0
}

func TestEveryRowMeasures(t *testing.T) {
	f := &fake{}
	results := measure(t, f, "")
	if len(results) != len(Rows()) {
		t.Errorf("got %d rows, want %d", len(results), len(Rows()))
	}
	for _, row := range []string{"attempts", "creates", "million-attempts"} {
		if got := number(t, results[row], ""); got <= 0 {
			t.Errorf("%s: got %v a second, want some", row, got)
		}
	}
	if f.added == 0 {
		t.Error("got no task added one by one")
	}
	for _, row := range []string{"late", "half", "million"} {
		earliest, p50, largest := number(t, results[row], "earliest"), number(t, results[row], "p50"), number(t, results[row], "max")
		if earliest < 0 || p50 < earliest || largest < p50 {
			t.Errorf("%s: got earliest %v, p50 %v and max %v, want them in order and none below 0", row, earliest, p50, largest)
		}
	}
	if got := number(t, results["memory"], "nowhere"); got != 100 {
		t.Errorf("got %v bytes a task, want 100", got)
	}
	for _, row := range []string{"memory", "million-memory"} {
		if got := number(t, results[row], "worker"); got < 1 || got > 1000 {
			t.Errorf("%s: got a worker of %v MiB, want that of this test", row, got)
		}
	}
	for _, row := range []string{"attempts", "million-attempts"} {
		if got := number(t, results[row], "arrived once"); got != float64(tiny().Attempts) {
			t.Errorf("%s: got %v tasks that arrived once, want all %d", row, got, tiny().Attempts)
		}
		for _, name := range []string{processorTime, "server's"} {
			if got := number(t, results[row], name); got <= 0 {
				t.Errorf("%s: got a %s of %v µs, want some", row, name, got)
			}
		}
	}
	if got := number(t, results["kill"], "attempts used up"); got != 0 {
		t.Errorf("got %v attempts used up, want 0", got)
	}
}

func TestRowsSeeWhatIsWrong(t *testing.T) {
	if got := number(t, measure(t, &fake{early: 40 * time.Millisecond}, "late")["late"], "earliest"); got >= 0 {
		t.Errorf("tasks 40 ms early: got earliest %v ms, want less than 0", got)
	}
	if got := number(t, measure(t, &fake{twice: true}, "attempts")["attempts"], "arrived once"); got != 0 {
		t.Errorf("tasks that are sent twice: got %v that arrived once, want 0", got)
	}
	killed := measure(t, &fake{countIt: true}, "kill")["kill"]
	if got := number(t, killed, "attempts used up"); got != float64(tiny().InHand) {
		t.Errorf("a kill that counts: got %v attempts used up, want %d", got, tiny().InHand)
	}
	target, err := NewTarget()
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	small := tiny()
	small.Back = 200 * time.Millisecond
	f := &fake{lose: true}
	numbers, err := kill(t.Context(), f, target, small)
	if err != nil || len(numbers) != 2 || numbers[0].Name != "more than" || numbers[1].Value != 0 {
		t.Errorf("lost tasks: got %v, error %v, want that more than the patience passed and that none came back", numbers, err)
	}
	_ = f.Close()
}

func TestRowsBesideAMillionShareIt(t *testing.T) {
	f := &fake{}
	measure(t, f, "million,million-attempts,million-memory")
	if f.resets != 1 {
		t.Errorf("got %d stores for three rows, want one", f.resets)
	}
	f.resets = 0
	measure(t, f, "million-memory,creates,million-memory")
	if f.resets != 3 {
		t.Errorf("got %d stores where another row comes between, want 3", f.resets)
	}
}

func TestLongRowsAreMeasuredLessOften(t *testing.T) {
	calls := map[string]int{}
	row := func(name string, long bool) Row {
		return Row{Name: name, long: long, measure: func(context.Context, System, *Target, Sizes) ([]Number, error) {
			calls[name]++
			return nil, nil
		}}
	}
	for runs, want := range map[int]int{1: 1, 3: 1, 6: 2} {
		clear(calls)
		plan := Plan{Systems: []System{&fake{}}, Rows: []Row{row("short", false), row("long", true)},
			Runs: runs, Log: io.Discard}
		if _, err := plan.Measure(t.Context()); err != nil || calls["short"] != runs || calls["long"] != want {
			t.Errorf("%d runs: got %v, error %v, want %d of the long row", runs, calls, err, want)
		}
	}
}

func TestWhatDoesNotComeIsWaitedForOnce(t *testing.T) {
	calls := 0
	never := Row{Name: "never", measure: func(context.Context, System, *Target, Sizes) ([]Number, error) {
		calls++
		return []Number{{Name: moreThan, Unit: "s", Value: 9}}, nil
	}}
	_, err := Plan{Systems: []System{&fake{}}, Rows: []Row{never}, Runs: 3, Log: io.Discard}.Measure(t.Context())
	if calls != 1 || err != nil {
		t.Errorf("got %d calls, error %v, want 1", calls, err)
	}
}

func TestAFailingRowLeavesTheOthers(t *testing.T) {
	boom := Row{Name: "boom", Title: "boom", measure: func(context.Context, System, *Target, Sizes) ([]Number, error) {
		return nil, errors.New("it | broke\nmore")
	}}
	fine := Row{Name: "fine", Title: "fine", measure: func(context.Context, System, *Target, Sizes) ([]Number, error) {
		return []Number{{Unit: "/s", Value: 1}}, nil
	}}
	var log strings.Builder
	results, err := Plan{Systems: []System{&fake{}}, Rows: []Row{boom, fine}, Runs: 2, Log: &log}.Measure(t.Context())
	if err != nil || len(results) != 2 || results[0].Error != "it | broke\nmore" || len(results[1].Numbers[0].Runs) != 2 {
		t.Fatalf("got %+v, error %v", results, err)
	}
	if !strings.Contains(log.String(), "more") {
		t.Errorf("got the log %q, want the whole error", &log)
	}
	if err := Failed(results); err == nil || err.Error() != "1 rows failed: boom of fake" {
		t.Errorf("got error %v, want one that names the row", err)
	}
	if err := Failed(results[1:]); err != nil {
		t.Errorf("got error %v of a row that did not fail", err)
	}
	var out strings.Builder
	Markdown(&out, results)
	if want := `**failed**: it \| broke |`; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "more") {
		t.Errorf("got\n%s\nwant %q and no second line of the error", &out, want)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Plan{Systems: []System{&fake{}}, Rows: []Row{boom}, Log: io.Discard}).Measure(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: got error %v, want %v", err, context.Canceled)
	}
}

func TestTargetRefusesWhatIsNoTask(t *testing.T) {
	target, err := NewTarget()
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	round := target.Begin(1, nil)
	for _, test := range []struct {
		name, method, url, body string
		want                    int
	}{
		{"a task", http.MethodPost, round.URL(0), Body, http.StatusNoContent},
		{"another method", http.MethodGet, round.URL(0), "", http.StatusBadRequest},
		{"a shorter body", http.MethodPost, round.URL(0), "x", http.StatusBadRequest},
		{"no task", http.MethodPost, round.URL(1), Body, http.StatusNotFound},
		{"no round", http.MethodPost, target.URL + "/7/0", Body, http.StatusNotFound},
		{"no number", http.MethodPost, target.URL + "/x", Body, http.StatusBadRequest},
	} {
		request, _ := http.NewRequestWithContext(t.Context(), test.method, test.url, strings.NewReader(test.body))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s: got status %d, want %d", test.name, response.StatusCode, test.want)
		}
	}
	if tasks, _ := round.Arrivals(1); len(tasks) != 1 {
		t.Errorf("got arrivals of %v, want one of task 0", tasks)
	}
}

func TestWaitCountsTasksNotArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Round{arrivals: make([][]time.Time, 2)}
		r.note(0, time.Now())
		r.note(0, time.Now())
		if got, err := r.Wait(t.Context(), 1, time.Second); got != 1 || err != nil {
			t.Errorf("a task that came twice: got %d tasks, error %v, want 1", got, err)
		}
		go r.note(1, time.Now())
		if got, err := r.Wait(t.Context(), 1, time.Hour); got != 2 || err != nil {
			t.Errorf("got %d tasks, error %v, want 2", got, err)
		}
		if tasks, _ := r.Arrivals(2); !slices.Equal(tasks, []int{0}) {
			t.Errorf("got second arrivals of %v, want of task 0", tasks)
		}
	})
}
