package render

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"pgregory.net/rapid"

	"github.com/10f93571/retry/plot/chart"
	"github.com/10f93571/retry/task"
)

func timelineOf(screen Screen, v TaskView, attempts ...task.Attempt) []string {
	return linesOf(screen.timeline(v, attempts, now.Add(time.Hour)))
}

func TestTimeline(t *testing.T) {
	won := task.Decision{Verdict: task.VerdictSucceeded}
	v := madeNow(task.Succeeded, 20*s)
	attempts := []task.Attempt{tried(9, 0, 5*s, again(5*s)), tried(10, 10*s, 10*s, won)}
	tests := []struct {
		name   string
		screen Screen
		want   []string
	}{
		{"into a pipe", Screen{}, []string{
			"",
			"Timeline of 20s",
			"9 exit 1 ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒",
			"10 ok                     ──────────────────" + strings.Repeat("█", 36),
			"         │0s              │5s               │10s              │15s",
			"█ ok  ▒ failed  ─ waited",
		}},
		{"in a narrow window", Screen{Width: 23}, []string{
			"",
			"Timeline of 20s",
			"9  ▒▒▒▒▒",
			"10      ─────██████████",
			"   │0s       │10s",
			"█ ok  ▒ failed  ─ wait…",
		}},
		{"where nothing fits", Screen{Width: 10}, []string{""}},
	}
	for _, tt := range tests {
		if got := timelineOf(tt.screen, v, attempts...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	got := strings.Join(timelineOf(Screen{Width: 80, Color: true}, v, attempts...), "\n")
	if !strings.Contains(got, "\x1b[32m█████") {
		t.Errorf("no green in %q", got)
	}
}

// A bar alone, as long as the scale, tells nothing.
func TestTimelineOfNothing(t *testing.T) {
	for name, got := range map[string][]string{
		"no attempt": timelineOf(Screen{}, madeNow(task.Pending, 0)),
		"one": timelineOf(Screen{}, madeNow(task.Succeeded, s),
			tried(1, 0, s, task.Decision{Verdict: task.VerdictSucceeded})),
		"one that ran": timelineOf(Screen{}, madeNow(task.Succeeded, 9*s),
			tried(1, 8*s, s, task.Decision{Verdict: task.VerdictFailed})),
	} {
		if !slices.Equal(got, []string{""}) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// What is not as it looks is said.
func TestTimelineTitle(t *testing.T) {
	var many []task.Attempt
	for n := range 41 {
		many = append(many, tried(n+1, time.Duration(n)*s, 0, again(s)))
	}
	back := []task.Attempt{tried(1, 0, s, again(s)), tried(2, -time.Hour, s, again(s))}
	tests := []struct {
		attempts []task.Attempt
		want     string
	}{
		{many, "Timeline of 41s, 3 attempts a row (some may share a cell)"},
		{back, "Timeline of 3s; the clock went back: the waits there are the planned ones"},
	}
	for _, tt := range tests {
		v := madeNow(task.Cancelled, 41*s)
		if len(tt.attempts) == 2 {
			v.FinishedAt = now.Add(-time.Hour + s)
		}
		if got := timelineOf(Screen{Width: 100}, v, tt.attempts...); got[1] != tt.want {
			t.Errorf("got %s", strings.Join(got, "\n"))
		}
	}
}

// The scale's marks lie where their time is, do not touch each other and stay within the width.
func TestAxis(t *testing.T) {
	tests := []struct {
		length time.Duration
		width  int
		want   string
	}{
		{0, 20, "│0s"},
		{300 * time.Microsecond, 20, "│0s"},
		{3 * time.Millisecond, 30, "│0s       │1ms      │2ms"},
		{20 * s, 20, "│0s       │10s"},
		{90 * s, 60, "│0s                 │30s                │1m"},
		{2 * time.Hour, 40, "│0s       │30m      │1h       │1h30m"},
		{72 * time.Hour, 40, "│0s          │1d          │2d"},
		{400 * 24 * time.Hour, 40, "│0s      │90d     │180d    │270d"},
	}
	for _, tt := range tests {
		if got := TimeAxis(chart.Axis{Most: float64(tt.length)}, tt.width, ""); got != tt.want {
			t.Errorf("%v in %d cells: got\n%s\nwant\n%s", tt.length, tt.width, got, tt.want)
		}
	}
}

// Marks that people could not tell from each other, or that would lie upon each other, are left out.
func TestAxisIsLegible(t *testing.T) {
	for _, length := range []time.Duration{12 * s, 90 * s, 100 * time.Hour, 100_000 * 24 * time.Hour} {
		for width := 8; width < 900; width += 7 {
			got := TimeAxis(chart.Axis{Most: float64(length)}, width, "")
			labels := strings.Fields(strings.ReplaceAll(got, "│", " "))
			if len(slices.Compact(slices.Clone(labels))) < len(labels) || strings.Count(got, "│") != len(labels) ||
				lipgloss.Width(got) > width {
				t.Fatalf("%v in %d cells: %s", length, width, got)
			}
		}
	}
}

// Whatever is drawn fits the screen: one line that wraps would tear the picture.
func TestTimelineFitsTheScreen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v, attempts, at := anyHistory(r)
		screen := Screen{Width: rapid.IntRange(1, 220).Draw(r, "width"),
			Height: rapid.SampledFrom([]int{0, 9, 24, 99}).Draw(r, "height")}
		got := linesOf(screen.timeline(v, attempts, at))
		for _, line := range got {
			if lipgloss.Width(line) > screen.Width {
				r.Fatalf("want at most %d cells, got %s", screen.Width, line)
			}
		}
		if len(got) > maxBars+5 {
			r.Fatalf("%d lines", len(got))
		}
	})
}

// tried is an attempt that began so long after a task was made.
func tried(number int, begun, took time.Duration, d task.Decision) task.Attempt {
	exit := 1
	if d.Verdict == task.VerdictSucceeded {
		exit, d.Success = 0, true
	}
	return task.Attempt{Number: number, StartedAt: now.Add(begun), Outcome: task.Outcome{Exit: exit, Duration: took},
		Decision: d}
}

func again(delay time.Duration) task.Decision {
	return task.Decision{Verdict: task.VerdictRetry, Delay: delay}
}

// madeNow is a task that was made at now and stands as it is told.
func madeNow(status task.Status, finished time.Duration) TaskView {
	return view(func(v *TaskView) {
		v.CreatedAt, v.Status, v.Reason, v.FinishedAt = now, status, "", time.Time{}
		if status.Finished() {
			v.FinishedAt = now.Add(finished)
		}
	})
}

func drawn(bars []bar) (rows []string) {
	for _, b := range bars {
		rows = append(rows, strings.ReplaceAll(string(runes(b.cells)), " ", "_"))
	}
	return rows
}

func runes(cells []mark) (list []rune) {
	for _, c := range cells {
		list = append(list, rune(c))
	}
	return list
}

const s = time.Second

// Twenty cells for the task's whole time.
func TestTimelineLayout(t *testing.T) {
	var (
		succeeded   = task.Decision{Verdict: task.VerdictSucceeded}
		interrupted = task.Decision{Verdict: task.VerdictInterrupted}
		cancelled   = task.Decision{Verdict: task.VerdictCancelled}
		exhausted   = task.Decision{Verdict: task.VerdictExhausted}
	)
	crashed := func(a task.Attempt) task.Attempt { a.Outcome.Exit = task.NoExit; return a }
	lost := func(v TaskView) TaskView { v.Interrupted = true; return v }
	tests := []struct {
		name     string
		task     TaskView
		attempts []task.Attempt
		now      time.Duration
		want     []string
	}{
		{"waits and attempts", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{tried(1, 0, 5*s, again(5*s)), tried(2, 10*s, 10*s, succeeded)}, 99 * s,
			[]string{"▒▒▒▒▒_______________", "_____─────██████████"}},
		{"a wait before the first", madeNow(task.Succeeded, 20*s), []task.Attempt{tried(1, 10*s, 10*s, succeeded)}, 0,
			[]string{"──────────██████████"}},
		{"still waiting", madeNow(task.Pending, 0), []task.Attempt{tried(1, 0, 5*s, again(60*s))}, 20 * s,
			[]string{"▒▒▒▒▒_______________", "_____───────────────"}},
		{"running", madeNow(task.InFlight, 0), []task.Attempt{crashed(tried(1, 5*s, 0, task.Decision{}))}, 20 * s,
			[]string{"─────░░░░░░░░░░░░░░░"}},
		{"its owner died in an attempt", lost(madeNow(task.InFlight, 0)),
			[]task.Attempt{crashed(tried(1, 5*s, 0, task.Decision{}))}, 20 * s,
			[]string{"─────!______________", "_____···············"}},
		{"its owner died in a wait", lost(madeNow(task.Pending, 0)), []task.Attempt{tried(1, 0, 5*s, again(s))}, 20 * s,
			[]string{"▒▒▒▒▒_______________", "_____···············"}},
		{"resumed", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{crashed(tried(1, 0, 0, interrupted)), tried(2, 15*s, 5*s, succeeded)}, 0,
			[]string{"!___________________", "···············█████"}},
		{"interrupted by a signal", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{tried(1, 0, 5*s, interrupted), tried(2, 15*s, 5*s, succeeded)}, 0,
			[]string{"▒▒▒▒▒_______________", "_____··········█████"}},
		{"cancelled in an attempt", madeNow(task.Cancelled, 20*s), []task.Attempt{crashed(tried(1, 10*s, 0, cancelled))}, 0,
			[]string{"──────────▒▒▒▒▒▒▒▒▒▒"}},
		{"cancelled in a wait", madeNow(task.Cancelled, 20*s), []task.Attempt{tried(1, 0, 10*s, again(60*s))}, 0,
			[]string{"▒▒▒▒▒▒▒▒▒▒__________", "__________──────────"}},
		{"requeued after its end", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{tried(1, 0, 5*s, exhausted), tried(2, 15*s, 5*s, succeeded)}, 0,
			[]string{"▒▒▒▒▒_______________", "_______________█████"}},
		{"requeued, and not taken up", lost(madeNow(task.Pending, 0)), []task.Attempt{tried(1, 0, 5*s, exhausted)}, 20 * s,
			[]string{"▒▒▒▒▒_______________"}},
		{"an attempt too short to see", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{tried(1, 0, 0, again(10*s)), tried(2, 10*s, 0, again(10*s)), tried(3, 20*s, 0, succeeded)}, 0,
			[]string{"▒___________________", "──────────▒_________", "__________─────────█"}},
		{"no time at all", madeNow(task.Succeeded, 0), []task.Attempt{tried(1, 0, 0, again(0)), tried(2, 0, 0, succeeded)},
			0, []string{"▒___________________", "█___________________"}},
		{"the clock went back an hour", madeNow(task.Succeeded, 20*s-time.Hour),
			[]task.Attempt{tried(1, 0, 5*s, again(5*s)), tried(2, 10*s-time.Hour, 10*s, succeeded)}, 0,
			[]string{"▒▒▒▒▒_______________", "_____─────██████████"}},
		{"it went back before the first", madeNow(task.Pending, 0), []task.Attempt{tried(1, -time.Hour, 10*s, again(60*s))},
			20*s - time.Hour,
			[]string{"▒▒▒▒▒▒▒▒▒▒__________", "__________──────────"}},
		{"a little", madeNow(task.Succeeded, 20*s),
			[]task.Attempt{tried(1, 0, 10*s, again(0)), tried(2, 10*s-time.Millisecond, 10*s, succeeded)}, 0,
			[]string{"▒▒▒▒▒▒▒▒▒▒__________", "__________██████████"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newTimeline(tt.task, tt.attempts, now.Add(tt.now))
			if got := drawn(h.layout(20, maxBars)); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// Twenty-one attempts are too many for a row each: they share rows, in their order.
func TestTimelineBins(t *testing.T) {
	var attempts []task.Attempt
	for n := range 21 {
		attempts = append(attempts, tried(n+1, time.Duration(n)*s, s/2, again(s/2)))
	}
	v := madeNow(task.Cancelled, 21*s)
	for rows, want := range map[int]int{maxBars: 11 + 1, 21: 21 + 1, 4: 4 + 1, 1: 1 + 1} {
		if got := len(newTimeline(v, attempts, now).layout(84, rows)); got != want {
			t.Errorf("%d rows, want %d", got, want)
		}
	}
	first := drawn(newTimeline(v, attempts, now).layout(84, maxBars))[0]
	if want := "▒▒──▒▒" + strings.Repeat("_", 78); first != want {
		t.Errorf("got %s", first)
	}
}

// Whatever the clock has done: no segment is negative, each begins where the one before ends, every cell is within the
// width, and each attempt has one that lies no earlier than that of the attempt before.
func TestTimelineNeverDrawsNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tk, attempts, at := anyHistory(t)
		h := newTimeline(tk, attempts, at)
		end := time.Duration(0)
		for i, gap := range h.gaps {
			if gap.from != end || gap.to < gap.from {
				t.Fatalf("gap %d: got %+v, after %v", i, gap, end)
			}
			if end = gap.to; i < len(h.runs) {
				if h.runs[i].from != end || h.runs[i].to < end {
					t.Fatalf("attempt %d: got %+v, after %v", i, h.runs[i], end)
				}
				end = h.runs[i].to
			}
		}
		if h.length != end {
			t.Fatalf("got a length of %v and an end at %v", h.length, end)
		}
		width, rows := rapid.IntRange(1, 250).Draw(t, "width"), rapid.IntRange(1, maxBars).Draw(t, "rows")
		checkBars(t, h, h.layout(width, rows), width, rows)
	})
}

// A journal that was tampered with has any times. The timeline comes to its end all the same, and no line is wider than
// the screen.
func TestTimelineOfAnyTimes(t *testing.T) {
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "sound") {
			return now.Add(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "near")))
		}
		return time.UnixMicro(rapid.Int64().Draw(t, "any"))
	})
	rapid.Check(t, func(t *rapid.T) {
		tk, attempts, _ := anyHistory(t)
		tk.CreatedAt, tk.FinishedAt = moment.Draw(t, "created"), moment.Draw(t, "finished")
		for i := range attempts {
			attempts[i].StartedAt = moment.Draw(t, "started")
			attempts[i].Outcome.Duration = time.Duration(rapid.Int64().Draw(t, "took"))
			attempts[i].Decision.Delay = time.Duration(rapid.Int64().Draw(t, "delay"))
		}
		h := newTimeline(tk, attempts, moment.Draw(t, "now"))
		checkBars(t, h, h.layout(40, maxBars), 40, maxBars)
		for line := range strings.Lines(Screen{Width: 40}.timeline(tk, attempts, moment.Draw(t, "seen"))) {
			if n := utf8.RuneCountInString(line); n > 41 {
				t.Fatalf("got %d characters in %q", n, line)
			}
		}
	})
}

// The marks of an axis end, however long it is.
func TestAxisOfAnyLength(t *testing.T) {
	for _, length := range []time.Duration{0, 1, math.MaxInt64 - 1, math.MaxInt64} {
		if got := TimeAxis(chart.Axis{Most: float64(length)}, 80, ""); utf8.RuneCountInString(got) > 80 ||
			!strings.HasPrefix(got, "│0s") {
			t.Errorf("%d: %q", length, got)
		}
	}
}

func checkBars(t *rapid.T, h timeline, bars []bar, width, rows int) {
	next, left := 0, 0
	for _, b := range bars {
		if b.first != next || b.last < b.first || len(b.cells) != width {
			t.Fatalf("after attempt %d: got %+v", next, b)
		}
		next = b.last + 1
		begun := slices.IndexFunc(b.cells, func(m mark) bool { return m != blank })
		if begun < 0 || begun < left && b.first < len(h.runs) {
			t.Fatalf("got a row that begins at %d after one at %d", begun, left)
		}
		left = begun
		for i := b.first; i <= b.last && i < len(h.runs); i++ {
			if at := (scale{h.length, width}).cell(h.runs[i].from); at < 0 || b.cells[at] == blank || b.cells[at] == waited ||
				b.cells[at] == cutOff {
				t.Fatalf("attempt %d: got no cell at %d in %c", i, at, b.cells)
			}
		}
	}
	if len(bars) > rows+1 || next < len(h.runs) {
		t.Fatalf("got %d rows that end before attempt %d of %d", len(bars), next, len(h.runs))
	}
}

// anyHistory is a task's attempts by a clock that is set now and then.
func anyHistory(t *rapid.T) (TaskView, []task.Attempt, time.Time) {
	span := rapid.Custom(func(t *rapid.T) time.Duration {
		units := []time.Duration{1, time.Millisecond, s, time.Hour, 72 * time.Hour}
		return time.Duration(rapid.IntRange(0, 5).Draw(t, "n")) * rapid.SampledFrom(units).Draw(t, "unit")
	})
	verdicts := []task.Verdict{task.VerdictRetry, task.VerdictInterrupted, task.VerdictExhausted, task.VerdictCancelled,
		""}
	var attempts []task.Attempt
	clock := now
	for n := range rapid.IntRange(0, 60).Draw(t, "attempts") {
		clock = clock.Add(span.Draw(t, "wait"))
		if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
			clock = clock.Add(-span.Draw(t, "back"))
		}
		a := tried(n+1, clock.Sub(now), span.Draw(t, "took"),
			task.Decision{Verdict: rapid.SampledFrom(verdicts).Draw(t, "verdict"), Delay: span.Draw(t, "delay")})
		if rapid.Bool().Draw(t, "crash") {
			a.Outcome.Exit = task.NoExit
		}
		clock = clock.Add(a.Outcome.Duration)
		attempts = append(attempts, a)
	}
	statuses := []task.Status{task.Pending, task.InFlight, task.Succeeded, task.Cancelled}
	status := rapid.SampledFrom(statuses).Draw(t, "status")
	v := madeNow(status, clock.Sub(now)-span.Draw(t, "early"))
	v.Interrupted = !status.Finished() && rapid.Bool().Draw(t, "interrupted")
	return v, attempts, clock.Add(-span.Draw(t, "late"))
}

// Until the time that its server named a task waits, though no process does.
func TestTimelineOfADeferredTask(t *testing.T) {
	v := requesting(func(v *TaskView) {
		v.Status, v.Reason, v.Interrupted, v.AttemptCount = task.Pending, task.ReasonDeferred, true, 1
		v.FinishedAt, v.NextAttemptAt = time.Time{}, now.Add(time.Hour)
	})
	h := newTimeline(v, []task.Attempt{untilLater(answered(1, 429))}, now)
	if got := h.gaps[1].mark; got != waited {
		t.Errorf("drawn as %c", got)
	}
}
