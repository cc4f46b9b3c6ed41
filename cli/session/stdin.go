package session

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// stdin returns what the task's attempts find on their stdin, and what has to be done when the run is over.
func (g *Journal) stdin(t *task.Task, own *os.File, resumed bool, warn func(error)) (stdio.Stdin, func(), error) {
	switch {
	case t.Options.Stdin == task.StdinNull:
		return stdio.NullStdin{}, func() {}, nil
	case t.Options.Stdin == task.StdinReplay && resumed:
		return g.keptStdin(t)
	case t.Options.Stdin == task.StdinReplay:
		source, letGo := stdio.Private(own)
		stdin, done := g.replayedStdin(t, source)
		return stdin, func() { done(); letGo() }, nil
	}
	return &stdio.InheritedStdin{File: own, Consumed: func() {
		warn(errors.New("stdin is a pipe, and what the first attempt read of it is gone\nhint: --stdin replay gives every attempt the same"))
	}}, func() {}, nil
}

// keptStdin is that of a task that is resumed.
func (g *Journal) keptStdin(t *task.Task) (stdio.Stdin, func(), error) {
	file, err := g.Journal.Input(t)
	if err != nil {
		return nil, nil, err
	}
	kept, err := spool.Of(file)
	if err != nil {
		return nil, nil, err
	}
	return stdio.ReplayKept(kept), func() { _ = kept.Close() }, nil
}

// replayedStdin is kept for the other attempts: with a journal from the first byte in a file that goes with the task, so that it
// outlives this process; without one in memory, as far as that is reasonable.
func (g *Journal) replayedStdin(t *task.Task, own *os.File) (stdio.Stdin, func()) {
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

// inputFile is the file that keeps a task's stdin.
type inputFile struct {
	journal *Journal
	task    *task.Task

	mutex   sync.Mutex
	asked   bool     // something was to be kept
	file    *os.File // nil where it does not go with the task
	dropped bool
}

// create makes it; where that is not possible, a file that at least this process can use.
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
		if !errors.Is(err, state.ErrFinished) { // it is of no use any more
			f.journal.warn(fmt.Errorf("a resume will not find the stdin: %w", err))
		}
	}
	return f.journal.temporary()
}

func (f *inputFile) current() (file *os.File, asked bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.file, f.asked
}

// complete says that the file holds everything. Where none could be made, one made now would say that there was nothing.
func (f *inputFile) complete() error {
	if _, asked := f.current(); !asked { // not a byte was written
		file, err := f.create()
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
	}
	if file, _ := f.current(); file != nil {
		return f.journal.Journal.CompleteInput(f.task, file)
	}
	return nil
}

// drop removes the file of a task that has ended. What is being read just now makes no other.
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

// temporary makes a file for what is too much for the memory: beside the journal, or where the system keeps such files.
func (g *Journal) temporary() (*os.File, error) {
	if !g.absent() && g.Journal.HasRoom() {
		if file, err := spool.Temporary(g.Journal.Dir()); err == nil {
			return file, nil
		}
	}
	return spool.Temporary("")
}
