package ci

import (
	"io"
	"strings"
	"sync"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// github writes the log of a GitHub Actions job. The results of runs and the warnings are annotations. They replace the
// lines that would say the same, since the log shows the text of an annotation, too ("Error: …").
type github struct {
	grouped
	log *lineWriter
}

// NewGitHub returns the observer for people who read the log of a GitHub Actions job. There is no countdown, since a
// log would keep each step of it. A table of the attempts is appended to summaryFile, if there is one.
func NewGitHub(w io.Writer, verbose bool, summaryFile string) render.Observer {
	log := &lineWriter{w: w}
	begin := func(t *task.Task) string { return workflowCommand("group", heading(t)) }
	end := func(*task.Task) string { return workflowCommand("endgroup", "") }
	g := &github{grouped{Observer: render.NewLines(w, nil, verbose), begin: begin, end: end, w: log}, log}
	if summaryFile == "" {
		return g
	}
	return &stepSummary{Observer: g, path: summaryFile, attempts: map[string]*attemptRows{}}
}

func (g *github) Started(t *task.Task) {
	if t.Options.OnStart != "" && t.AttemptCount == t.RequeuedAfter+1 {
		g.othersWrite(true)
	}
	g.grouped.Started(t)
	g.othersWrite(true)
}

func (g *github) Ended(t *task.Task, a task.Attempt) {
	g.grouped.Ended(t, a)
	g.othersWrite(a.Decision.Verdict == task.VerdictRetry && t.Options.OnRetry != "")
}

func (g *github) Finished(t *task.Task, r runner.Result) {
	g.close(t)
	if text := render.Summary(t, r); text != "" {
		g.annotate(severity(r.Decision.Verdict), g.subject(t)+": "+text+render.Hints(t, r))
	}
	g.othersWrite(t.Options.OnSuccess+t.Options.OnFailure != "")
}

func (g *github) Warn(err error) {
	g.annotate("warning", render.Message(err))
}

// subject names what an annotation is about: GitHub shows annotations outside the log, too.
func (g *github) subject(t *task.Task) string {
	command := shortened(render.Title(t))
	if g.shared {
		return render.ShortID(t.ID) + ": " + command
	}
	return command
}

func severity(v task.Verdict) string {
	switch v {
	case task.VerdictSucceeded:
		return "notice"
	case task.VerdictExhausted, task.VerdictFailed:
		return "error"
	default:
		return "warning"
	}
}

func (g *github) annotate(severity, text string) {
	g.write(workflowCommand(severity+" title=retry", text))
}

func (g *github) Share() {
	g.grouped.Share()
	g.othersWrite(true)
}

// othersWrite notes whether a command or a hook may write from now on. Of several tasks, one always may.
func (g *github) othersWrite(yes bool) {
	g.log.mutex.Lock()
	defer g.log.mutex.Unlock()
	g.log.dirty = yes || g.shared
}

var workflowData = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

// workflowCommand writes a command for GitHub's runner. The escapes are those of actions/toolkit,
// packages/core/src/command.ts.
func workflowCommand(command, data string) string {
	return "::" + command + "::" + workflowData.Replace(data) + "\n"
}

// lineWriter begins a new line before each text while a command may have left its line unfinished: GitHub does not see
// a workflow command in the middle of a line, and a group would stay open. Warnings come from any goroutine.
type lineWriter struct {
	w     io.Writer
	mutex sync.Mutex
	dirty bool // others may have written
}

func (l *lineWriter) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.dirty {
		_, err := l.w.Write(append([]byte("\n"), text...))
		return len(text), err
	}
	return l.w.Write(text)
}
