package render

import (
	"math"
	"time"

	"github.com/10f93571/retry/task"
)

// mark is what a cell of a timeline shows.
type mark rune

// The marks. Each can be told from the others without colour.
const (
	blank     mark = ' '
	succeeded mark = '█'
	failed    mark = '▒'
	running   mark = '░'
	noOutcome mark = '!' // of an attempt whose owner died: how long it took is not known
	waited    mark = '─'
	cutOff    mark = '·' // nobody owned the task
)

// stretch is a part of a task's time; from and to count from its creation.
type stretch struct {
	from, to time.Duration
	mark     mark
}

// history is a task's time from creation to the end, or to now: a gap before each attempt, the attempt, and a gap at the end. Each
// stretch begins where the one before ends.
type history struct {
	gaps, runs []stretch // one gap more than runs
	length     time.Duration
	wentBack   bool // the clock; the waits there are the planned ones
}

// longest is the longest history that is drawn, and how long any part of it counts. Two of them can be added.
const longest = math.MaxInt64 / 2

// span is the time between two moments, at most longest whatever they are.
func span(from, to time.Time) time.Duration {
	return min(max(to.Sub(from), -longest), longest)
}

// plus adds two spans.
func plus(a, b time.Duration) time.Duration {
	return min(max(a+b, -longest), longest)
}

// slack is how far the clocks of two stretches may differ without one having been set.
const slack = time.Second

// newHistory puts the attempts one after the other, whatever the clock has done.
func newHistory(t TaskView, attempts []task.Attempt, now time.Time) history {
	var h history
	var at, shift time.Duration // shift is what has to be added to offsets by the clock
	gap, planned := waited, time.Duration(0)
	// advance leads over the gap to a time by the clock.
	advance := func(moment time.Time) {
		to := plus(span(t.CreatedAt, moment), shift)
		if to < at-slack {
			h.wentBack = true
			shift = plus(shift, plus(plus(at, planned), -to))
			to = plus(at, planned)
		}
		to = max(to, at)
		h.gaps = append(h.gaps, stretch{at, to, gap})
		at = to
	}
	end := now
	if t.Status.Finished() {
		end = t.FinishedAt
	}
	for i, a := range attempts {
		advance(a.StartedAt)
		next := end
		if i < len(attempts)-1 {
			next = attempts[i+1].StartedAt
		}
		took := lasted(t, a, next)
		h.runs = append(h.runs, stretch{at, plus(at, took), markOf(t, a)})
		at = plus(at, took)
		gap, planned = markAfter(a), min(max(0, a.Decision.Delay), longest)
	}
	if t.Interrupted && !deferred(t) && gap != blank { // after an end it was requeued, and nobody has taken it up yet
		gap = cutOff
	}
	planned = 0
	advance(end)
	h.length = at
	return h
}

// lasted is how long an attempt took. Of one without an outcome that is known only where it runs, or was cancelled.
func lasted(t TaskView, a task.Attempt, next time.Time) time.Duration {
	runs := a.Decision.Verdict == "" && !t.Interrupted
	if a.Outcome.IsCrash() && (runs || a.Decision.Verdict == task.VerdictCancelled) {
		return max(0, span(a.StartedAt, next))
	}
	return min(max(0, a.Outcome.Duration), longest)
}

func markOf(t TaskView, a task.Attempt) mark {
	switch {
	case a.Decision.Verdict == "" && !t.Interrupted:
		return running
	case a.Outcome.IsCrash() && a.Decision.Verdict != task.VerdictCancelled:
		return noOutcome
	case a.Decision.Success:
		return succeeded
	}
	return failed
}

// markAfter is what the time after an attempt was. After an end and before the task was given fresh attempts it was nothing.
func markAfter(a task.Attempt) mark {
	switch a.Decision.Verdict {
	case task.VerdictRetry:
		return waited
	case task.VerdictInterrupted, "":
		return cutOff
	}
	return blank
}

// bar is a row of a timeline.
type bar struct {
	first, last int // the attempts that it shows, from 0; none for what follows the last attempt
	cells       []mark
}

// layout draws a history to scale into rows of so many cells, several attempts a row where there are more than rows, and one row for
// what follows the last attempt. An attempt has a cell at the least; where two share one, the later is seen.
func (h history) layout(width, rows int) []bar {
	scale := scale{h.length, width}
	each := max(1, (len(h.runs)+rows-1)/rows)
	var bars []bar
	for first := 0; first < len(h.runs); first += each {
		b := bar{first, min(first+each, len(h.runs)) - 1, scale.empty()}
		for i := b.first; i <= b.last; i++ {
			scale.draw(b.cells, h.gaps[i], 0)
		}
		for i := b.first; i <= b.last; i++ {
			scale.draw(b.cells, h.runs[i], 1)
		}
		bars = append(bars, b)
	}
	tail := bar{len(h.runs), len(h.runs), scale.empty()}
	if rest := h.gaps[len(h.runs)]; rest.mark != blank && scale.draw(tail.cells, rest, 0) > 0 {
		bars = append(bars, tail)
	}
	return bars
}

// scale leads from a time to a cell.
type scale struct {
	length time.Duration
	width  int
}

func (s scale) empty() []mark {
	cells := make([]mark, s.width)
	for i := range cells {
		cells[i] = blank
	}
	return cells
}

// cell is where a time lies; the end of the scale lies in its last cell.
func (s scale) cell(t time.Duration) int {
	if s.length <= 0 {
		return 0
	}
	return min(max(0, int(float64(t)/float64(s.length)*float64(s.width))), s.width-1)
}

// draw marks the cells of a stretch and returns how many they are: those that it begins in or fills, and the least number in any case.
func (s scale) draw(cells []mark, part stretch, least int) int {
	from, to := s.cell(part.from), s.cell(part.to)
	if part.to >= s.length && part.to > part.from {
		to = s.width
	}
	to = max(to, from+least)
	for i := from; i < to; i++ {
		cells[i] = part.mark
	}
	return to - from
}
