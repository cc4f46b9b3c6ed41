package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalBuffer holds what arrives while nobody listens.
const signalBuffer = 32

// listen returns the signals to pass on. One that was ignored when retry started, as under nohup, stays ignored, and then
// the command inherits that.
func listen() <-chan os.Signal {
	signals := make(chan os.Signal, signalBuffer)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// ignoreBrokenPipes has a write to a closed stdout or stderr fail instead of killing retry. The command is not affected: a
// signal that is caught, not ignored, has its default action again after exec.
func ignoreBrokenPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// dieOf ends the process by the signal, so that its parent sees what ended it. Where that does not happen it returns.
func dieOf(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || number == syscall.SIGQUIT { // Go would print its goroutines instead of dying
		return
	}
	signal.Reset(number)
	if raise(number) == nil {
		time.Sleep(time.Second) // it is delivered long before
	}
}
