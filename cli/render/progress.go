package render

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// countdown is a line at the bottom of the terminal that is drawn over itself, and erased before anything else is written.
type countdown struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool // nil: no countdown
	drawn        bool
}

const (
	rarely    = time.Hour // until the next call, where nothing is drawn
	eraseLine = "\r\x1b[K"
)

// draw shows the time left, and returns when it has to be called again. In the background it draws nothing and tries again later.
func (c *countdown) draw(t *task.Task, left time.Duration) time.Duration {
	if c.inForeground == nil || !term.IsTerminal(int(c.screen.Fd())) {
		return rarely
	}
	tick := left % time.Second
	if tick == 0 {
		tick = time.Second
	}
	if !c.inForeground() {
		c.drawn = false // the shell has written over it
		return tick
	}
	seconds := (left + time.Second - 1).Truncate(time.Second)
	next := *t
	next.AttemptCount++
	// The window may have changed its size. The last column stays free, as some terminals wrap there.
	width, _, err := term.GetSize(int(c.screen.Fd()))
	if err != nil || width < 2 {
		return tick
	}
	text := fmt.Sprintf("retry: attempt %s in %s", AttemptCount(&next), text.Duration(seconds))
	_, _ = fmt.Fprint(c.w, eraseLine+ansi.Truncate(text, width-1, ""))
	c.drawn = true
	return tick
}

// clear erases the line.
func (c *countdown) clear() {
	if c.drawn {
		_, _ = fmt.Fprint(c.w, eraseLine)
		c.drawn = false
	}
}

// transferLine is a line about a transfer in progress, drawn over itself like the countdown.
type transferLine struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool

	mutex sync.Mutex
	drawn bool
	next  time.Time // the earliest time to draw it again
}

const (
	shownAfter = time.Second     // shorter transfers have no line
	drawEvery  = time.Second / 4 // nobody reads faster
)

// Progress returns a function that draws the progress of a transfer; nil where nobody would see it.
func Progress(o Observer) func(task.Transfer) {
	if d, ok := o.(interface{ Decorates() Observer }); ok {
		return Progress(d.Decorates())
	}
	l, ok := o.(*Lines)
	if !ok || l.named || l.countdown.inForeground == nil || !term.IsTerminal(int(l.countdown.screen.Fd())) {
		return nil
	}
	t := &transferLine{w: l.w, screen: l.countdown.screen, inForeground: l.countdown.inForeground}
	l.transfer = t
	return t.update
}

// update draws the line, or erases it at the end of the transfer.
func (t *transferLine) update(now task.Transfer) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	at := time.Now()
	switch {
	case now.Over:
		t.erase()
	case at.Sub(now.Began) >= shownAfter && !at.Before(t.next):
		t.next = at.Add(drawEvery)
		t.draw(now, at)
	}
}

func (t *transferLine) draw(now task.Transfer, at time.Time) {
	if !t.inForeground() {
		t.drawn = false // the shell has written over it
		return
	}
	width, _, err := term.GetSize(int(t.screen.Fd()))
	if err != nil || width < 2 {
		return
	}
	_, _ = fmt.Fprint(t.w, eraseLine+ansi.Truncate("retry: "+transferred(now, at), width-1, ""))
	t.drawn = true
}

// clear erases the line before something else is written. It may be drawn again below that.
func (t *transferLine) clear() {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.erase()
}

func (t *transferLine) erase() {
	if t.drawn {
		_, _ = fmt.Fprint(t.w, eraseLine)
		t.drawn = false
	}
}

// transferred describes a transfer: "43% of 200 MiB, 12 MiB/s, 9s left".
func transferred(now task.Transfer, at time.Time) string {
	txt := text.Size(now.Bytes)
	if now.Total > 0 {
		txt = fmt.Sprintf("%d%% of %s", min(100, int64(float64(now.Bytes)/float64(now.Total)*100)), text.Size(now.Total))
	}
	if now.Sending {
		txt += " sent"
	}
	if now.Sending && now.Bytes >= now.Total {
		return txt + ", no reply yet"
	}
	took := at.Sub(now.Began).Seconds()
	rate := float64(now.Bytes-now.From) / took
	if took <= 0 || rate < 1 {
		return txt
	}
	txt += ", " + text.Size(int64(rate)) + "/s"
	const century = 100 * 365 * 24 * 3600 // in seconds; more may not fit into a Duration
	if left := math.Ceil(float64(now.Total-now.Bytes) / rate); left > 0 && left < century {
		txt += ", " + text.Duration(time.Duration(left)*time.Second) + " left"
	}
	return txt
}
