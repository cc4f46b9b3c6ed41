package cmdexec

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/runner"
)

// roleVariable has the test binary play a helper process instead of running tests.
const roleVariable = "CMDEXEC_TEST_ROLE"

var roles = map[string]func() error{
	"block":   playBlock,
	"catch":   playCatch,
	"execute": playExecute,
}

func TestMain(m *testing.M) {
	play, isRole := roles[os.Getenv(roleVariable)]
	if !isRole {
		os.Exit(m.Run())
	}
	ok1(os.Unsetenv(roleVariable))
	ok1(play())
}

// ok1 is ok for a helper process.
func ok1(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper process:", err)
		os.Exit(99)
	}
}

// role returns the command line of a helper process.
func role(name string, args ...string) []string {
	return append([]string{"env", roleVariable + "=" + name, self}, args...)
}

// self is the test binary, wherever a command runs.
var self, _ = os.Executable()

// lastSignal ends playCatch. The system hands pending signals out in the order of their numbers, so it is the last one.
const lastSignal = syscall.Signal(64)

// caught are the signals that playCatch reports. Several of the real-time one stay several, while others of a kind merge.
var caught = map[string]syscall.Signal{
	"HUP": unix.SIGHUP, "INT": unix.SIGINT, "QUIT": unix.SIGQUIT, "USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2,
	"TERM": unix.SIGTERM, "CONT": unix.SIGCONT, "WINCH": unix.SIGWINCH, "RT": 40, "last": lastSignal,
}

// playCatch blocks signals, says so, and then writes the name of each one that is pending, until the last one. What is
// blocked cannot get lost or overtake, so that the list is complete whenever the last one is in it.
func playCatch() error {
	set := signalSet(slices.Collect(maps.Values(caught)))
	if len(os.Args) == 1 { // block them in the one thread that is left after the exec
		runtime.LockOSThread()
		ok1(unix.PthreadSigmask(unix.SIG_BLOCK, set, nil))
		return syscall.Exec(self, []string{self, "blocked"}, append(os.Environ(), roleVariable+"=catch"))
	}
	fd, err := unix.Signalfd(-1, set, unix.SFD_CLOEXEC)
	ok1(err)
	fmt.Println("ready")
	for {
		info := make([]byte, unsafe.Sizeof(unix.SignalfdSiginfo{}))
		_, err := unix.Read(fd, info)
		ok1(err)
		number := syscall.Signal(binary.NativeEndian.Uint32(info)) // ssi_signo
		for name, sig := range caught {
			if sig == number {
				fmt.Println(name)
			}
		}
		if number == lastSignal {
			return nil
		}
	}
}

// playBlock runs a program with every signal blocked.
func playBlock() error {
	var all []syscall.Signal
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		all = append(all, sig)
	}
	path, err := lookPath(os.Args[1], "")
	ok1(err)
	runtime.LockOSThread()
	ok1(unix.PthreadSigmask(unix.SIG_BLOCK, signalSet(all), nil))
	return syscall.Exec(path, os.Args[1:], os.Environ())
}

// playExecute does with its arguments what retry does with a command, having opened what retry could forget to close.
func playExecute() error {
	file, err := os.Open("/etc/passwd")
	ok1(err)
	defer file.Close()
	r, w, err := os.Pipe()
	ok1(err)
	defer r.Close()
	defer w.Close()
	signals := make(chan os.Signal, 32)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	e := Executor{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	task := runner.Task{Command: os.Args[1:]}
	os.Exit(e.Execute(context.Background(), &task, 1, signals).ExitCode())
	return nil
}

func signalSet(signals []syscall.Signal) *unix.Sigset_t {
	var set unix.Sigset_t
	for _, sig := range signals {
		set.Val[(sig-1)/64] |= 1 << ((sig - 1) % 64)
	}
	return &set
}
