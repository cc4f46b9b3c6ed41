package render

import (
	"fmt"
	"io"

	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// CI is the service in whose job log people read the lines of a run.
type CI string

// The services. Auto is the one that the environment names.
const (
	CIAuto   CI = "auto"
	CIGitHub CI = "github"
	CIGitLab CI = "gitlab"
	CINone   CI = "none"
)

// Detect returns the service that auto stands for; the others stand for themselves.
func (c CI) Detect(getenv func(string) string) CI {
	switch {
	case c != CIAuto:
		return c
	case getenv("GITHUB_ACTIONS") == "true":
		return CIGitHub
	case getenv("GITLAB_CI") == "true":
		return CIGitLab
	}
	return CINone
}

// marks are how a service tells where a group of lines begins and ends.
type marks interface {
	begin(t *task.Task) string
	end(t *task.Task) string
}

// folds puts what each attempt writes into a group of the log.
type folds struct {
	Observer
	marks  marks
	w      io.Writer
	open   bool // a group
	shared bool // by several runs, whose groups would interleave: there are none
}

// Started implements runner.Observer.
func (f *folds) Started(t *task.Task) {
	if !f.shared {
		f.write(f.marks.begin(t))
		f.open = true
	}
	f.Observer.Started(t)
}

// Ended implements runner.Observer.
func (f *folds) Ended(t *task.Task, a task.Attempt) {
	f.close(t)
	f.Observer.Ended(t, a)
}

// Finished implements runner.Observer.
func (f *folds) Finished(t *task.Task, r runner.Result) {
	f.close(t)
	f.Observer.Finished(t, r)
}

func (f *folds) share() {
	f.shared = true
	share(f.Observer)
}

func (f *folds) close(t *task.Task) {
	if f.open {
		f.write(f.marks.end(t))
		f.open = false
	}
}

func (f *folds) write(text string) {
	_, _ = fmt.Fprint(f.w, text)
}

// heading is the line that is left of a folded attempt.
func heading(t *task.Task) string {
	return "retry: attempt " + attemptCount(t) + ": " + shortened(Title(t))
}

// maxShown is how many columns of a command or a message a heading or a cell shows.
const maxShown = 200

// shortened cuts escaped text that would drown what stands around it.
func shortened(text string) string {
	return ansi.Truncate(text, maxShown, "…")
}
