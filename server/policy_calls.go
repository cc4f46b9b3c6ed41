package server

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// shownPolicy is a policy as a reply has it.
type shownPolicy struct {
	wire.Policy
	Source source `json:"source"`
	Damage string `json:"damage,omitempty"`
}

func show(p *knownPolicy, view wire.View) shownPolicy {
	shown := shownPolicy{Policy: wire.EncodePolicy(&p.Policy, view), Source: p.source}
	if p.Damage != nil {
		shown.Damage = p.Damage.Error()
	}
	return shown
}

// replyPolicy writes a policy with its revision and the time of its last change.
func replyPolicy(w http.ResponseWriter, r *http.Request, status int, p *knownPolicy, view wire.View) error {
	tag := `"` + p.Revision() + `"`
	w.Header().Set("ETag", tag)
	if !p.UpdatedAt.IsZero() {
		w.Header().Set("Last-Modified", p.UpdatedAt.UTC().Format(http.TimeFormat))
	}
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isRead && matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return reply(w, status, show(p, view))
}

// view reads which spelling of policies is wanted.
func (q *query) view() wire.View {
	if q.choice("view", "numbers", "spec") == "spec" {
		return wire.ViewSpec
	}
	return wire.ViewNumbers
}

// listPolicies is GET /retry-policies. There are few of them: all are told at once.
func (s *Server) listPolicies(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "view")
	if err != nil {
		return err
	}
	view := q.view()
	if q.err != nil {
		return q.err
	}
	all, err := s.allPolicies(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Policies []shownPolicy `json:"policies"`
		Next     *string       `json:"next"`
	}{Policies: []shownPolicy{}}
	for i := range all {
		answer.Policies = append(answer.Policies, show(&all[i], view))
	}
	return replyTagged(w, r, http.StatusOK, answer)
}

// getPolicy is GET /retry-policies/{policyId}.
func (s *Server) getPolicy(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "view")
	if err != nil {
		return err
	}
	view := q.view()
	if q.err != nil {
		return q.err
	}
	p, err := s.policy(r.Context(), r.PathValue("policyId"))
	if err != nil {
		return err
	}
	if p == nil {
		return problem.NotFound("%v", s.unknownPolicy(r.Context(), r.PathValue("policyId")))
	}
	return replyPolicy(w, r, http.StatusOK, p, view)
}

// readPolicy reads the policy of a body. Its name is that of the path, if there is one.
func (s *Server) readPolicy(w http.ResponseWriter, r *http.Request, name string) (p task.Policy, err error) {
	o, err := s.body(w, r)
	if err != nil {
		return p, err
	}
	o.Raw("source") // of a policy that was read and is sent back
	p = wire.ReadPolicy(o, s.Limits.Limits)
	switch {
	case name == "":
		o.Require("policyId")
	case o.Has("policyId") && p.Name != name:
		o.Failf("policyId", "it is not that of the path")
	default:
		p.Name = name
	}
	if err := wire.CheckPolicyID(p.Name); err != nil && (name != "" || o.Has("policyId")) {
		o.Fail("policyId", err)
	}
	return p, o.Finish()
}

// createPolicy is POST /retry-policies.
func (s *Server) createPolicy(w http.ResponseWriter, r *http.Request) error {
	p, err := s.readPolicy(w, r, "")
	if err != nil {
		return err
	}
	for range 2 { // a second time where another client was faster
		known, err := s.policy(r.Context(), p.Name)
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/retry-policies/"+url.PathEscape(p.Name))
		if known != nil && wire.SamePolicy(known.Policy, p) {
			return replyPolicy(w, r, http.StatusOK, known, wire.ViewNumbers)
		}
		if known != nil {
			w.Header().Del("Location")
			return problem.Conflict("there is a policy %q that says something else (%s)"+
				"\nhint: PUT /retry-policies/%s replaces it", p.Name, known.source, url.PathEscape(p.Name))
		}
		stored, err := s.Queue.PutPolicy(detached(r), p, state.NewRevision, s.Now())
		if errors.Is(err, state.ErrRevision) {
			continue
		}
		if err != nil {
			return err
		}
		s.policyChanged()
		return replyPolicy(w, r, http.StatusCreated, &knownPolicy{stored, sourceStore}, wire.ViewNumbers)
	}
	return state.ErrRevision
}

func (s *Server) policyChanged() {
	s.written()
	s.named.forget()
}

// putPolicy is PUT /retry-policies/{policyId}.
func (s *Server) putPolicy(w http.ResponseWriter, r *http.Request) error {
	p, err := s.readPolicy(w, r, r.PathValue("policyId"))
	if err != nil {
		return err
	}
	known, expected, err := s.expectedPolicy(r, p.Name)
	if err != nil {
		return err
	}
	stored, err := s.Queue.PutPolicy(detached(r), p, expected, s.Now())
	if err != nil {
		return err
	}
	s.policyChanged()
	status := http.StatusOK
	if known == nil || known.source == sourceBuiltIn {
		status = http.StatusCreated
	}
	return replyPolicy(w, r, status, &knownPolicy{stored, sourceStore}, wire.ViewNumbers)
}

// deletePolicy is DELETE /retry-policies/{policyId}.
func (s *Server) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("policyId")
	known, expected, err := s.expectedPolicy(r, name)
	switch {
	case err != nil:
		return err
	case known == nil:
		return problem.NotFound("%v", s.unknownPolicy(r.Context(), name))
	case known.source == sourceBuiltIn:
		return problem.Conflict("the policy %q is built in", name)
	}
	if err := s.Queue.DeletePolicy(detached(r), name, expected); err != nil {
		return err
	}
	s.policyChanged()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// expectedPolicy returns the policy that a change is for, and the revision that it has to have in the store by If-Match
// and If-None-Match.
func (s *Server) expectedPolicy(r *http.Request, name string) (known *knownPolicy, expected string, err error) {
	if known, err = s.policy(r.Context(), name); err != nil {
		return nil, "", err
	}
	if known != nil && known.source == sourceConfig {
		return nil, "", problem.Conflict("the policy %q stands in the config file, which holds\nhint: change it there", name)
	}
	condition := r.Header.Get("If-Match")
	changed := problem.PreconditionFailed("the policy %q is another one by now\nhint: GET it, and change that", name)
	switch {
	case r.Header.Get("If-None-Match") == "*" && known != nil:
		return known, "", changed
	case r.Header.Get("If-None-Match") == "*":
		return known, state.NewRevision, nil
	case condition == "":
		return known, "", nil
	case known == nil || !matches(condition, `"`+known.Revision()+`"`):
		return known, "", changed
	case known.source == sourceBuiltIn: // it is not in the store
		return known, state.NewRevision, nil
	}
	return known, known.Revision(), nil
}
