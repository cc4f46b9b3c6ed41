package server

import (
	"net/http"
	"slices"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// deadGroup is a number of dead letters that ended in the same way. Its host, policyId and error select them again,
// in a list or in a requeue.
type deadGroup struct {
	Host     string `json:"host"`
	PolicyID string `json:"policyId"` // empty: policies of their own
	Error    string `json:"error"`
	Count    int    `json:"count"`
	FirstAt  int64  `json:"firstAt"`
	LastAt   int64  `json:"lastAt"`
	Example  string `json:"example"` // the id of the last
}

// listDead is GET /dead-letters: the largest groups first.
func (s *Server) listDead(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, append(filterNames(), "limit")...)
	if err != nil {
		return err
	}
	f, limit := q.filter(), q.limit()
	if slices.ContainsFunc(f.Statuses, func(s task.Status) bool { return !isDead(s) }) {
		q.failf("status", "dead letters are EXHAUSTED or FAILED")
	}
	if q.err != nil {
		return q.err
	}
	groups, err := s.reads.Groups(r.Context(), f, limit)
	if err != nil {
		return err
	}
	answer := struct {
		Groups []deadGroup `json:"groups"`
		Next   *string     `json:"next"`
	}{Groups: make([]deadGroup, len(groups))}
	for i, g := range groups {
		answer.Groups[i] = shownGroup(g)
	}
	return replyTagged(w, r, http.StatusOK, answer)
}

func shownGroup(g state.Group) deadGroup {
	return deadGroup{g.Host, g.PolicyID, g.Error, g.Count, g.First.UnixMilli(), g.Last.UnixMilli(), g.Example}
}

func isDead(s task.Status) bool { return s == task.Exhausted || s == task.Failed }
