package render

import (
	"math"
	"slices"
	"time"

	"github.com/10f93571/retry/task"
)

// mark is what a cell of a timeline shows.
type mark rune

// The marks. Each differs from the others without colour, too.
const (
	blank     mark = ' '
	succeeded mark = '█'
	failed    mark = '▒'
	running   mark = '░'
	noOutcome mark = '!' // an attempt whose owner died: its duration is not known
	waited    mark = '─'
	cutOff    mark = '·' // the task had no owner
)

// segment is a part of a task's time; from and to are offsets from its creation.
type segment struct {
	from, to time.Duration
	mark     mark
}

// timeline is a task's time from its creation to its end, or to now: a gap before each attempt, the attempt, and a gap
// at the end. Each segment begins where the one before it ends.
type timeline struct {
	gaps, runs []segment // one gap more than runs
	length     time.Duration
	wentBack   bool // the clock was set back; the planned waits are shown there
}

// maxSpan bounds a timeline and each part of it, so that two of them can be added.
const maxSpan = math.MaxInt64 / 2

// spanBetween is the time between two moments, at most maxSpan.
func spanBetween(from, to time.Time) time.Duration {
	return min(max(to.Sub(from), -maxSpan), maxSpan)
}

// addSpans adds two spans, at most to maxSpan.
func addSpans(a, b time.Duration) time.Duration {
	return min(max(a+b, -maxSpan), maxSpan)
}

// clockTolerance is the difference between two timestamps up to which the clock does not count as set back.
const clockTolerance = time.Second

// newTimeline puts the attempts one after the other, also where the clock was set.
func newTimeline(t TaskView, attempts []task.Attempt, now time.Time) timeline {
	var h timeline
	var at, shift time.Duration // shift corrects offsets after the clock was set back
	gap, planned := waited, time.Duration(0)
	// advance adds the gap that ends at a time of the clock.
	advance := func(moment time.Time) {
		to := addSpans(spanBetween(t.CreatedAt, moment), shift)
		if to < at-clockTolerance {
			h.wentBack = true
			shift = addSpans(shift, addSpans(addSpans(at, planned), -to))
			to = addSpans(at, planned)
		}
		to = max(to, at)
		h.gaps = append(h.gaps, segment{at, to, gap})
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
		took := attemptDuration(t, a, next)
		h.runs = append(h.runs, segment{at, addSpans(at, took), markOf(t, a)})
		at = addSpans(at, took)
		gap, planned = markAfter(a), min(max(0, a.Decision.Delay), maxSpan)
	}
	// The gap is blank where the task was requeued after its end, and no run has claimed it yet.
	if t.Interrupted && !deferred(t) && gap != blank {
		gap = cutOff
	}
	planned = 0
	advance(end)
	h.length = at
	return h
}

// attemptDuration is how long an attempt took. Without an outcome, that is known only while it runs, or when it was
// cancelled.
func attemptDuration(t TaskView, a task.Attempt, next time.Time) time.Duration {
	runs := a.Decision.Verdict == "" && !t.Interrupted
	if a.Outcome.IsCrash() && (runs || a.Decision.Verdict == task.VerdictCancelled) {
		return max(0, spanBetween(a.StartedAt, next))
	}
	return min(max(0, a.Outcome.Duration), maxSpan)
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

// markAfter is the mark of the time after an attempt: blank between the end of a task and its requeue.
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

// layout draws a timeline to scale into rows of so many cells. Where there are more attempts than rows, a row shows
// several; what follows the last attempt has a row of its own. An attempt has at least one cell; where two share one,
// the later is seen.
func (h timeline) layout(width, rows int) []bar {
	scale := scale{h.length, width}
	each := max(1, (len(h.runs)+rows-1)/rows)
	var bars []bar
	for first := 0; first < len(h.runs); first += each {
		b := bar{first, min(first+each, len(h.runs)) - 1, slices.Repeat([]mark{blank}, width)}
		for i := b.first; i <= b.last; i++ {
			scale.draw(b.cells, h.gaps[i], 0)
		}
		for i := b.first; i <= b.last; i++ {
			scale.draw(b.cells, h.runs[i], 1)
		}
		bars = append(bars, b)
	}
	tail := bar{len(h.runs), len(h.runs), slices.Repeat([]mark{blank}, width)}
	if rest := h.gaps[len(h.runs)]; rest.mark != blank && scale.draw(tail.cells, rest, 0) > 0 {
		bars = append(bars, tail)
	}
	return bars
}

// scale maps times to cells.
type scale struct {
	length time.Duration
	width  int
}

// cell returns the cell of a time. The end of the scale is in its last cell.
func (s scale) cell(t time.Duration) int {
	if s.length <= 0 {
		return 0
	}
	return min(max(0, int(float64(t)/float64(s.length)*float64(s.width))), s.width-1)
}

// draw marks the cells of a segment and returns their number: the cell in which it begins and those that it fills, at
// least the given number.
func (s scale) draw(cells []mark, part segment, least int) int {
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
