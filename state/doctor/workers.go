package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
)

// staleAfter is when a worker should have renewed: the default of --visibility-timeout.
const staleAfter = 30 * time.Second

// workers lists the workers, and says whether one is missing.
func (e *examiner) workers(j *sqlite.Journal) {
	list, err := j.ListWorkers(e.ctx)
	if err != nil {
		e.fail("workers", err)
		return
	}
	backlog, err := j.Backlog(e.ctx, e.now)
	if err != nil {
		e.fail("workers", err)
		return
	}
	targets, err := j.Targets(e.ctx)
	if err != nil {
		e.fail("workers", err)
		return
	}
	live := 0
	for _, w := range list {
		e.worker(w)
		if !w.Gone {
			live++
		}
	}
	queued := text.Count(backlog.Waiting, "task") + " in the queue"
	if backlog.Due > 0 {
		queued += fmt.Sprintf(", %d due, the oldest for %s", backlog.Due, text.Duration(e.now.Sub(backlog.OldestDue)))
	}
	switch {
	case backlog.Waiting > 0 && live == 0:
		e.add("queue", LevelWarning, "run retry worker, or retry serve", "%s, and no worker runs", queued)
	case backlog.Waiting > 0 || live > 0:
		e.add("queue", LevelOK, "", "%s", queued)
	}
	for _, t := range targets {
		if t.Paused {
			e.add("target", LevelWarning, `PUT /targets/`+t.Host+` {"paused": false} lets it go on`, "%s is paused", t.Host)
		}
	}
}

func (e *examiner) worker(w state.Worker) {
	what := fmt.Sprintf("%s has %s, renewed %s ago", w.Name, text.Count(w.Tasks, "attempt"), text.Duration(e.since(w.RenewedAt)))
	switch {
	case w.Gone:
		e.add("worker", LevelWarning, "run retry worker: it goes on with them",
			"%s is dead, and has %s that nobody has taken over", w.Name, text.Count(w.Tasks, "attempt"))
	case e.since(w.RenewedAt) > staleAfter:
		_, pid, _ := strings.Cut(w.Name, ":")
		e.add("worker", LevelWarning, "see whether process "+pid+" is stopped, or waits for a disk", "%s: it stands still", what)
	default:
		e.add("worker", LevelOK, "", "%s", what)
	}
}

// since is never negative, as after the clock was set back.
func (e *examiner) since(t time.Time) time.Duration { return max(0, e.now.Sub(t)) }
