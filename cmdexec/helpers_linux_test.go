package cmdexec

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// helperVariable makes the test binary run as a helper process instead of running tests.
const helperVariable = "CMDEXEC_TEST_ROLE"

var helpers = map[string]func() error{
	"block":   helperBlock,
	"count":   helperCount,
	"enlarge": helperEnlarge,
	"execute": helperExecute,
	"ignored": helperIgnored,
	"threads": helperThreads,
}

func init() {
	if os.Getenv(helperVariable) == "threads" {
		runtime.LockOSThread() // here, the only goroutine has the main thread
	}
}

func TestMain(m *testing.M) {
	play, isRole := helpers[os.Getenv(helperVariable)]
	if !isRole {
		unignore(syscall.SIGHUP, syscall.SIGINT)
		os.Exit(m.Run())
	}
	_ = os.Unsetenv(helperVariable)
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, "helper process:", err)
		os.Exit(99)
	}
}

// unignore makes commands start without these signals ignored, even if nohup or a background job runs the tests.
func unignore(signals ...os.Signal) {
	for _, sig := range signals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// helperCommand returns the command line of a helper process. It turns off the second that the race detector sleeps at
// its end.
func helperCommand(name string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{"env", "GORACE=atexit_sleep_ms=0", helperVariable + "=" + name, self}, args...)
}

// countedSignal is a real-time signal: these are queued.
const countedSignal = syscall.Signal(40)

// helperCount writes a line for every countedSignal, until lastSignal. It blocks both signals before Go creates its
// threads, so that none is lost or overtakes another.
func helperCount() error {
	set := signalSet(countedSignal, lastSignal)
	if len(os.Args) == 1 {
		return execBlocked(set, append(helperCommand("count"), "blocked"))
	}
	fd, err := unix.Signalfd(-1, set, unix.SFD_CLOEXEC)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	info := make([]byte, unsafe.Sizeof(unix.SignalfdSiginfo{}))
	for {
		if _, err := unix.Read(fd, info); err != nil {
			return err
		}
		number := syscall.Signal(binary.NativeEndian.Uint32(info)) // ssi_signo
		if number == lastSignal {
			return nil
		}
		fmt.Println(number)
	}
}

// helperBlock runs a program with every signal blocked.
func helperBlock() error {
	var all []syscall.Signal
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		all = append(all, sig)
	}
	return execBlocked(signalSet(all...), os.Args[1:])
}

// execBlocked replaces this process by another program, which inherits the mask of the thread.
func execBlocked(set *unix.Sigset_t, argv []string) error {
	path, err := lookPath(argv[0], "", os.Environ())
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, set, nil); err != nil {
		return err
	}
	return syscall.Exec(path, argv, os.Environ())
}

func signalSet(signals ...syscall.Signal) *unix.Sigset_t {
	var set unix.Sigset_t
	for _, sig := range signals {
		set.Val[(sig-1)/64] |= 1 << ((sig - 1) % 64)
	}
	return &set
}

// helperExecute executes its arguments as retry does. It has opened a file that the command must not inherit.
func helperExecute() error {
	file, err := os.Open("/etc/passwd")
	if err != nil {
		return err
	}
	heard := make(chan os.Signal, 32)
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(heard, sig)
		}
	}
	e := Executor{
		Stdin: &stdio.InheritedStdin{File: os.Stdin}, Output: stdio.Output{Stdout: os.Stdout, Stderr: os.Stderr},
		Env: os.Environ(),
	}
	o := e.Execute(context.Background(), &task.Task{Command: os.Args[1:]}, runner.Call{Number: 1, Signals: heard})
	runtime.KeepAlive(file)
	os.Exit(o.ExitCode())
	return nil
}

// helperIgnored writes the names of the signals that were ignored when it was started, in the order of their numbers.
func helperIgnored() error {
	var names []string
	for sig := syscall.Signal(1); sig < 32; sig++ {
		if proc.InheritedIgnored(sig) {
			names = append(names, strings.TrimPrefix(unix.SignalName(sig), "SIG"))
		}
	}
	fmt.Print(strings.Join(names, " "))
	return nil
}

// helperThreads writes its number, and goes on without its main thread. With an argument it leaves the session first.
func helperThreads() error {
	if len(os.Args) > 1 {
		if _, err := unix.Setsid(); err != nil {
			return err
		}
	}
	go func() {
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
		os.Exit(0)
	}()
	_, _, errno := syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	return errno
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	testkit.Must(t, err)
	return len(entries)
}

func outputOf(t *testing.T, argv []string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, cmd.Stderr)
	}
	return string(out)
}
