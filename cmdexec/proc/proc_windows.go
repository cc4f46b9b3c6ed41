package proc

import (
	"cmp"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/10f93571/retry/task"
)

// Process is a started command with everything that it starts. Windows has no signals as Unix knows them: whatever asks
// the process to end kills it.
type Process struct {
	Ended chan struct{} // closed when the process has ended

	cmd *exec.Cmd
	job job // 0 if there is none: then only the process itself can be killed
}

// Start starts the process.
func (c *Command) Start() (*Process, error) {
	p := &Process{
		Ended: make(chan struct{}),
		cmd: &exec.Cmd{
			Path: c.Path, Args: c.Argv, Dir: c.Dir, Env: c.Env,
			Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		},
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.job, _ = newJob(p.cmd.Process.Pid) // fails for a process that has already ended, which needs none
	go func() {
		_ = p.cmd.Wait() // Reap reads ProcessState
		close(p.Ended)
	}()
	return p, nil
}

// Reap returns how the process ended.
func (p *Process) Reap() task.Outcome {
	if p.job != 0 {
		p.job.release()
	}
	return task.Outcome{Exit: p.cmd.ProcessState.ExitCode()}
}

// Target is of no use here.
func (p *Process) Target() int { return 0 }

// Signal kills if the signal asks to end.
func (p *Process) Signal(sig os.Signal) {
	if task.Stops(sig) {
		p.Kill()
	}
}

// Stop kills.
func (p *Process) Stop(os.Signal) { p.Kill() }

// Terminate kills.
func (p *Process) Terminate(string) { p.Kill() }

// Kill kills everything that the process has started.
func (p *Process) Kill() {
	if p.job != 0 {
		p.job.kill()
	}
	_ = p.cmd.Process.Kill()
}

// GroupAlive is false: the job is killed at once.
func (p *Process) GroupAlive() bool { return false }

// LeftGroup is false: the job is killed at once.
func (p *Process) LeftGroup() bool { return false }

// GetsFromTerminal is true for Ctrl-C: the console sends it to every process attached to it.
func (p *Process) GetsFromTerminal(sig os.Signal) bool { return sig == os.Interrupt }

// SaveTerminal does nothing: each process sets the console for itself.
func (p *Process) SaveTerminal() (restore func()) { return nothing }

// Token is empty: no process survives a killed retry.
func (p *Process) Token() string { return "" }

// NothingLeft is the token of an attempt whose processes have all ended.
const NothingLeft = ""

// AssumeDead returns the token as it is: it is empty.
func AssumeDead(process string) string { return process }

// job is a job object, which contains everything that its processes start. When retry is killed, the system closes the
// last handle to the job, and that kills the job.
type job windows.Handle

// newJob puts a process into a job of its own. What the process has started before is not in it.
func newJob(pid int) (job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	j := job(handle)
	if err := cmp.Or(j.limit(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE), j.add(pid)); err != nil {
		j.close()
		return 0, err
	}
	return j, nil
}

func (j job) add(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	return windows.AssignProcessToJobObject(windows.Handle(j), process)
}

func (j job) limit(flags uint32) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = flags
	_, err := windows.SetInformationJobObject(windows.Handle(j), windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// release lets the rest of the job run on, as a daemon does.
func (j job) release() {
	_ = j.limit(0)
	j.close()
}

func (j job) kill() { _ = windows.TerminateJobObject(windows.Handle(j), 1) }

func (j job) close() { _ = windows.CloseHandle(windows.Handle(j)) }

// Find finds nothing: a killed retry takes its processes with it.
func (Survivors) Find(*task.Task, task.Attempt) (string, error) { return "", nil }

// FindUnrecorded finds nothing, for the same reason.
func (Survivors) FindUnrecorded(*task.Task) (string, error) { return "", nil }

// ContainerOf is not known.
func ContainerOf(string) string { return "" }

// Signal implements runner.Survivors.
func (Survivors) Signal(*task.Task, task.Attempt, os.Signal) {}

// Interactive is false: there are no foreground groups.
func Interactive(*os.File) bool { return false }

// OnTerminal is false, as Interactive is.
func OnTerminal(*os.File) bool { return false }

// InForeground is false, as Interactive is.
func InForeground() bool { return false }

// Terminal reports none: there are no signals of terminals.
func Terminal() (has, foreground bool) { return false, false }

// InheritedIgnored reports whether the process was started with the signal ignored.
func InheritedIgnored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// DieOf returns: the caller exits with a status instead.
func DieOf(syscall.Signal) {}

// ReapAdopted does nothing: the system gives nobody's children to others.
func ReapAdopted() {}

// Boot is empty: the system has no name for it.
func Boot() string { return "" }

// HaveOpen is not known.
func HaveOpen(os.FileInfo) bool { return false }

// outlived returns none: there are no such signals.
func outlived() []syscall.Signal { return nil }

// isContinue is false for the same reason.
func isContinue(os.Signal) bool { return false }

// askSignal is none: nothing has threads of one process stand still here while others go on.
const askSignal = syscall.Signal(0)

func ask() error { return nil }

// realTime returns none for the same reason.
func realTime() []syscall.Signal { return nil }
