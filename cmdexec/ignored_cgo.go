//go:build cgo && unix

package cmdexec

/*
#include <signal.h>

static unsigned long long ignored;

// Runs before Go's runtime, which puts its own handlers in the place of what the process inherited.
__attribute__((constructor)) static void note_ignored(void) {
	for (int n = 1; n <= 31; n++) {
		struct sigaction action;
		if (sigaction(n, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			ignored |= 1ULL << n;
	}
}

static unsigned long long retry_ignored_signals(void) { return ignored; }
*/
import "C"

import "syscall"

// InheritedIgnored reports whether the process was started with the signal ignored, as under nohup. os/signal can tell that of
// HUP and INT only.
func InheritedIgnored(sig syscall.Signal) bool {
	return C.retry_ignored_signals()&(1<<uint(sig)) != 0
}
