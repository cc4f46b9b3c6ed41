//go:build unix

package session

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// A signal that comes while retry begins to listen ends stopping and the wait, or neither.
func TestASignalAsListeningBegins(t *testing.T) {
	caught := make(chan os.Signal, 1) // or the first one would end the tests
	signal.Notify(caught, syscall.SIGTERM)
	defer signal.Stop(caught)
	for i := range 200 { // each leaves a receiver, and proc.AwaitSignals has room for 256 answers
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

// The body of a call is read like that of a request: no message is cut.
func TestReadBodyOfMessages(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Skipf("no sockets of packets: %v", err)
	}
	read, write := os.NewFile(uintptr(pair[0]), "read"), os.NewFile(uintptr(pair[1]), "write")
	defer func() { _ = read.Close() }()
	for range 2 {
		_, err := write.Write(make([]byte, 3000))
		testkit.Must(t, err)
	}
	testkit.Must(t, write.Close())
	host := testHost()
	host.Stdin = read
	body, err := host.ReadBody(request.StdinFile, 1<<20, new(task.Task), nil)
	if err != nil || body.Size() != 6000 || host.inputEnded.IsZero() {
		t.Errorf("got %v, %v, ended at %v, want 6000 bytes and a time", body, err, host.inputEnded)
	}
}

// Whoever opens as many connections as a server takes leaves its journal and its attempts what they need.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for _, tt := range []struct{ limit, slots, want int }{
		{1 << 30, 64, 10_000}, {10_000, 64, 10_000 - 128 - 512}, {1024, 64, 384}, {256, 64, 16}, {1 << 30, 1000, 10_000},
	} {
		if got := connectionsBeside(tt.limit, tt.slots); got != tt.want {
			t.Errorf("a limit of %d with %d slots: got %d, want %d", tt.limit, tt.slots, got, tt.want)
		}
	}
	if got := descriptors(); got < 1 {
		t.Errorf("got a limit of %d", got)
	}
}
