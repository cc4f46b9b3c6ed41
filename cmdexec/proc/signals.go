package proc

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// noted are the times at which a signal came that this process outlives, and that ends one which does not handle it:
// batch systems send such signals to all processes of a job.
var noted struct {
	sync.Mutex
	times []time.Time
}

// NoteSignals begins to note such signals, since one may end what writes an input. What came since the process began,
// and its stdin is a pipe, is noted then. Each signal takes some 30 µs: those of real time are noted on demand.
func NoteSignals(ofRealTime bool) {
	noteUsual()
	if ofRealTime {
		noteRealTime()
	}
}

var (
	noteUsual    = sync.OnceFunc(func() { note(outlived()) })
	noteRealTime = sync.OnceFunc(func() { note(realTime()) })
)

func note(wanted []syscall.Signal) {
	signals := make(chan os.Signal, 8)
	for _, sig := range wanted {
		if !InheritedIgnored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		for sig := range signals {
			noted.Lock()
			if isContinue(sig) && len(noted.times) == 0 {
				noted.Unlock()
				continue
			}
			noted.times = append(noted.times[max(0, len(noted.times)-100):], time.Now())
			noted.Unlock()
		}
	}()
}

// Signalled reports whether one was noted between two times.
func Signalled(from, to time.Time) bool {
	noted.Lock()
	defer noted.Unlock()
	for _, at := range noted.times {
		if !at.Before(from) && !at.After(to) {
			return true
		}
	}
	return false
}
