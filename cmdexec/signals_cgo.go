//go:build cgo && unix

package cmdexec

/*
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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

static void retry_die_of(int n) {
	struct rlimit none = {0, 0};
	struct sigaction action = {0};
	sigset_t set;
	setrlimit(RLIMIT_CORE, &none); // the command's core is of use, ours is not
	action.sa_handler = SIG_DFL;
	sigaction(n, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, n);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), n);
}
*/
import "C"

import (
	"syscall"
	"time"
)

// DieOf ends the process by the signal, so that its parent sees what ended it. Where that is not possible it returns. os/signal
// cannot do that for QUIT: Go would print its goroutines instead.
func DieOf(sig syscall.Signal) {
	C.retry_die_of(C.int(sig))
	time.Sleep(time.Second) // it is delivered long before
}

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
