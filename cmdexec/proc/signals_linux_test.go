package proc

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	received    atomic.Int32
	receiveOnce = sync.OnceFunc(func() { // for the life of the process
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGUSR2)
		Receive(signals, func(os.Signal) {
			time.Sleep(40 * time.Millisecond)
			received.Add(1)
		})
	})
)

// Who waits for the signals that came before sees what their receivers have done, however slow these are.
func TestAwaitSignals(t *testing.T) {
	receiveOnce()
	for range 3 {
		n := received.Load() + 1
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // a thread may just be taking it
		AwaitSignals()
		if got := received.Load(); got != n {
			t.Fatalf("got %d signals, want %d", got, n)
		}
	}
}
