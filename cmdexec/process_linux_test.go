//go:build cgo

package cmdexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Linux sends the parent-death signal when the thread that started the child ends, and Go may end its threads.
func TestChildOutlivesThreads(t *testing.T) {
	r := script(t, "echo ready; read -r x; echo $x")
	r.start().expect("ready")
	for range 100 {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			runtime.LockOSThread() // without an unlock, so that the thread ends with the goroutine
		}()
		<-gone
	}
	_, err := io.WriteString(r.stdin, "alive\n")
	testkit.Must(t, err)
	r.expect("alive")
	r.check(task.Outcome{})
}

func TestChildDiesWithRetry(t *testing.T) {
	argv := helperCommand("execute", "sh", "-c", "trap '' TERM HUP; echo ready; read -r _")
	parent := exec.Command(argv[0], argv[1:]...)
	stdin, err := parent.StdinPipe() // never closed, so that nothing else ends the child
	testkit.Must(t, err)
	defer stdin.Close()
	out, in, err := os.Pipe()
	testkit.Must(t, err)
	defer out.Close()
	parent.Stdout = in
	testkit.Must(t, parent.Start())
	in.Close()
	testkit.Must(t, out.SetReadDeadline(time.Now().Add(patience)))
	_, err = out.Read(make([]byte, len("ready\n")))
	testkit.Must(t, err)
	testkit.Must(t, parent.Process.Kill())
	if rest, err := io.ReadAll(out); err != nil { // the end comes when no process has the pipe open
		t.Errorf("the child is still alive after %q: %v", rest, err)
	}
	_ = parent.Wait()
}

func TestLeavesNothingBehind(t *testing.T) {
	missing := fmt.Sprintf("%s/missing", t.TempDir())
	for range 5 { // sets up what is set up only once
		executeOnce(t, "true")
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 200 {
		executeOnce(t, []string{"true", "false", missing, "/"}[i%4])
	}
	if n := openFiles(t); n > files { // what another test has left may have been closed meanwhile
		t.Errorf("open files: got %d, want %d at most", n, files)
	}
	testkit.Eventually(t, "no child is left", func() bool { // the guard of another test's stdin may still be going
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		return errors.Is(err, syscall.ECHILD)
	})
	for end := time.Now().Add(patience); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("goroutines: got %d, want %d", runtime.NumGoroutine(), goroutines)
		}
	}
}

func executeOnce(t *testing.T, name string) {
	e := Executor{Stdin: &stdio.InheritedStdin{File: os.Stdin},
		Output: stdio.Output{Stdout: os.Stdout, Stderr: os.Stderr}}
	e.Execute(t.Context(), &task.Task{Command: []string{name}}, runner.Call{Number: 1})
}

// inheritedProbe writes what a process inherits implicitly.
var inheritedProbe = []string{"sh", "-c", `ls /proc/self/fd
	grep -E '^(SigBlk|SigIgn|SigPnd|ShdPnd|NoNewPrivs|Seccomp|Cpus_allowed):' /proc/self/status
	umask; ulimit -Sa; ulimit -Ha; pwd; cat /proc/self/oom_score_adj; nice`}

// A command inherits the same with retry as without.
func TestInheritsTheSame(t *testing.T) {
	callers := map[string][]string{
		"plainly":              {"env"},
		"under nohup":          {"nohup"},
		"in the background":    {"sh", "-c", `trap '' INT; exec "$@"`, "sh"},
		"with a file open":     {"sh", "-c", `exec 7</dev/null; exec "$@"`, "sh"},
		"with limits":          {"sh", "-c", `umask 027; ulimit -n 200; ulimit -Sc 0; exec "$@"`, "sh"},
		"with a lower limit":   {"sh", "-c", `ulimit -Sn 100; exec "$@"`, "sh"},
		"nicely":               {"nice", "-n", "5"},
		"with signals blocked": helperCommand("block"),
	}
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bare := outputOf(t, slices.Concat(caller, inheritedProbe))
			wrapped := outputOf(t, slices.Concat(caller, helperCommand("execute", inheritedProbe...)))
			if bare != wrapped {
				t.Errorf("got:\n%s\nwant:\n%s", wrapped, bare)
			}
		})
	}
}

// Go's runtime knows this of HUP and INT only.
func TestInheritedIgnored(t *testing.T) {
	for _, names := range []string{"", "HUP", "INT", "TERM", "HUP INT QUIT USR1 PIPE ALRM TERM TSTP WINCH SYS"} {
		caller := []string{"sh", "-c", `for s in $0; do trap '' $s; done; exec "$@"`, names}
		if got := outputOf(t, append(caller, helperCommand("ignored")...)); got != names {
			t.Errorf("got %q, want %q", got, names)
		}
	}
}
