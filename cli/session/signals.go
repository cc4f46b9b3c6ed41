package session

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/10f93571/retry/cmdexec/proc"
)

// SignalBuffer holds what arrives while nobody listens.
const SignalBuffer = 32

// Notify sends the signals to pass on to a channel, without those that were ignored when retry started.
func Notify(signals chan<- os.Signal) {
	for _, sig := range forwarded {
		if !proc.InheritedIgnored(sig) {
			signal.Notify(signals, sig)
		}
	}
}

// SettleSignals keeps what was ignored when retry started, as under nohup, so that the command inherits it. Otherwise a write
// to a closed stdout or stderr fails instead of killing retry, which does not concern the command: a signal that is caught, not
// ignored, has its default action again after exec.
func SettleSignals() {
	for _, sig := range inheritable {
		if proc.InheritedIgnored(sig) {
			signal.Ignore(sig)
		}
	}
	if !proc.InheritedIgnored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}

// DieOf ends the process by the signal, so that its parent sees what ended it. Where that does not happen it returns.
func DieOf(sig os.Signal) {
	if number, ok := sig.(syscall.Signal); ok {
		proc.DieOf(number)
	}
}
