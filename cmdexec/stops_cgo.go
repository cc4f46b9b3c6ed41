//go:build cgo && unix

package cmdexec

/*
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
static struct sigaction before[3];

static void outlive(int sig) { (void)sig; }

// A signal that is caught has its default action again in the command. What was ignored stays so.
static void retry_hold_stops(void) {
	for (int i = 0; i < 3; i++) {
		struct sigaction hold = {.sa_handler = outlive, .sa_flags = SA_RESTART | SA_ONSTACK};
		sigaction(stops[i], NULL, &before[i]);
		if (before[i].sa_handler == SIG_DFL)
			sigaction(stops[i], &hold, NULL);
	}
}

static void retry_release_stops(void) {
	for (int i = 0; i < 3; i++)
		sigaction(stops[i], &before[i], NULL);
}

// Returns when somebody continues the process.
static void retry_stop_like(int sig) {
	struct sigaction stop = {.sa_handler = SIG_DFL}, held;
	sigset_t one, old;
	sigemptyset(&one);
	sigaddset(&one, sig);
	if (sig != SIGSTOP)
		sigaction(sig, &stop, &held);
	pthread_sigmask(SIG_UNBLOCK, &one, &old);
	pthread_kill(pthread_self(), sig); // taken before the next line
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (sig != SIGSTOP)
		sigaction(sig, &held, NULL);
}

// Returns the signal that stopped the child, or 0 when it has ended; it is left to be reaped then.
static int retry_next(pid_t pid) {
	siginfo_t info;
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
			if (errno == EINTR)
				continue;
			return 0;
		}
		if (info.si_code != CLD_STOPPED)
			return 0;
		info.si_pid = 0;
		if (waitid(P_PID, pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid)
			return info.si_status;
	}
}
*/
import "C"

import "syscall"

// holdStops keeps Ctrl-Z from stopping this process: the command may have to tidy up before it stops, or not want to stop at all,
// and the shell takes the terminal as soon as we have stopped. The function that it returns ends that.
func holdStops() (release func()) {
	C.retry_hold_stops()
	return func() { C.retry_release_stops() }
}

// awaitEndOrStops returns when the child has ended, and leaves it to be reaped. When the child is stopped at a terminal, so are
// we, by the same signal, so that our shell hears of it.
func awaitEndOrStops(pid int, onTerminal func() bool) {
	for {
		sig := C.retry_next(C.pid_t(pid))
		if sig == 0 {
			return
		}
		if syscall.Signal(sig) != syscall.SIGSTOP || onTerminal() {
			C.retry_stop_like(sig)
		}
	}
}
