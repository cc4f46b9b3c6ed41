package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// find returns the task that a path names. A call that changes the task does not wait for its turn to read: it looks
// again after the change, and must not tell then that nothing was done.
func (s *Server) find(r *http.Request) (*task.Task, error) {
	id, look := r.PathValue("taskId"), s.Queue.Find
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		look = s.reads.Find
	}
	t, err := look(r.Context(), id)
	if errors.Is(err, state.ErrNotFound) {
		return nil, s.missing(id)
	}
	return t, err
}

// missing is 410 for an id that is older than what the store keeps, and 404 for any other. An id of version 7 begins
// with the time at which it was made.
func (s *Server) missing(id string) error {
	shown := text.Shorten(id, 100)
	parsed, err := uuid.Parse(id)
	if err == nil && parsed.Version() == 7 && s.Retention > 0 {
		if seconds, nanoseconds := parsed.Time().UnixTime(); s.Now().Sub(time.Unix(seconds, nanoseconds)) > s.Retention {
			return problem.Gone("task %s is older than what is kept, which is %s", shown, text.FormatDuration(s.Retention))
		}
	}
	if err != nil {
		return problem.NotFound("there is no task %q\nhint: an id looks like 0198c2f0-5d3a-7b7e-9a55-3f2d1c0b9a87", shown)
	}
	return problem.NotFound("there is no task %s", shown)
}

// getTask is GET /retry-tasks/{taskId}.
func (s *Server) getTask(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "view")
	if err != nil {
		return err
	}
	full := q.choice("view", "short", "full") == "full"
	if err := q.err; err != nil {
		return err
	}
	t, err := s.find(r)
	if err != nil {
		return err
	}
	return replyTagged(w, r, http.StatusOK, s.shown(r, t, full))
}

// rescheduleTask is PATCH /retry-tasks/{taskId}.
func (s *Server) rescheduleTask(w http.ResponseWriter, r *http.Request) error {
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	o.Require("nextAttemptAt")
	due := o.Time("nextAttemptAt", s.Now())
	if err := o.Finish(); err != nil {
		return err
	}
	t, err := s.change(r)
	if err != nil {
		return err
	}
	waits, err := s.Queue.Reschedule(detached(r), t.Number, due)
	if err != nil {
		return err
	}
	s.written()
	if t, err = s.find(r); err != nil {
		return err
	}
	if !waits {
		return problem.Conflict("the task is %s, and only one that is %s has a next attempt", t.Status, task.Pending)
	}
	return replyTagged(w, r, http.StatusOK, s.shown(r, t, false))
}

// cancelTask is DELETE /retry-tasks/{taskId}.
func (s *Server) cancelTask(w http.ResponseWriter, r *http.Request) error {
	t, err := s.change(r)
	if err != nil {
		return err
	}
	before, err := s.Queue.Cancel(detached(r), t.Number, s.Now())
	switch {
	case errors.Is(err, state.ErrFinished) && before == task.Cancelled:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.Is(err, state.ErrFinished):
		return problem.Conflict("the task is %s already", before)
	case err != nil:
		return err
	}
	s.written()
	if s.Stop != nil {
		if err := s.Stop(detached(r), t); err != nil {
			s.Warn(fmt.Errorf("stop what runs of %s: %w", t.ID, err))
		}
	}
	if before != task.InFlight {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if t, err = s.find(r); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, s.shown(r, t, false))
}

// requeueTask is POST /retry-tasks/{taskId}/requeue.
func (s *Server) requeueTask(w http.ResponseWriter, r *http.Request) error {
	t, err := s.change(r)
	if err != nil {
		return err
	}
	if err := s.Queue.Requeue(detached(r), t.Number, s.Now()); err != nil {
		if errors.Is(err, state.ErrUnfinished) {
			return problem.Conflict("the task has not finished\nhint: PATCH its nextAttemptAt, or DELETE it first")
		}
		return err
	}
	s.written()
	if t, err = s.find(r); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, s.shown(r, t, false))
}

// listAttempts is GET /retry-tasks/{taskId}/attempts.
func (s *Server) listAttempts(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit := q.limit()
	after := q.cursor(r.PathValue("taskId"))
	if q.err != nil {
		return q.err
	}
	t, err := s.find(r)
	if err != nil {
		return err
	}
	attempts, err := s.reads.AttemptsAfter(r.Context(), t.Number, int(after), limit+1)
	if err != nil {
		return err
	}
	answer := struct {
		Attempts []wire.Attempt `json:"attempts"`
		Next     *string        `json:"next"`
	}{Attempts: []wire.Attempt{}}
	if limit = fitting(attempts, limit); len(attempts) > limit {
		attempts = attempts[:limit]
		answer.Next = q.next(w, r, int64(attempts[limit-1].Number), r.PathValue("taskId"))
	}
	hidden := !s.mayRun(r)
	for _, a := range attempts {
		w := wire.EncodeAttempt(t, a)
		if hidden {
			hideOutput(t, &w)
		}
		answer.Attempts = append(answer.Attempts, w)
	}
	return s.held.reply(w, r, answer)
}

// fitting returns how many attempts a part of a list has, by the output that is kept of them: at least one.
func fitting(attempts []task.Attempt, limit int) int {
	size := 0
	for i, a := range attempts {
		if size += len(a.Outcome.Stdout) + len(a.Outcome.Stderr); size > largestPart {
			return min(i+1, limit)
		}
	}
	return limit
}
