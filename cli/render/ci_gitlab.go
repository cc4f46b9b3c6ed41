package render

import (
	"fmt"
	"io"
	"time"

	"github.com/10f93571/retry/task"
)

// NewGitLab returns the observer for people who read the log of a GitLab job, without a countdown too.
func NewGitLab(w io.Writer, verbose bool) Observer {
	return newGitLab(NewLines(w, nil, nil, verbose), w)
}

func newGitLab(lines Observer, w io.Writer) Observer {
	return &folds{Observer: lines, marks: section{}, w: w}
}

// section marks the collapsible sections of GitLab, which knows them anywhere in a line.
type section struct{}

func (section) begin(t *task.Task) string {
	return fmt.Sprintf("\x1b[0Ksection_start:%d:%s%s\r\x1b[0K%s\n", time.Now().Unix(), sectionName(t), sectionOptions(t), heading(t))
}

func (section) end(t *task.Task) string {
	return fmt.Sprintf("\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", time.Now().Unix(), sectionName(t))
}

// sectionName is unique in a job, also where the job resumes the task or runs a command twice.
func sectionName(t *task.Task) string {
	return fmt.Sprintf("retry_%s_%d", ShortID(t.ID), t.AttemptCount)
}

// sectionOptions collapses the attempts in between. People look for what the first wrote, mostly the only one, and for what
// the last wrote before retry gave up; and GitLab has to be told at the start of a section, before anyone knows how it ends.
func sectionOptions(t *task.Task) string {
	if t.AttemptCount == 1 || t.History.Counted+1 == t.Policy.Attempts {
		return ""
	}
	return "[collapsed=true]"
}
