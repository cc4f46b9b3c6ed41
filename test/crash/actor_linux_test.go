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

// fate says when an actor is killed; the zero value lets it live.
type fate struct {
	step  string        // it kills itself at this step of the journal
	times int           // after it has lived through it so often
	after time.Duration // it is killed this long after its start
}

func (f fate) String() string {
	switch {
	case f.step != "":
		return fmt.Sprintf("dies at %s:%d", f.step, f.times)
	case f.after > 0:
		return fmt.Sprint("is killed after ", f.after)
	}
	return "lives"
}

// actor is one process of retry.
type actor struct {
	role  string
	args  []string
	stdin []byte // of its pipe; nil for none
	fate  fate
}

// end is how an actor ended.
type end struct {
	killed bool // with SIGKILL
	exit   int  // -1 where a signal ended it
	stdout []byte
	stderr string
}

// patience bounds the life of an actor; a sound one needs a fraction of it.
const patience = 2 * time.Minute

// stage is what all actors of a journal have in common.
type stage struct {
	binary string // retry, built with its steps
	dir    string // of the journal, the log, and what the actors say
}

func (s *stage) journal() string { return filepath.Join(s.dir, "state") }

// play runs the actor to its end. number tells it from the others of the journal.
func (s *stage) play(a actor, number int) (end, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, a.args...)
	cmd.Dir = s.dir
	// The race detector would have each child sleep for a second before it exits.
	cmd.Env = append(os.Environ(), childVariable+"="+s.dir, "RETRY_STATE_DIR="+s.journal(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if a.fate.step != "" {
		cmd.Env = append(cmd.Env, fmt.Sprintf("RETRY_CRASH_AT=%s:%d", a.fate.step, a.fate.times))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, whoever runs the tests
	if a.stdin != nil {
		cmd.Stdin = bytes.NewReader(a.stdin)
	}
	// Files: what a killed retry leaves running would hold pipes open.
	stdout, stderr, err := s.streams(number)
	if err != nil {
		return end{}, err
	}
	defer func() { _, _ = stdout.Close(), stderr.Close() }()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return end{}, err
	}
	if a.fate.after > 0 {
		timer := time.AfterFunc(a.fate.after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return end{}, fmt.Errorf("has not ended within %v", patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, syscall.EPIPE) {
		return end{}, err
	}
	return s.ended(cmd.ProcessState, stdout, stderr)
}

func (s *stage) streams(number int) (stdout, stderr *os.File, err error) {
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

func (s *stage) ended(state *os.ProcessState, stdout, stderr *os.File) (e end, err error) {
	status, _ := state.Sys().(syscall.WaitStatus)
	e = end{killed: status.Signaled() && status.Signal() == syscall.SIGKILL, exit: state.ExitCode()}
	if e.stdout, err = os.ReadFile(stdout.Name()); err != nil {
		return e, err
	}
	said, err := os.ReadFile(stderr.Name())
	e.stderr = string(said)
	return e, err
}

// broken is what no actor may say, whoever is killed beside it.
var broken = regexp.MustCompile(`going on without a journal|journal still shows|panic|fatal error|malformed|disk I/O|is locked|goroutine \d`)

// refusals are the ends with 125 that are right where others were at the same task.
var refusals = regexp.MustCompile(`is running|an unfinished task has this name|the task has finished|its stdin was not kept|in a row ended with the death of retry|cancelled by another process`)

const exitInternal = 125

// complaint returns what is wrong with the way the actor ended; empty where it is sound.
func (a actor) complaint(e end) string {
	switch {
	case broken.MatchString(e.stderr):
		return "said: " + strings.TrimSpace(e.stderr)
	case e.killed && a.fate == fate{}:
		return "died of a SIGKILL that was not for it"
	case e.exit == exitInternal && !refusals.MatchString(e.stderr):
		return "failed: " + strings.TrimSpace(e.stderr)
	}
	return ""
}
