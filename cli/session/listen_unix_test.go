//go:build unix

package session

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A signal that comes while retry begins to listen ends stopping and the wait, or neither.
func TestASignalAsListeningBegins(t *testing.T) {
	caught := make(chan os.Signal, 1) // or the first one would end the tests
	signal.Notify(caught, syscall.SIGTERM)
	defer signal.Stop(caught)
	for i := range 500 {
		p := testHost()
		raised := make(chan error, 1)
		go func() {
			for begun, wait := time.Now(), time.Duration(i%100)*time.Microsecond; time.Since(begun) < wait; {
			}
			raised <- syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}()
		signals := p.Listen()
		if err := <-raised; err != nil {
			t.Fatal(err)
		}
		<-caught
		select {
		case <-signals:
		case <-p.Stopping().Done():
			select {
			case <-signals:
			case <-time.After(10 * time.Second):
				t.Fatal("stopping has ended, and no signal came")
			}
		case <-time.After(20 * time.Millisecond): // it came before
		}
	}
}
