package proc

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
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
	Receive(signals, func(sig os.Signal) {
		noted.Lock()
		defer noted.Unlock()
		if !isContinue(sig) || len(noted.times) > 0 {
			noted.times = append(noted.times[max(0, len(noted.times)-100):], time.Now())
		}
	})
}

// receivers are the channels of Receive. The mutex is held by AwaitSignals, too.
var receivers struct {
	sync.Mutex
	all   []chan os.Signal
	asked int // how many of them get askSignal
	deaf  bool
}

// answers come while AwaitSignals asks.
var (
	asking  atomic.Bool
	answers = make(chan struct{}, 256)
)

// Receive calls do for each signal that comes to a channel of os/signal, in a goroutine.
func Receive(signals chan os.Signal, do func(os.Signal)) {
	receivers.Lock()
	receivers.all = append(receivers.all, signals)
	receivers.Unlock()
	go func() {
		for sig := range signals {
			if sig != askSignal || !asking.Load() {
				do(sig)
				continue
			}
			select {
			case answers <- struct{}{}:
			default: // somebody else has sent one, too
			}
		}
	}()
}

// longestAnswer is how long AwaitSignals waits at the most, and then no more: something keeps the signal away.
const longestAnswer = 5 * time.Second

// AwaitSignals returns when what Receive has begun has done its work for every signal that came before. In a container
// with a small share of the processors, the thread that is to take a signal may stand still for a tenth of a second
// while another one goes on. It sends this process a signal with a higher number than theirs, which the kernel and Go
// deliver after them; and once more, since another thread may just be taking one of them.
func AwaitSignals() {
	receivers.Lock()
	defer receivers.Unlock()
	if askSignal == 0 || len(receivers.all) == 0 {
		return
	}
	for _, signals := range receivers.all[receivers.asked:] {
		signal.Notify(signals, askSignal)
	}
	receivers.asked = len(receivers.all)
	over := time.After(longestAnswer)
	for range 2 {
		receivers.deaf = receivers.deaf || !askReceivers(receivers.asked, over)
	}
}

// askReceivers reports whether so many receivers have answered in time.
func askReceivers(count int, over <-chan time.Time) bool {
	for range len(answers) {
		<-answers
	}
	asking.Store(true)
	defer asking.Store(false)
	if ask() != nil {
		return false
	}
	for range count {
		select {
		case <-answers:
		case <-over:
			return false
		}
	}
	return true
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
