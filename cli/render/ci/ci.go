// Package ci writes the lines of a run for people who read them in the job log of GitHub Actions or GitLab: what an
// attempt writes is a group that can be collapsed, and on GitHub the result is an annotation and a row of the step
// summary.
package ci

import (
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Service is the service in whose job log people read the lines of a run.
type Service string

// The services. Auto stands for the one that the environment names.
const (
	Auto   Service = "auto"
	GitHub Service = "github"
	GitLab Service = "gitlab"
	None   Service = "none"
)

// Detect returns the service that auto stands for; the others stand for themselves.
func (s Service) Detect(getenv func(string) string) Service {
	switch {
	case s != Auto:
		return s
	case getenv("GITHUB_ACTIONS") == "true":
		return GitHub
	case getenv("GITLAB_CI") == "true":
		return GitLab
	}
	return None
}

// grouped is an observer that puts what each attempt writes into a group of the log.
type grouped struct {
	render.Observer
	begin, end func(*task.Task) string // the lines around a group
	w          io.Writer
	open       bool // a group has begun
	shared     bool // several runs use it: their groups would interleave, so there are none
}

func (g *grouped) Started(t *task.Task) {
	if !g.shared {
		g.write(g.begin(t))
		g.open = true
	}
	g.Observer.Started(t)
}

func (g *grouped) Ended(t *task.Task, a task.Attempt) {
	g.close(t)
	g.Observer.Ended(t, a)
}

func (g *grouped) Finished(t *task.Task, r runner.Result) {
	g.close(t)
	g.Observer.Finished(t, r)
}

func (g *grouped) Share() {
	g.shared = true
	g.Observer.Share()
}

func (g *grouped) close(t *task.Task) {
	if g.open {
		g.write(g.end(t))
		g.open = false
	}
}

func (g *grouped) write(text string) {
	_, _ = fmt.Fprint(g.w, text)
}

// heading is the line that stays visible of a collapsed attempt.
func heading(t *task.Task) string {
	return "retry: attempt " + render.AttemptCount(t) + ": " + shortened(render.Title(t))
}

// maxShown is how many columns of a command or a message a heading or a cell shows.
const maxShown = 200

// shortened cuts a long escaped text, so that what stands beside it can still be found.
func shortened(text string) string { return ansi.Truncate(text, maxShown, "…") }

// NewGitLab returns the observer for people who read the log of a GitLab job. There is no countdown there either.
func NewGitLab(w io.Writer, verbose bool) render.Observer {
	// GitLab finds the begin and the end of a collapsible section anywhere in a line.
	begin := func(t *task.Task) string {
		return fmt.Sprintf("\x1b[0Ksection_start:%d:%s%s\r\x1b[0K%s\n",
			time.Now().Unix(), sectionName(t), sectionOptions(t), heading(t))
	}
	end := func(t *task.Task) string {
		return fmt.Sprintf("\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", time.Now().Unix(), sectionName(t))
	}
	return &grouped{Observer: render.NewLines(w, nil, verbose), begin: begin, end: end, w: w}
}

// sectionName is unique in a job, also where the job resumes the task or runs a command twice.
func sectionName(t *task.Task) string {
	return fmt.Sprintf("retry_%s_%d", render.ShortID(t.ID), t.AttemptCount)
}

// sectionOptions collapses all attempts but the first and the last that the policy allows: those two are what people
// look for. GitLab wants to know at the start of a section, when nobody knows yet which attempt will be the last.
func sectionOptions(t *task.Task) string {
	if t.AttemptCount == 1 || t.History.Counted+1 == t.Policy.Attempts {
		return ""
	}
	return "[collapsed=true]"
}
