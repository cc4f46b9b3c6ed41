package server

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// shownRequeue is an operation as the API writes it.
type shownRequeue struct {
	RequeueID     string  `json:"requeueId"`
	Status        string  `json:"status"`
	Matched       int     `json:"matched"`
	Requeued      int     `json:"requeued"`
	Skipped       int     `json:"skipped"` // alive again by then, not to be read, or not the client's to run
	RatePerSecond float64 `json:"ratePerSecond"`
	CreatedAt     int64   `json:"createdAt"`
}

func showRequeue(o *state.Operation) shownRequeue {
	return shownRequeue{o.ID, o.Status, o.Matched, o.Requeued, o.Skipped, o.RatePerSecond, o.CreatedAt.UnixMilli()}
}

// createRequeue is POST /requeues.
func (s *Server) createRequeue(w http.ResponseWriter, r *http.Request) error {
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	operation := state.Operation{
		ID: uuid.Must(uuid.NewV7()).String(), Filter: readFilter(o.Object("filter")), Status: requeueRunning,
		RatePerSecond: o.Float("ratePerSecond", usualRate, 0.01, mostRate), CreatedAt: s.Now(),
		Exec: s.mayRun(r),
	}
	dry := o.Bool("dryRun", false)
	if err := o.Finish(); err != nil {
		return err
	}
	groups, err := s.reads.Groups(r.Context(), operation.Filter, math.MaxInt32)
	if err != nil {
		return err
	}
	for _, g := range groups {
		operation.Matched += g.Count
	}
	if dry {
		return reply(w, http.StatusOK, map[string]int{"matched": operation.Matched})
	}
	if err := s.Queue.PutOperation(detached(r), operation); err != nil {
		return err
	}
	s.written()
	answer := showRequeue(&operation)
	s.requeues.start(operation.ID)
	w.Header().Set("Location", "/requeues/"+operation.ID)
	return reply(w, http.StatusAccepted, answer)
}

// readFilter reads which dead letters are meant: by the names that select tasks in a list.
func readFilter(o *problem.Object) state.PageFilter {
	f := state.PageFilter{Statuses: []task.Status{task.Exhausted, task.Failed}}
	if o == nil {
		return f
	}
	f.PolicyID, f.Tag, f.Error = o.String("policyId", ""), o.String("tag", ""), o.String("error", "")
	f.Host = hostOf(o.String("host", ""))
	if o.Has("partition") {
		f.Partition = new(o.String("partition", ""))
	}
	f.Since, f.Until = o.Time("since", time.Time{}), o.Time("until", time.Time{})
	if o.Has("status") {
		f.Statuses = nil
	}
	const most = 10 // more than there are
	for _, name := range o.StringOrList("status", most) {
		status, err := readStatus(name)
		if err == nil && !isDead(status) {
			err = fmt.Errorf("no dead letter is %s\nhint: write EXHAUSTED, FAILED or both", status)
		}
		if err != nil {
			o.Fail("status", err)
		}
		f.Statuses = append(f.Statuses, status)
	}
	return f
}

// requeue returns the operation that a path names.
func (s *Server) requeue(r *http.Request) (*state.Operation, error) {
	id := r.PathValue("requeueId")
	o, err := s.Queue.Operation(r.Context(), id)
	if err == nil && o == nil {
		err = problem.NotFound("there is no requeue %q", text.Shorten(id, 100))
	}
	return o, err
}

// getRequeue is GET /requeues/{requeueId}.
func (s *Server) getRequeue(w http.ResponseWriter, r *http.Request) error {
	o, err := s.requeue(r)
	if err != nil {
		return err
	}
	return replyTagged(w, r, http.StatusOK, showRequeue(o))
}

// listRequeues is GET /requeues: those that run.
func (s *Server) listRequeues(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	running, err := s.reads.Operations(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Requeues []shownRequeue `json:"requeues"`
		Next     *string        `json:"next"`
	}{Requeues: []shownRequeue{}}
	for i := range running {
		answer.Requeues = append(answer.Requeues, showRequeue(&running[i]))
	}
	return reply(w, http.StatusOK, answer)
}

// cancelRequeue is DELETE /requeues/{requeueId}. What was requeued stays so.
func (s *Server) cancelRequeue(w http.ResponseWriter, r *http.Request) error {
	o, err := s.requeue(r)
	switch {
	case err != nil:
		return err
	case o.Exec && !s.mayRun(r):
		return problem.Forbidden("the requeue was made by a client that may run commands" +
			"\nhint: the server needs --allow-exec, and the client a token of scope admin")
	case o.Status == requeueDone:
		return problem.Conflict("the requeue is done")
	}
	s.requeues.cancel(o.ID)
	if o, err = s.requeue(r); err != nil { // with the progress up to its end
		return err
	}
	if o.Status == requeueRunning {
		o.Status = requeueCancelled
		if err := s.Queue.PutOperation(detached(r), *o); err != nil {
			return err
		}
		s.written()
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
