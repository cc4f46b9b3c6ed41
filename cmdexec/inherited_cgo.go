//go:build cgo && unix

package cmdexec

/*
#include <pthread.h>
#include <signal.h>

static unsigned long long ignored;
static sigset_t blocked;

// Runs before Go's runtime, which puts its own handlers and mask in the place of what the process inherited.
__attribute__((constructor)) static void note_inherited(void) {
	for (int n = 1; n <= 31; n++) {
		struct sigaction action;
		if (sigaction(n, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			ignored |= 1ULL << n;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
}

static unsigned long long retry_ignored_signals(void) { return ignored; }
static void retry_block_inherited(sigset_t *before) { pthread_sigmask(SIG_SETMASK, &blocked, before); }
static void retry_block_again(sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }
*/
import "C"

import "syscall"

// InheritedIgnored reports whether the process was started with the signal ignored, as under nohup. os/signal can tell that of
// HUP and INT only.
func InheritedIgnored(sig syscall.Signal) bool {
	return C.retry_ignored_signals()&(1<<uint(sig)) != 0
}

// underInheritedMask does something with the signals blocked that the process was started with: a child begins with what its
// parent's thread blocks. The caller's goroutine must be locked to its thread.
func underInheritedMask(do func() error) error {
	var before C.sigset_t
	C.retry_block_inherited(&before)
	defer C.retry_block_again(&before)
	return do()
}
