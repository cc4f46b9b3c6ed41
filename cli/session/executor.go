package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// taskRunner is a runner of one task, put together for this process.
type taskRunner struct {
	*runner.Runner
	commands *cmdexec.Executor // of the task's command, and of its hooks
	Close    func()            // call it when the run is over
}

// ExecOptions are what this process gives to the execution of a task.
type ExecOptions struct {
	Group *flags.ProcessGroupFlags // of a command; nil: where its terminal is
	Body  *spool.Spool             // what a request reads from stdin; nil where it was not read
	Quiet bool                     // how far a request has got is not shown

	Stdin    task.StdinMode // of a resumed command: null, or rest for this process's; else what it had
	ownStdin bool           // a resumed command reads this process's stdin, if its own was not kept
	rest     bool           // what an earlier line has left of this process's stdin is wanted
	before   *task.Source   // the stdin of an earlier run of the name that was cut off; nil for none

	// read reads the body of a new task, once it is needed; nil: it was read.
	read func() (*spool.Spool, error)
}

// newTaskRunner puts the parts together. An error says that the task's stdin is lost.
func (p *Host) newTaskRunner(t *task.Task, journal *Journal, lines render.Observer, o ExecOptions,
	resumed bool) (*taskRunner, error) {
	if !resumed && o.read != nil {
		var err error
		if o.Body, err = o.read(); err != nil {
			return nil, err
		}
	}
	if !resumed || o.ownStdin {
		t.Options.Stdout = stdio.DestinationOf(p.Stdout)
	}
	if t.Kind == request.Kind {
		return p.newRequestRunner(t, journal, lines, o, resumed)
	}
	if t.Kind == grpcexec.Kind {
		return p.newCallRunner(t, journal, lines, o, resumed)
	}
	o.rest = p.takesRest
	stdin, done, err := journal.stdin(t, p.Stdin, o, resumed, lines.Warn)
	if err != nil {
		return nil, err
	}
	tail := task.StoredTail
	if t.Policy.Captures() != task.CaptureNone || t.Options.Mask != "" {
		tail = task.ConditionTail // conditions look at more than is kept, and of a secret the end alone might be kept
	}
	commands := p.commands(t, o)
	pipes := &argumentPipes{Stdin: stdin, command: t.Command, warn: lines.Warn}
	if resumed && !o.ownStdin && t.Queue != task.QueueWorker && t.AttemptCount > 0 { // a line has made its pipe anew
		pipes.opened = 1
	}
	commands.Stdin = pipes
	commands.Output = stdio.Output{
		Stdout: p.Stdout, Stderr: p.Stderr, Mode: t.Options.Output, Limit: t.Options.OutputLimit,
		Apart:   p.isWorkers() && t.Policy.Captures() != task.CaptureNone,
		Capture: t.Options.Capture, Tail: tail, Temporary: journal.temporary, BeforeFlush: lines.Clear,
		LimitExceeded: func(t *task.Task, limit int64) {
			lines.Warn(fmt.Errorf("attempt %d has written more than %v: its output is passed on from now on, "+
				"and it will not be tried again\nhint: --output-limit holds more", t.AttemptCount, flags.Size(limit)))
		},
		Cut: func(t *task.Task, written bool) {
			err := fmt.Errorf("what attempt %d has left running has its output open still: "+
				"what it writes from now on is lost"+
				"\nhint: have the command wait for it, or send its output elsewhere", t.AttemptCount)
			if written {
				err = runner.Loss{New: true, Err: err}
			}
			lines.Warn(err)
		},
		HoldFailed: func(t *task.Task, why error) {
			lines.Warn(fmt.Errorf("there is no room to hold the output of attempt %d (%w): it is passed on from now on, "+
				"and it will not be tried again", t.AttemptCount, why))
		},
	}
	run := p.assemble(t, commands, commands, journal, lines, done)
	if shared, ok := stdin.(*stdio.InheritedStdin); ok {
		run.Unsettled = shared.Unsettled
	}
	return run, nil
}

func (p *Host) assemble(t *task.Task, executor runner.Executor, commands *cmdexec.Executor, journal *Journal,
	lines render.Observer, done func()) *taskRunner {
	if t.Options.Ping != "" {
		monitored := &pinger{Observer: lines, host: p, url: t.Options.Ping, lookUp: lookUpIn(environment(p.Environ, t))}
		finish := done
		lines, done = monitored, func() { finish(); monitored.wait() }
	}
	return &taskRunner{
		Runner: &runner.Runner{
			Journal: journal, Executor: executor, Observer: lines, Hooks: cmdexec.Hooks{Executor: commands, Stderr: p.Stderr},
			Random: random(t), Terminal: commands.Terminal, LateStop: awaitStop,
		},
		commands: commands,
		Close:    done,
	}
}

// commands is what runs the processes of a task, without their streams.
func (p *Host) commands(t *task.Task, o ExecOptions) *cmdexec.Executor {
	shared, terminal := sharesGroup(o.Group, p.Stdin)
	return &cmdexec.Executor{
		Env:             environment(p.Environ, t),
		OnTerminal:      proc.InForeground,
		SecondStopKills: time.Second, // timeout(1) and service managers send two signals at once and do not mean to kill
		TerminalDelay:   250 * time.Millisecond,
		SharedGroup:     shared,
		Terminal:        terminal,
	}
}

// sharesGroup reports whether the command stays in retry's process group. On a terminal, prompts and keys such as
// Ctrl-C work only in that group, also for a command whose stdin is not the terminal. It also reports whether retry has
// one.
func sharesGroup(g *flags.ProcessGroupFlags, stdin *os.File) (shares, terminal bool) {
	terminal = proc.OnTerminal(stdin)
	shares = terminal
	if !terminal {
		terminal, shares = proc.Terminal()
	}
	switch {
	case g != nil && g.Foreground:
		return true, terminal
	case g != nil && g.Group:
		return false, terminal
	}
	return shares, terminal
}

// random returns the source of the task's random numbers. With a seed they are the same in a resumed run.
func random(t *task.Task) func() float64 {
	if t.Options.Seed == nil {
		return rand.Float64
	}
	var source *rand.Rand
	attempt := -1
	return func() float64 {
		if attempt != t.AttemptCount {
			attempt = t.AttemptCount
			source = rand.New(rand.NewPCG(*t.Options.Seed, uint64(attempt)))
		}
		return source.Float64()
	}
}

// environment returns this process's variables, changed by those that were kept with the task.
func environment(environ []string, t *task.Task) []string {
	result := slices.Clone(environ)
	for _, kept := range t.Environment {
		name, _, set := strings.Cut(kept, "=")
		result = slices.DeleteFunc(result, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if set {
			result = append(result, kept)
		}
	}
	return result
}

// stdin returns the stdin of the task's attempts, and a function to call when the run is over.
func (g *Journal) stdin(t *task.Task, own *os.File, o ExecOptions, resumed bool,
	warn func(error)) (stdio.Stdin, func(), error) {
	lost := func(err error) { // the line of an attempt that has failed by it says so, too
		_, fails := errors.AsType[*stdio.StdinError](err)
		warn(runner.Loss{Err: err, New: !fails})
	}
	switch {
	case o.Stdin == task.StdinNull:
		t.Options.Stdin = task.StdinNull // a later resume does without, too
	case o.Stdin == task.StdinRest && (t.Options.Stdin == task.StdinReplay || t.Options.Stdin == task.StdinNull):
		t.Options.Stdin = task.StdinAuto // a later resume goes on with this stdin, or refuses
	}
	switch {
	case t.Options.Stdin == task.StdinNull:
		return stdio.NullStdin{}, func() {}, nil
	case o.Stdin == task.StdinRest: // it goes on with another stdin
	case t.Options.Stdin == task.StdinReplay && resumed:
		kept, err := g.keptInput(t)
		if err != nil {
			return nil, nil, err
		}
		stdin := stdio.ReplayKept(kept)
		stdin.Lost = lost
		return stdin, func() { _ = kept.Close() }, nil
	case t.Options.Stdin == task.StdinReplay:
		inherited := &stdio.InheritedStdin{File: own, Rest: o.rest}
		if err := g.continues(t, inherited, o); err != nil {
			return nil, nil, err
		}
		source, err := inherited.Reader()
		if err != nil {
			return nil, nil, fmt.Errorf("stdin: %w", err)
		}
		stdin, done := g.replayedStdin(t, source)
		stdin.Lost = lost
		stdin.Signalled = func(ended time.Time) bool { return g.awaitSignalled(t, ended) }
		stdin.Stopped = func() bool { return g.Stopping != nil && g.Stopping.Err() != nil }
		return stdin, done, nil
	case resumed && !o.ownStdin && hadNothing(t.Options.Source, own):
		return stdio.NullStdin{}, func() {}, nil
	case resumed && !o.ownStdin && !t.Options.Source.Terminal:
		file, err := reopened(t, "resume")
		if err != nil {
			return nil, nil, err
		}
		return &stdio.InheritedStdin{File: file, Known: t.Options.Source}, func() { _ = file.Close() }, nil
	}
	rest := t.Options.Stdin == task.StdinRest
	stdin := &stdio.InheritedStdin{
		File: own, Rest: rest, Lost: lost, Signalled: g.signalled, AwaitSignals: proc.AwaitSignals,
	}
	if rest { // what is left is all that it is about
		o.ownStdin, o.before = false, nil
	}
	if err := g.continues(t, stdin, o); err != nil {
		stdin.Release()
		return nil, nil, err
	}
	return stdin, stdin.Release, nil
}

// hadNothing reports whether a resume finds nothing on stdin. For a terminal it takes this process's stdin only if that
// is one: what comes through a pipe, or stands in a file, is not meant for the command.
func hadNothing(source task.Source, own *os.File) bool {
	return source == (task.Source{}) || source.Terminal && !stdio.IsTerminal(own)
}

// continues notes what the stdin is. A loop in a shell gives every run of a name the same one: a file is read from the
// same place again, and what was read of a pipe is gone.
func (g *Journal) continues(t *task.Task, stdin *stdio.InheritedStdin, o ExecOptions) error {
	before, what := o.before, "an earlier run of "+text.Escape(t.Name)+" was cut off that had this stdin"
	if o.ownStdin { // also where no attempt of it is in the journal: one may have begun while that could not be written
		before, what = &t.Options.Source, "its stdin is this one"
	}
	if before != nil {
		if err := stdin.Continue(*before); errors.Is(err, stdio.ErrRead) {
			hint := "\nhint: --fresh begins anew with the rest"
			if t.Options.Stdin != task.StdinReplay {
				hint += "; --stdin replay keeps what is read"
			}
			return errors.New(what + ", and nobody knows how much of it was read" + hint)
		} else if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		now := stdin.Source()
		if o.ownStdin && now.Inode == before.Inode && now.Offset < before.Offset {
			g.warn(runner.Loss{New: true, Err: fmt.Errorf("stdin is at byte %d, and %s had begun to read it at %d: "+
				"it reads from here\nhint: the next time, retry resume instead of this line reads from there",
				now.Offset, render.ShortID(t.ID), before.Offset)})
		}
	}
	if !g.absent() {
		t.Options.Source = stdin.Source()
	}
	return nil
}

// keptInput returns the stdin, or the request's body, of a task that is resumed.
func (g *Journal) keptInput(t *task.Task) (*spool.Spool, error) {
	file, err := g.Journal.Input(t)
	if err != nil {
		return nil, err
	}
	return spool.Of(file)
}

// keeps reports whether the input that was kept for a task is this one.
func (g *Journal) keeps(t *task.Task, input *spool.Spool) (bool, error) {
	kept, err := g.keptInput(t)
	if err != nil {
		return false, err
	}
	defer func() { _ = kept.Close() }()
	return spool.Equal(kept, input)
}

// replayedStdin keeps stdin for the other attempts: with a journal in a file beside it, so that a resume finds it;
// without one in memory as long as it is small, then in a temporary file.
func (g *Journal) replayedStdin(t *task.Task, own *stdio.Reader) (*stdio.ReplayedStdin, func()) {
	if g.Journal == nil {
		kept := spool.New(spool.MemoryLimit, g.temporary)
		return stdio.Replay(own, kept, nil), func() { _ = kept.Close() }
	}
	file := &inputFile{journal: g, task: t}
	kept := spool.New(0, file.create)
	stdin := stdio.Replay(own, kept, file.complete)
	return stdin, func() {
		if !t.Status.Finished() {
			stdin.Wait() // a resume needs it
		}
		_ = kept.Close()
		file.drop()
	}
}

// inputFile is the file that keeps a task's stdin for its other attempts, and for a resume.
type inputFile struct {
	journal *Journal
	task    *task.Task

	asked   bool       // create was called
	file    *os.File   // nil where it is not kept with the task
	mutex   sync.Mutex // guards dropped, and the file while it is made
	dropped bool
}

// create makes the file; where that fails, it makes one that is lost with this process.
func (f *inputFile) create() (*os.File, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asked = true
	if f.dropped {
		return nil, os.ErrClosed
	}
	if !f.journal.absent() && f.task.Number != 0 {
		file, err := f.journal.keepInput(f.task)
		if err == nil {
			f.file = file
			return file, nil
		}
		if !errors.Is(err, state.ErrFinished) { // nobody resumes a finished task
			f.journal.warn(fmt.Errorf("a resume will not find the stdin: %w", err))
		}
	}
	return f.journal.temporary()
}

// complete marks the file as whole. It is called once, after every create. An empty stdin has a file too; but where no
// file could be made for the first byte, an empty one would say that there was nothing.
func (f *inputFile) complete() error {
	if !f.asked {
		file, err := f.create()
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
	}
	if f.file == nil || !f.journal.outlivesTheWriter(f.task, time.Now()) {
		return nil
	}
	return f.journal.Journal.CompleteInput(f.task, f.file)
}

// drop removes the file of a task that has ended. An attempt that still reads stdin makes no other file.
func (f *inputFile) drop() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.task.Status.Finished() && f.task.Number != 0 {
		f.dropped = true
		f.journal.Journal.DropInput(f.task)
	}
}

// keepInput makes a task's file beside the journal.
func (g *Journal) keepInput(t *task.Task) (*os.File, error) {
	if !g.Journal.HasRoom() {
		return nil, fmt.Errorf("the file system of %s is nearly full", g.Journal.Dir())
	}
	return g.Journal.KeepInput(t)
}

// temporary makes a file for data that is too large for memory: beside the journal, or in the system's directory.
func (g *Journal) temporary() (*os.File, error) {
	if !g.absent() && g.Journal.HasRoom() {
		if file, err := spool.Temporary(g.Journal.Dir()); err == nil {
			return file, nil
		}
	}
	return spool.Temporary("")
}
