//go:build unix

package cmdexec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// limitCalls counts the calls of Output.LimitExceeded.
type limitCalls struct {
	*testing.T
	limit int64
	calls int
}

func (c *limitCalls) call(_ *task.Task, at int64) {
	c.calls++
	if at != c.limit {
		c.Errorf("limit: got %d, want %d", at, c.limit)
	}
}

func withLimit(t *testing.T, limit int64) (stdio.Output, *limitCalls) {
	calls := &limitCalls{T: t, limit: limit}
	o := heldOutput(t, task.OutputFinal)
	o.Limit, o.LimitExceeded = limit, calls.call
	return o, calls
}

func TestLimitExceeded(t *testing.T) {
	const chunk = 5000
	tests := []struct {
		name  string
		limit int64
		mode  task.OutputMode
		want  int
	}{
		{name: "no limit", mode: task.OutputFinal},
		{name: "just the limit", limit: 4 * chunk, mode: task.OutputFinal},
		{name: "a byte more", limit: 4*chunk - 1, mode: task.OutputFinal, want: 1},
		{name: "from the start", limit: 1, mode: task.OutputFinal, want: 1},
		{name: "in the middle", limit: 2*chunk + 1000, mode: task.OutputFinal, want: 1},
		{name: "success holds everything", limit: 1, mode: task.OutputSuccess},
		{name: "failure holds everything", limit: 1, mode: task.OutputFailure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, calls := withLimit(t, tt.limit)
			o.Mode = tt.mode
			text := bigText[:4*chunk]
			r := script(t, `for i in 1 2; do dd bs=5000 count=1; dd bs=5000 count=1 >&3; done 3>&2 2>/dev/null`).withOutput(o)
			r.withStdin(&stdio.InheritedStdin{File: fileWith(t, text)}).task.Status = task.Pending
			got := r.start().end()
			if calls.calls != tt.want || got.Final != (tt.want > 0) || got.Exit != 0 {
				t.Errorf("got %d calls, final %v, exit %d; want %d calls, exit 0", calls.calls, got.Final, got.Exit,
					tt.want)
			}
			out, err := text[:chunk]+text[2*chunk:3*chunk], text[chunk:2*chunk]+text[3*chunk:]
			if tt.want == 0 {
				out, err = "", "" // held, then dropped, since another attempt follows
			}
			checkText(t, "stdout", contents(t, o.Stdout), out)
			checkText(t, "stderr", contents(t, o.Stderr), err)
		})
	}
}

// Much output on both streams is passed on from the file, in order, each byte once, while the command runs.
func TestLimitExceededByMuch(t *testing.T) {
	o, calls := withLimit(t, 3<<20)
	numbers := numbered(300_000)
	r := script(t, `seq 300000 & seq 300000 >&2; wait`).withOutput(o)
	r.task.Status = task.Pending
	if got := r.start().end(); !got.Final || calls.calls != 1 {
		t.Errorf("got final %v, %d calls; want true, 1", got.Final, calls.calls)
	}
	checkText(t, "stdout", contents(t, o.Stdout), numbers)
	checkText(t, "stderr", contents(t, o.Stderr), numbers)
}

func numbered(n int) string {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(strconv.Itoa(i+1) + "\n")
	}
	return b.String()
}

// Above the limit, output is passed on as it comes.
func TestOutputAboveTheLimitIsForwarded(t *testing.T) {
	r := script(t, `echo one; echo two; read -r x; echo "$x"`)
	called := make(chan int64, 10)
	r.executor.Output.Mode, r.executor.Output.Limit = task.OutputFinal, 7
	r.executor.Output.LimitExceeded = func(_ *task.Task, at int64) { called <- at }
	r.task.Status = task.Pending
	r.start().expect("one", "two")
	writeText(t, r.stdin, "three\n")
	r.expect("three")
	r.check(task.Outcome{Final: true, Stdout: "one\ntwo\nthree\n"})
	if at := <-called; at != 7 || len(called) > 0 {
		t.Errorf("got limit %d and %d more calls, want 7 and none", at, len(called))
	}
}

// If there is no room to hold the output, the command goes on. Its output is passed on completely, or the loss is
// reported, unless the output would be dropped anyhow. A part of it is never passed on as the output of a success.
func TestNoRoomForHeldOutput(t *testing.T) {
	tests := []struct {
		mode   task.OutputMode
		status task.Status
		lost   bool
		passed int
	}{
		{mode: task.OutputFinal, status: task.Failed, passed: 3_000_000},
		{mode: task.OutputSuccess, status: task.Succeeded, lost: true},
		{mode: task.OutputSuccess, status: task.Failed},
		{mode: task.OutputFailure, status: task.Failed, lost: true, passed: spool.MemoryLimit},
		{mode: task.OutputFailure, status: task.Succeeded},
	}
	for _, tt := range tests {
		for _, redirection := range []string{"", " >&2"} {
			t.Run(fmt.Sprint(tt.mode, " ", tt.status, redirection), func(t *testing.T) {
				o, forwarded := heldOutput(t, tt.mode), 0
				o.Temporary, o.HoldFailed = noFile, func(*task.Task, error) { forwarded++ }
				r := script(t, "head -c 3000000 /dev/zero"+redirection+" || exit 9; exit 3").withOutput(o)
				r.task.Status = tt.status
				final := tt.mode == task.OutputFinal
				if got := r.start().end(); got.Exit != 3 || got.Final != final || (forwarded == 1) != final {
					t.Errorf("got %+v, forwarded %d times; want exit 3, and once for final", got, forwarded)
				}
				if lost := strings.Contains(fmt.Sprint(r.lost), "no space left on device"); lost != tt.lost {
					t.Errorf("flush: got error %v, want one: %v", r.lost, tt.lost)
				}
				passed := len(contents(t, o.Stdout) + contents(t, o.Stderr))
				if passed > tt.passed || (passed < tt.passed && tt.mode != task.OutputFailure) {
					t.Errorf("passed on: got %d bytes, want %d", passed, tt.passed)
				}
			})
		}
	}
}

// An attempt whose output fits is not affected by the one before.
func TestRoomForTheNextAttempt(t *testing.T) {
	o := heldOutput(t, task.OutputFinal)
	o.Mode, o.Temporary = task.OutputFailure, noFile
	r := script(t, "head -c $((3000000 / RETRY_ATTEMPT)) /dev/zero").withOutput(o)
	for _, n := range []int{1, 30} {
		r.executor.Execute(t.Context(), &r.task, runner.Call{Number: n})
		r.task.Status = task.Exhausted
		_, err := r.executor.Flush(&r.task, nil)
		if (err == nil) != (n == 30) {
			t.Errorf("%d bytes: got error %v, want one: %v", 3000000/n, err, n == 1)
		}
	}
}

// fillScripts write more than retry can pass on while nobody reads, and no more than retry and the pipes hold together.
var fillScripts = map[string]string{
	"stdout":     "head -c 100000 /dev/zero",
	"stderr too": "head -c 100000 /dev/zero >&2; head -c 100000 /dev/zero",
}

// A signal ends an attempt that waits for a reader.
func TestSlowReader(t *testing.T) {
	tests := map[string]struct {
		more string
		wait func(r *rig, marker string)
		want task.Outcome
	}{
		"that the command waits for": {
			more: `; : >"$1"; head -c 1000000 /dev/zero`, wait: (*rig).awaitFile,
			want: task.Outcome{Exit: 143, Signal: "SIGTERM", Stop: syscall.SIGTERM},
		},
		"that retry waits for": {
			wait: func(r *rig, _ string) { r.endAndReap() }, want: task.Outcome{Stop: syscall.SIGTERM},
		},
	}
	for name, tt := range tests {
		for streams, code := range fillScripts {
			for _, limit := range []int64{0, 70_000} { // 0: captured; 70,000: held until the limit is exceeded
				t.Run(fmt.Sprintf("%s, %s, limit %d", name, streams, limit), func(t *testing.T) {
					marker := filepath.Join(t.TempDir(), "marker")
					r := script(t, "echo $$; "+code+tt.more, marker)
					_, r.executor.Output.Stderr = pipe(t)
					r.executor.Output.Capture = task.CaptureBoth
					exceeded := make(chan struct{})
					if limit > 0 {
						r.executor.Output.Mode, r.executor.Output.Limit = task.OutputFinal, limit
						r.executor.Output.LimitExceeded = func(*task.Task, int64) { close(exceeded) }
					} else {
						close(exceeded)
					}
					r.start()
					receive(t, exceeded)
					tt.wait(r, marker)
					r.send(syscall.SIGWINCH, syscall.SIGTERM)
					got := r.end()
					want := tt.want
					want.Final = limit > 0
					want.Stdout, want.Stderr, want.Duration, want.StdinRead = got.Stdout, got.Stderr, got.Duration, got.StdinRead
					want.GroupLeft = got.GroupLeft // what the script runs may end a moment later
					if got != want {
						t.Errorf("got  %+v\nwant %+v", got, want)
					}
					if !errors.Is(r.lost, task.ErrStopped) || r.stopped != nil {
						t.Errorf("flush: got %v, %v; want error %v", r.stopped, r.lost, task.ErrStopped)
					}
				})
			}
		}
	}
}

// awaitFile waits until a file exists.
func (r *rig) awaitFile(file string) {
	r.Helper()
	testkit.Eventually(r.T, file+" appears", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// A signal also ends Flush while it waits for a reader.
func TestSlowReaderOfHeldOutput(t *testing.T) {
	for _, code := range heldScripts {
		r := script(t, code+"; exit 3")
		r.executor.Output.Mode, r.executor.Output.Temporary, r.task.Status = task.OutputFinal, temporary(t), task.Failed
		r.start()
		expectText(t, r.stdout, "\x00") // Flush has begun
		r.send(syscall.SIGWINCH, syscall.SIGHUP)
		if got := r.end(); got.Exit != 3 || got.Stop != nil {
			t.Errorf("outcome %+v", got)
		}
		if !errors.Is(r.lost, task.ErrStopped) || r.stopped != syscall.SIGHUP {
			t.Errorf("flush: got %v, %v; want error %v", r.stopped, r.lost, task.ErrStopped)
		}
	}
}

// A slow reader gets everything.
func TestSlowReaderIsWaitedFor(t *testing.T) {
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		r := script(t, "cat; exit 3").withStdin(stdio.ReplayKept(spoolWith(t, bigText)))
		r.executor.Output.Mode, r.executor.Output.Capture, r.task.Status = mode, task.CaptureBoth, task.Failed
		r.start()
		got, err := io.ReadAll(iotest.OneByteReader(r.stdout))
		testkit.Must(t, err)
		checkText(t, "passed on", string(got), bigText)
	}
}

func TestOutputOfACommandThatCannotStart(t *testing.T) {
	for _, mode := range outputModes {
		r := newRig(t, "/no/such/command").withOutput(heldOutput(t, mode))
		r.task.Status = task.Failed
		if o := r.start().end(); o.Error != task.ErrorNotFound || r.lost != nil {
			t.Errorf("%s: got %+v, error %v; want %q", mode, o, r.lost, task.ErrorNotFound)
		}
	}
}
