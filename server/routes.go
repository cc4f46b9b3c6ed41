package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
)

// scope is what a client needs for a call.
type scope int

const (
	open scope = iota // anybody may ask: probes of a load balancer
	read
	write
)

// route is a call of the API. Its pattern is that of http.ServeMux.
type route struct {
	pattern string
	scope   scope
	handle  func(http.ResponseWriter, *http.Request) error
}

// calls are all calls of the API.
func (s *Server) calls() []route {
	return []route{
		{"POST /retry-tasks", write, s.createTask},
		{"POST /retry-tasks:batch", write, s.createTasks},
		{"GET /retry-tasks", read, s.listTasks},
		{"GET /retry-tasks/{taskId}", read, s.getTask},
		{"PATCH /retry-tasks/{taskId}", write, s.rescheduleTask},
		{"DELETE /retry-tasks/{taskId}", write, s.cancelTask},
		{"POST /retry-tasks/{taskId}/requeue", write, s.requeueTask},
		{"GET /retry-tasks/{taskId}/attempts", read, s.listAttempts},
		{"GET /dead-letters", read, s.listDead},
		{"GET /requeues", read, s.listRequeues},
		{"POST /requeues", write, s.createRequeue},
		{"GET /requeues/{requeueId}", read, s.getRequeue},
		{"DELETE /requeues/{requeueId}", write, s.cancelRequeue},
		{"GET /retry-policies", read, s.listPolicies},
		{"POST /retry-policies", write, s.createPolicy},
		{"POST /retry-policies:preview", read, s.previewPolicy},
		{"GET /retry-policies/{policyId}", read, s.getPolicy},
		{"PUT /retry-policies/{policyId}", write, s.putPolicy},
		{"DELETE /retry-policies/{policyId}", write, s.deletePolicy},
		{"GET /targets", read, s.listTargets},
		{"GET /targets/{host}", read, s.getTarget},
		{"PUT /targets/{host}", write, s.putTarget},
		{"PUT /blobs/{sha256}", write, s.putBlob},
		{"GET /blobs/{sha256}", read, s.getBlob},
		{"GET /events", read, s.streamEvents},
		{"GET /metrics", read, s.metrics},
		{"GET /openapi.json", open, s.openapi},
		{"GET /healthz", open, s.healthz},
		{"GET /readyz", open, s.readyz},
		{"GET /{$}", open, s.home},
	}
}

// routes returns a mux for all calls.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, call := range s.calls() {
		mux.HandleFunc(call.pattern, func(w http.ResponseWriter, r *http.Request) {
			err := s.authorize(r, call.scope)
			if err == nil {
				err = call.handle(w, r)
			}
			if err != nil {
				s.fail(w, r, err)
			}
		})
	}
	return mux
}

// authorize returns an error where the client may not make a call.
func (s *Server) authorize(r *http.Request, needed scope) error {
	g, err := s.grant(r)
	switch {
	case needed == open:
		return nil
	case err != nil:
		return err
	case needed == read && !g.Read:
		return problem.Forbidden("the token has no scope read")
	case needed == write && !g.Write:
		return problem.Forbidden("the token has no scope write")
	}
	return nil
}

func (s *Server) grant(r *http.Request) (Grant, error) {
	if s.Authorize == nil {
		return Grant{Read: true, Write: true}, nil
	}
	return s.Authorize(r)
}

// serve finds the call of a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if _, pattern := s.mux.Handler(r); pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	allowed := s.allowed(r)
	switch {
	case len(allowed) == 0:
		problem.Write(w, s.noSuchPath(r.URL.Path))
	case r.Method == http.MethodOptions:
		header.Set("Allow", strings.Join(allowed, ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		header.Set("Allow", strings.Join(allowed, ", "))
		problem.Write(w, problem.MethodNotAllowed("%s is no method of %s\nhint: it has %s",
			text.Shorten(r.Method, 20), text.Shorten(r.URL.Path, 100), strings.Join(allowed, ", ")))
	}
}

// allowed returns the methods that a path has.
func (s *Server) allowed(r *http.Request) (methods []string) {
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "" {
			methods = append(methods, method)
		}
	}
	if methods != nil {
		methods = append(methods, http.MethodOptions)
	}
	return methods
}

// noSuchPath names the path that is nearest.
func (s *Server) noSuchPath(path string) error {
	var known []string
	for _, call := range s.calls() {
		_, pattern, _ := strings.Cut(call.pattern, " ")
		if pattern = strings.TrimSuffix(pattern, "{$}"); !slices.Contains(known, pattern) {
			known = append(known, pattern)
		}
	}
	shown := text.Shorten(path, 100)
	likely := slices.DeleteFunc(slices.Clone(known), func(p string) bool {
		return strings.Count(p, "/") != strings.Count(path, "/")
	})
	written := similar(path, known)
	if near := cmp.Or(text.Nearest(written, likely), text.Nearest(written, known)); near != "" {
		return problem.NotFound("there is no %q\nhint: did you mean %s?", shown, near)
	}
	return problem.NotFound("there is no %q\nhint: /openapi.json lists all calls", shown)
}

// similar writes the segments of a path that stand where a pattern has a wildcard as the pattern does, so that ids do
// not count as misspelt.
func similar(path string, patterns []string) string {
	segments := strings.Split(path, "/")
	for _, pattern := range patterns {
		parts := strings.Split(pattern, "/")
		near := len(parts) == len(segments) && len(parts) > 2 &&
			(segments[1] == parts[1] || text.Nearest(segments[1], parts[1:2]) != "")
		if !near {
			continue
		}
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				segments[i] = part
			}
		}
		break
	}
	return strings.Join(segments, "/")
}

// body reads the JSON object of a request. Package access has checked its type.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (*problem.Object, error) {
	return problem.Read(w, r, s.Limits.JSON)
}
