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

// countdown is one line at the bottom of the terminal, drawn over itself, and gone before anything else is written.
type countdown struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool // nil: no countdown
	drawn        bool
}

const (
	rarely    = time.Hour // where nothing is to be drawn
	eraseLine = "\r\x1b[K"
)

// draw shows the time left and returns the time until it will have changed. In the background, or where stderr is no
// terminal, it draws nothing and looks again after a while.
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
	// Read anew each time: the window may have another size. The last column stays free, where some terminals wrap early.
	width, _, err := term.GetSize(int(c.screen.Fd()))
	if err != nil || width < 2 {
		return tick
	}
	text := fmt.Sprintf("retry: attempt %s in %s", AttemptCount(&next), text.Duration(seconds))
	_, _ = fmt.Fprint(c.w, eraseLine+ansi.Truncate(text, width-1, ""))
	c.drawn = true
	return tick
}

// clear removes the line.
func (c *countdown) clear() {
	if c.drawn {
		_, _ = fmt.Fprint(c.w, eraseLine)
		c.drawn = false
	}
}

// transfer is a line about the bytes that are under way, drawn over itself as the countdown is.
type transfer struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool

	mutex sync.Mutex
	drawn bool
	next  time.Time // when it is drawn again
}

const (
	shownAfter = time.Second     // a transfer that is over by then needs no line
	drawEvery  = time.Second / 4 // nobody reads faster
)

// Progress returns what draws how far the bytes of an attempt have got. Nil: there is nobody to see it.
func Progress(o Observer) func(task.Transfer) {
	if d, ok := o.(interface{ Decorates() Observer }); ok {
		return Progress(d.Decorates())
	}
	l, ok := o.(*Lines)
	if !ok || l.named || l.countdown.inForeground == nil || !term.IsTerminal(int(l.countdown.screen.Fd())) {
		return nil
	}
	t := &transfer{w: l.w, screen: l.countdown.screen, inForeground: l.countdown.inForeground}
	l.transfer = t
	return t.told
}

// told draws the line, or removes it when all is over.
func (t *transfer) told(now task.Transfer) {
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

func (t *transfer) draw(now task.Transfer, at time.Time) {
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

// clear removes the line, for something else to be written. The next one may be drawn below that.
func (t *transfer) clear() {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.erase()
}

func (t *transfer) erase() {
	if t.drawn {
		_, _ = fmt.Fprint(t.w, eraseLine)
		t.drawn = false
	}
}

// transferred says how far a transfer has got: "43% of 200 MiB, 12 MiB/s, 9s left".
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
	const longest = 100 * 365 * 24 * 3600 // that a Duration can hold
	if left := math.Ceil(float64(now.Total-now.Bytes) / rate); left > 0 && left < longest {
		txt += ", " + text.Duration(time.Duration(left)*time.Second) + " left"
	}
	return txt
}
