package render

import (
	"io"
	"strings"
	"sync"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// github writes the log of a GitHub Actions job. The results of runs and the warnings are annotations, in place of the lines
// that would say the same: the log shows the text of an annotation too, as "Error: …".
type github struct {
	folds
	log *ownLines
}

// NewGitHub returns the observer for people who read the log of a GitHub Actions job. There is no countdown, since a log keeps
// each step of it. Where summaryFile is not empty, a table of the attempts is appended to it.
func NewGitHub(w io.Writer, verbose bool, summaryFile string) Observer {
	return newGitHub(NewLines(w, nil, nil, verbose), w, summaryFile)
}

func newGitHub(lines Observer, w io.Writer, summaryFile string) Observer {
	log := &ownLines{w: w}
	g := &github{folds{Observer: lines, marks: workflowGroup{}, w: log}, log}
	if summaryFile == "" {
		return g
	}
	return newStepSummary(g, summaryFile)
}

// Started implements runner.Observer.
func (g *github) Started(t *task.Task) {
	g.folds.Started(t)
	g.othersWrite(true)
}

// Ended implements runner.Observer.
func (g *github) Ended(t *task.Task, a task.Attempt) {
	g.folds.Ended(t, a)
	g.othersWrite(a.Decision.Verdict == task.VerdictRetry && t.Options.OnRetry != "")
}

// Finished implements runner.Observer.
func (g *github) Finished(t *task.Task, r runner.Result) {
	g.close(t)
	if text := summary(t, r); text != "" {
		g.annotate(severity(r.Decision.Verdict), g.subject(t)+": "+text+hints(t, r))
	}
	g.othersWrite(t.Options.OnSuccess+t.Options.OnFailure != "")
}

// Warn implements Observer.
func (g *github) Warn(err error) {
	g.annotate("warning", Message(err))
}

// subject names what an annotation is about, since GitHub shows it away from the log too.
func (g *github) subject(t *task.Task) string {
	command := shortened(Title(t))
	if g.shared {
		return ShortID(t.ID) + ": " + command
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
	g.write(workflowCommand(severity, text, "title", "retry"))
}

func (g *github) share() {
	g.folds.share()
	g.othersWrite(true)
}

// othersWrite says whether a command or a hook may be writing from now on; of several tasks, one always may.
func (g *github) othersWrite(yes bool) {
	g.log.setDirty(yes || g.shared)
}

// workflowGroup marks the groups of GitHub Actions.
type workflowGroup struct{}

func (workflowGroup) begin(t *task.Task) string {
	return workflowCommand("group", heading(t))
}

func (workflowGroup) end(*task.Task) string {
	return workflowCommand("endgroup", "")
}

var (
	workflowData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	workflowProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// workflowCommand writes a command for GitHub's runner; the properties are names and values in turn. The escapes are those of
// actions/toolkit, packages/core/src/command.ts.
func workflowCommand(name, data string, properties ...string) string {
	line, separator := "::"+name, " "
	for i := 0; i < len(properties); i += 2 {
		line += separator + properties[i] + "=" + workflowProperty.Replace(properties[i+1])
		separator = ","
	}
	return line + "::" + workflowData.Replace(data) + "\n"
}

// ownLines begins a new line where others write, who may have left theirs unfinished: GitHub overlooks a command in the middle
// of a line, and a group would stay open. Warnings come from any goroutine.
type ownLines struct {
	w     io.Writer
	mutex sync.Mutex
	dirty bool
}

func (l *ownLines) setDirty(yes bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.dirty = yes
}

func (l *ownLines) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.dirty {
		_, err := l.w.Write(append([]byte("\n"), text...))
		return len(text), err
	}
	return l.w.Write(text)
}
