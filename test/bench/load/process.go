package load

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is one that a system started. Its log is kept to be read when it does not do what it should.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed after it was reaped
}

// Start runs a command whose stdout and stderr are appended to the file log.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	defer file.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &Process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in cmd.ProcessState
		close(p.ended)
	}()
	return p, nil
}

// Pid is the process's id; 0 of a nil process.
func (p *Process) Pid() int {
	if p == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Ended is nil as long as the process runs, then an error with the end of its log.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s ended with %v:\n%s", p.cmd.Path, p.cmd.ProcessState, text[max(0, len(text)-1000):])
	default:
		return nil
	}
}

// Kill ends the process as kill -9 does, and reaps it. A nil process has ended.
func (p *Process) Kill() error {
	if p == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the process to end, waits for 10 seconds, and kills it.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	if p.cmd.Process.Signal(syscall.SIGTERM) != nil { // it has ended, or the system has no such signal
		return p.Kill()
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
		return p.Kill()
	}
}
