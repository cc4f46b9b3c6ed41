package cmdexec

import (
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// A file that takes so many bytes and no more, as on a full disk.
func TestReplayOnAFullDisk(t *testing.T) {
	tests := map[string]struct{ memory, room int }{
		"no room at all":            {0, 0},
		"room for the first bytes":  {0, 100_000},
		"none for what memory held": {100_000, 70_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kept := spool.New(tt.memory, func() (*os.File, error) { return sealed(t, tt.room), nil })
			checkWithoutRoom(t, kept, notKept+"write spool: operation not permitted")
		})
	}
}

// sealed is a file that cannot grow over size.
func sealed(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("spool", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	ok(t, err)
	ok(t, unix.Ftruncate(fd, int64(size)))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	ok(t, err)
	file := os.NewFile(uintptr(fd), "spool")
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// failing is a terminal that gives text. When cut is called, reading it fails with EIO.
func failing(t *testing.T, text string) (read *os.File, cut func()) {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _, _ = master.Close(), terminal.Close() })
	say(t, terminal, text)
	return master, func() { ok(t, terminal.Close()) }
}

// What stdin could not give makes the end of the command worthless, however it ends. It is not tried again.
func TestReplayOfASourceThatFails(t *testing.T) {
	const brokenOff = "read stdin: read /dev/ptmx: input/output error"
	read, cut := failing(t, "one ")
	var done completion
	stdin := stdio.Replay(read, memory(t), done.call)
	r := script(t, "cat; exit 75").with(stdin).start()
	take(t, r.stdout, "one ")
	cut()
	r.check(lostStdin(brokenOff))
	for _, code := range []string{"cat", "cat; exit 75"} {
		r := script(t, code).with(stdin)
		if got, _ := r.run(); got != "one " {
			t.Errorf("a later attempt read %q", got)
		}
		r.check(lostStdin(brokenOff))
	}
	done.check(t, stdin, 0)
}

// Somebody who wants to stop is heard all the same.
func TestReplayOfASourceThatFailsBesideASignal(t *testing.T) {
	read, cut := failing(t, "one ")
	r := script(t, "trap 'cat; exit 9' TERM"+untilStopped).with(stdio.Replay(read, memory(t), nil)).start()
	r.expect("ready")
	r.send(syscall.SIGTERM)
	take(t, r.stdout, "one ")
	cut()
	if o := r.end(); o.Stop != syscall.SIGTERM || o.Error != task.ErrorStart {
		t.Errorf("outcome %+v", o)
	}
}

// TestStreamsLeaveNothingBehind is TestLeavesNothingBehind for everything that stands between a command and its streams.
func TestStreamsLeaveNothingBehind(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes files that are lost
	read, write := source(t)                         // silent: the feed of each attempt waits
	e := Executor{Stdin: stdio.Replay(read, memory(t), nil)}
	attempt := func(i int) {
		e.Output = heldOutput(t, task.OutputFinal)
		tk := task.Task{Command: []string{"sh", "-c", []string{"exit", "read -r x", "head -c 2000000 /dev/zero", "kill -9 $$"}[i%4]}}
		if i%3 == 0 {
			tk.Command = []string{[]string{"/no/such/command", "/"}[i%2]}
		}
		tk.Status = []task.Status{task.Pending, task.Failed}[i%2]
		if i%4 == 1 && i%3 != 0 {
			say(t, write, "a line\n")
		}
		e.Execute(t.Context(), &tk, runner.Call{Number: 1})
		_, err := e.Release(&tk, nil)
		ok(t, err)
		_, _ = e.Output.Stdout.Close(), e.Output.Stderr.Close()
	}
	for i := range 12 { // what is set up only once
		attempt(i)
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 60 {
		attempt(i)
	}
	if n := openFiles(t); n != files {
		t.Errorf("%d open files, %d before", n, files)
	}
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// Each later attempt has a descriptor of its own for a file.
func TestFileStdinLeavesNothingBehind(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	stdin := &stdio.InheritedStdin{File: fileWith(t, fourLines)}
	gets(t, stdin, firstLine, "one\n")
	files := openFiles(t)
	for _, command := range []string{"true", "false", "/no/such/command", "/"} {
		e := Executor{Stdin: stdin}
		e.Execute(t.Context(), &task.Task{Command: []string{command}}, runner.Call{Number: 2})
	}
	if n := openFiles(t); n != files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

// A command need not read what is kept in a file: nobody waits then for room in its pipe.
func TestFeedFromAFileEnds(t *testing.T) {
	kept := onDisk(t)
	say(t, kept, big)
	stdin := stdio.ReplayKept(kept)
	goroutines := runtime.NumGoroutine()
	for range 10 {
		gets(t, stdin, "exec true", "")
		gets(t, stdin, "head -c 1", big[:1])
		gets(t, stdin, "cat", big)
	}
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
}
