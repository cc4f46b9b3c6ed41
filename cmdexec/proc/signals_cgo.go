//go:build cgo && unix

package proc

/*
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long long ignored;
static sigset_t blocked;

// Runs before Go's runtime, which installs its own handlers and its own mask. What may end the writer of a stdin waits
// for NoteSignals: the runtime would drop it.
__attribute__((constructor)) static void save_inherited(void) {
	static const int outlived[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO,
#ifdef SIGPWR
		SIGPWR,
#endif
	};
	struct stat info;
	sigset_t noted;
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1); // else each thread of Go's maps 128 MiB for a heap that only a few use
#endif
	for (int n = 1; n <= 31; n++) {
		struct sigaction action;
		if (sigaction(n, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			ignored |= 1ULL << n;
	}
	sigemptyset(&noted);
	if (fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))) {
		for (size_t i = 0; i < sizeof outlived / sizeof outlived[0]; i++)
			sigaddset(&noted, outlived[i]);
#ifdef SIGRTMAX
		for (int n = SIGRTMIN + 1; n <= SIGRTMAX; n++) // the first one is Go's
			sigaddset(&noted, n);
#endif
	}
	pthread_sigmask(SIG_BLOCK, &noted, &blocked);
}

static unsigned long long retry_ignored_signals(void) { return ignored; }
static void retry_set_inherited_mask(sigset_t *before) { pthread_sigmask(SIG_SETMASK, &blocked, before); }
static void retry_set_mask(sigset_t *mask) { pthread_sigmask(SIG_SETMASK, mask, NULL); }

static void retry_die_of(int n) {
	struct rlimit none = {0, 0};
	struct sigaction action = {0};
	sigset_t set;
	setrlimit(RLIMIT_CORE, &none); // the core dump of the command is of use, ours is not
	action.sa_handler = SIG_DFL;
	sigaction(n, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, n);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_kill(pthread_self(), n); // delivered before it returns
}

// Returns a child that has ended, and leaves it as a zombie; 0 if there is none.
static pid_t retry_ended_child(void) {
	siginfo_t info = {.si_pid = 0};
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
static struct sigaction before[3];

static void do_nothing(int sig) { (void)sig; }

// A caught signal has its default action in the command, an ignored one stays ignored there.
static void retry_catch_stops(void) {
	for (int i = 0; i < 3; i++) {
		struct sigaction caught = {.sa_handler = do_nothing, .sa_flags = SA_RESTART | SA_ONSTACK};
		sigaction(stops[i], NULL, &before[i]);
		if (before[i].sa_handler == SIG_DFL)
			sigaction(stops[i], &caught, NULL);
	}
}

static void retry_release_stops(void) {
	for (int i = 0; i < 3; i++)
		sigaction(stops[i], &before[i], NULL);
}

// Stops this process by the signal. Returns when somebody continues it.
static void retry_stop_self(int sig) {
	struct sigaction stop = {.sa_handler = SIG_DFL}, caught;
	sigset_t one, old;
	sigemptyset(&one);
	sigaddset(&one, sig);
	if (sig != SIGSTOP)
		sigaction(sig, &stop, &caught);
	pthread_sigmask(SIG_UNBLOCK, &one, &old);
	pthread_kill(pthread_self(), sig); // delivered before it returns
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (sig != SIGSTOP)
		sigaction(sig, &caught, NULL);
}

// Returns the signal that has stopped the child, or 0 when it has ended. It leaves an ended child as a zombie.
static int retry_wait_stopped(pid_t pid) {
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

import (
	"os"
	"syscall"

	"github.com/10f93571/retry/task"
)

// DieOf ends this process by the signal, so that its parent sees the signal. PID 1 does not die of signals, and exits.
// os/signal cannot do this for QUIT, since Go's runtime prints its goroutines then.
func DieOf(sig syscall.Signal) {
	C.retry_die_of(C.int(sig))
	os.Exit(task.ExitSignalBase + int(sig))
}

// endedChild returns a child that has ended, and leaves it as a zombie; 0 if there is none.
func endedChild() int { return int(C.retry_ended_child()) }

// InheritedIgnored reports whether the process was started with the signal ignored, as nohup does. os/signal knows that
// of HUP and INT only.
func InheritedIgnored(sig syscall.Signal) bool {
	return sig <= 31 && C.retry_ignored_signals()&(1<<uint(sig)) != 0
}

// withInheritedMask calls do while the thread blocks the signals that were blocked when this process was started: a
// child inherits the mask of the thread that forks. The goroutine must be locked to its thread.
func withInheritedMask(do func() error) error {
	var before C.sigset_t
	C.retry_set_inherited_mask(&before)
	defer C.retry_set_mask(&before)
	return do()
}

// catchStops keeps Ctrl-Z from stopping this process until release is called. The command may have to tidy up before it
// stops, or may not want to stop, and the shell takes the terminal as soon as this process has stopped.
func catchStops() (release func()) {
	C.retry_catch_stops()
	return func() { C.retry_release_stops() }
}

// waitForEndOrStops waits until the child has ended, and leaves it as a zombie. If the child is stopped at a terminal,
// it stops this process by the same signal, so that our shell notices. A shell as the child leads a group of its own,
// which our shell does not continue with ours.
func waitForEndOrStops(pid int, onTerminal func() bool) {
	for {
		sig := C.retry_wait_stopped(C.pid_t(pid))
		if sig == 0 {
			return
		}
		group, err := syscall.Getpgid(pid)
		if syscall.Signal(sig) != syscall.SIGSTOP || onTerminal() || isForeground(group) {
			C.retry_stop_self(sig)
			if err == nil && group != syscall.Getpgrp() {
				_ = syscall.Kill(-group, syscall.SIGCONT)
			}
		}
	}
}
