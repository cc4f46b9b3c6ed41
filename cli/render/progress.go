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

// statusLine is a line at the bottom of the terminal that is drawn over itself, and erased before anything else is
// written.
type statusLine struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool // nil: nothing is drawn

	mutex sync.Mutex // transfers report from goroutines of their own
	drawn bool
}

const (
	rarely    = time.Hour // until the next call, where nothing is drawn
	eraseLine = "\r\x1b[K"
)

func (l *statusLine) visible() bool {
	return l.inForeground != nil && term.IsTerminal(int(l.screen.Fd()))
}

// draw replaces the line. In the background it draws nothing.
func (l *statusLine) draw(text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
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

func (l *statusLine) clear() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
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
			l.status.draw("retry: " + transferred(now, at))
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
