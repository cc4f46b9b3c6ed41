package cmdexec

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/10f93571/retry/task"
)

const shell = "cmd.exe" // never used: needsShell is false

// process is a started command with what it starts. Windows has no signals as Unix knows them: whatever asks the process to end
// ends it.
type process struct {
	cmd    *exec.Cmd
	job    job // 0 where there is none: the process alone is ended then
	exited chan struct{}
}

func (e *Executor) launch(path string, argv []string, env []string, f files, _ string) (*process, error) {
	p := &process{
		cmd: &exec.Cmd{
			Path: path, Args: argv, Dir: e.Dir, Env: env,
			Stdin: f.stdin, Stdout: f.stdout, Stderr: f.stderr,
		},
		exited: make(chan struct{}),
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.job, _ = newJob(p.cmd.Process.Pid) // one that is over already needs none
	go func() {
		_ = p.cmd.Wait() // what it says is in ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) reap() task.Outcome {
	if p.job != 0 {
		p.job.release()
	}
	return task.Outcome{Exit: p.cmd.ProcessState.ExitCode()}
}

func (p *process) signal(sig os.Signal) {
	if task.Stops(sig) {
		p.kill()
	}
}

func (p *process) ask(os.Signal) { p.kill() }

func (p *process) terminate() { p.kill() }

func (p *process) kill() {
	if p.job != 0 {
		p.job.kill()
	}
	_ = p.cmd.Process.Kill()
}

// getsFromTerminal is true for Ctrl-C: the console sends it to every process attached to it.
func (p *process) getsFromTerminal(sig os.Signal) bool { return sig == os.Interrupt }

func (p *process) groupAlive() bool { return false }

// token is empty: nothing survives a killed retry.
func (p *process) token() string { return "" }

// hookShell finds the shell that runs hooks, such as the one that comes with git.
func hookShell() (string, error) { return exec.LookPath("sh") }

func needsShell(error) bool { return false }

func notExecutable(err error) bool {
	const badExeFormat = syscall.Errno(193)
	return errors.Is(err, badExeFormat)
}

// Interactive is false: there are no foreground groups to share.
func Interactive(*os.File) bool { return false }

// saveTerminal has nothing to do: a console is set for each process.
func (p *process) saveTerminal() (restore func()) { return nothing }

// OnTerminal is false, as Interactive is.
func OnTerminal(*os.File) bool { return false }

// InForeground is false, as Interactive is.
func InForeground() bool { return false }
