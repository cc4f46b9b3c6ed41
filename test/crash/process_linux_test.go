package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// killPlan says when a process is killed; the zero value lets it end by itself.
type killPlan struct {
	step  string        // it kills itself at this step of the journal
	times int           // after it has passed it so often
	after time.Duration // it is killed this long after its start
	term  time.Duration // it is told to end this long after its start, if it lives
}

func (f killPlan) String() string {
	switch {
	case f.step != "":
		return fmt.Sprintf("dies at %s:%d", f.step, f.times)
	case f.after > 0:
		return fmt.Sprint("is killed after ", f.after)
	case f.term > 0:
		return fmt.Sprint("is told to end after ", f.term)
	}
	return "is not killed"
}

// process is one process of retry.
type process struct {
	role  string
	args  []string
	stdin []byte // of its pipe; nil for none
	kill  killPlan
}

// result is how a process ended.
type result struct {
	killed bool // with SIGKILL
	exit   int  // -1 where a signal ended it
	stdout []byte
	stderr string
}

// patience limits the time of a process. A correct one needs a fraction of it.
const patience = 2 * time.Minute

// harness is what all processes of a journal have in common.
type harness struct {
	binary string // retry, built with its steps
	dir    string // of the journal, the log, and the output of the processes
}

func (s *harness) journal() string { return filepath.Join(s.dir, "state") }

// execute runs the process to its end. number is unique for the journal.
func (s *harness) execute(a process, number int) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, a.args...)
	cmd.Dir = s.dir
	// The race detector would have each child sleep for a second before it exits.
	cmd.Env = append(os.Environ(), childVariable+"="+s.dir, "RETRY_STATE_DIR="+s.journal(),
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if a.kill.step != "" {
		cmd.Env = append(cmd.Env, fmt.Sprintf("RETRY_CRASH_AT=%s:%d", a.kill.step, a.kill.times))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, whoever runs the tests
	if a.stdin != nil {
		cmd.Stdin = bytes.NewReader(a.stdin)
	}
	// Files are used, since processes that a killed retry leaves running would hold pipes open.
	stdout, stderr, err := s.streams(number)
	if err != nil {
		return result{}, err
	}
	defer func() { _, _ = stdout.Close(), stderr.Close() }()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	if a.kill.term > 0 {
		timer := time.AfterFunc(a.kill.term, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		defer timer.Stop()
	}
	if a.kill.after > 0 {
		timer := time.AfterFunc(a.kill.after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return result{}, fmt.Errorf("has not ended within %v", patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, syscall.EPIPE) {
		return result{}, err
	}
	return s.result(cmd.ProcessState, stdout, stderr)
}

func (s *harness) streams(number int) (stdout, stderr *os.File, err error) {
	said := filepath.Join(s.dir, "said")
	if err := os.MkdirAll(said, 0o700); err != nil {
		return nil, nil, err
	}
	if stdout, err = os.Create(filepath.Join(said, fmt.Sprint(number, ".out"))); err != nil {
		return nil, nil, err
	}
	if stderr, err = os.Create(filepath.Join(said, fmt.Sprint(number, ".err"))); err != nil {
		_ = stdout.Close()
	}
	return stdout, stderr, err
}

func (s *harness) result(state *os.ProcessState, stdout, stderr *os.File) (e result, err error) {
	status, _ := state.Sys().(syscall.WaitStatus)
	e = result{killed: status.Signaled() && status.Signal() == syscall.SIGKILL, exit: state.ExitCode()}
	if e.stdout, err = os.ReadFile(stdout.Name()); err != nil {
		return e, err
	}
	said, err := os.ReadFile(stderr.Name())
	e.stderr = string(said)
	return e, err
}

// broken matches what no process may print, whichever other is killed.
var broken = regexp.MustCompile(`going on without a journal|journal still shows|panic|fatal error|malformed|disk I/O|` +
	`is locked|beside the journal|cannot be written for now|goroutine \d`)

// refusals match the errors with status 125 that are right while others run the same task.
var refusals = regexp.MustCompile(`is running|runs now|an unfinished task has this name|the task has finished|` +
	`the task has not finished|its stdin was kept until|its stdin was not kept|in a row ended with the death of retry|` +
	`cancelled by another process|it ran inside|lets it succeed once|is queued|another server listens there|` +
	`address already in use`)

const exitInternal = 125

// problem returns an error in the end of the process, or "".
func (a process) problem(e result) string {
	switch {
	case broken.MatchString(e.stderr):
		return "said: " + strings.TrimSpace(e.stderr)
	case e.killed && a.kill.step == "" && a.kill.after == 0:
		return "died of a SIGKILL that was not for it"
	case e.exit == exitInternal && !refusals.MatchString(e.stderr):
		return "failed: " + strings.TrimSpace(e.stderr)
	}
	return ""
}
