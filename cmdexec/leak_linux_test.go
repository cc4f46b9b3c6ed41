package cmdexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// The system sends the death signal of a parent when the thread that started the child ends, which Go's threads may do.
func TestChildOutlivesThreads(t *testing.T) {
	r := script(t, "echo ready; read -r x; echo $x")
	r.start().expect("ready")
	for range 100 {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		}()
		<-gone
	}
	_, err := io.WriteString(r.stdin, "alive\n")
	ok(t, err)
	r.expect("alive")
	r.check(task.Outcome{})
}

func TestChildDiesWithRetry(t *testing.T) {
	argv := role("execute", "sh", "-c", "trap '' TERM HUP; echo ready; read -r _")
	parent := exec.Command(argv[0], argv[1:]...)
	stdin, err := parent.StdinPipe() // never closed: nothing else may end the child
	ok(t, err)
	defer stdin.Close()
	out, in, err := os.Pipe()
	ok(t, err)
	defer out.Close()
	parent.Stdout = in
	ok(t, parent.Start())
	in.Close()
	ok(t, out.SetReadDeadline(time.Now().Add(patience)))
	_, err = out.Read(make([]byte, len("ready\n")))
	ok(t, err)
	ok(t, parent.Process.Kill())
	if rest, err := io.ReadAll(out); err != nil { // it ends when nobody holds the pipe any more
		t.Errorf("the child lives on after %q: %v", rest, err)
	}
	_ = parent.Wait()
}

func TestLeavesNothingBehind(t *testing.T) {
	missing := fmt.Sprintf("%s/missing", t.TempDir())
	for range 5 { // what is set up only once
		executeOnce(t, "true")
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 200 {
		executeOnce(t, []string{"true", "false", missing, "/"}[i%4])
	}
	if n := openFiles(t); n != files {
		t.Errorf("%d open files, %d before", n, files)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("there is a child left: wait4 = %d, %v", pid, err)
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

func executeOnce(t *testing.T, name string) {
	e := Executor{Stdin: &stdio.InheritedStdin{File: os.Stdin}, Output: stdio.Output{Stdout: os.Stdout, Stderr: os.Stderr}}
	e.Execute(t.Context(), &task.Task{Command: []string{name}}, runner.Call{Number: 1})
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	ok(t, err)
	return len(entries)
}
