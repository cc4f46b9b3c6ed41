package render

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// statusLine is a line at the bottom of the terminal that is drawn over itself, and erased before anything else is
// written.
type statusLine struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool // nil: nothing is drawn

	mutex   sync.Mutex // transfers report from goroutines of their own
	drawn   bool
	repeats chan struct{} // closed to end repeat; nil where nothing is repeated
}

const (
	rarely    = time.Hour // until the next call, where nothing is drawn
	eraseLine = "\r\x1b[K"
)

func (l *statusLine) visible() bool {
	return l.inForeground != nil && term.IsTerminal(int(l.screen.Fd()))
}

// draw replaces the line. In the background it draws nothing.
func (l *statusLine) draw(text string) { l.drawUnless(nil, text) }

// drawUnless draws unless the channel is closed.
func (l *statusLine) drawUnless(done <-chan struct{}, text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-done:
		return
	default:
	}
	if !l.inForeground() {
		l.drawn = false // the shell has written over it
		return
	}
	// The window may have changed its size. The last column stays free, as some terminals wrap there.
	width, _, err := term.GetSize(int(l.screen.Fd()))
	if err != nil || width < 2 {
		return
	}
	_, _ = fmt.Fprint(l.w, eraseLine+ansi.Truncate(text, width-1, ""))
	l.drawn = true
}

// repeat draws a text every second, until clear.
func (l *statusLine) repeat(text func() string) {
	done := make(chan struct{})
	l.mutex.Lock()
	l.repeats = done
	l.mutex.Unlock()
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.drawUnless(done, text())
			case <-done:
				return
			}
		}
	}()
}

// startLine goes to the start of a line, where a command may have left the cursor elsewhere: as many spaces as the
// terminal is wide end in the next line then, and otherwise just before it.
func (l *statusLine) startLine() {
	if !l.visible() || !l.inForeground() {
		return
	}
	if width, _, err := term.GetSize(int(l.screen.Fd())); err == nil && width > 1 {
		_, _ = io.WriteString(l.w, strings.Repeat(" ", width)+eraseLine)
	}
}

// Busy draws on a terminal what is being done and since when, from the first second on, until done is called.
func Busy(terminal *Terminal, what string) (done func()) {
	l := &statusLine{w: terminal.File, screen: terminal.File, inForeground: terminal.InForeground}
	if !l.visible() {
		return func() {}
	}
	began := time.Now()
	l.repeat(func() string {
		return fmt.Sprintf("%s: %s, %s", Speaker(0), what, text.Duration(time.Since(began).Truncate(time.Second)))
	})
	return l.clear
}

func (l *statusLine) clear() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.repeats != nil {
		close(l.repeats)
		l.repeats = nil
	}
	if l.drawn {
		_, _ = fmt.Fprint(l.w, eraseLine)
		l.drawn = false
	}
}

const (
	shownAfter = time.Second     // shorter transfers have no line
	drawEvery  = time.Second / 4 // nobody reads faster
)

func (l *lineObserver) Progress() func(task.Transfer) {
	if l.named || !l.status.visible() {
		return nil
	}
	var mutex sync.Mutex
	var next time.Time // the earliest time to draw the line again
	return func(now task.Transfer) {
		mutex.Lock()
		defer mutex.Unlock()
		at := time.Now()
		switch {
		case now.Over:
			l.status.clear()
		case at.Sub(now.Began) >= shownAfter && !at.Before(next):
			next = at.Add(drawEvery)
			l.status.draw(l.name + ": " + transferred(now, at))
		}
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
