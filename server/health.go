package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// healthz is GET /healthz: the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]string{"status": "ok", "version": s.Version})
}

// readiness is what /readyz tells: of each part ok, or what is wrong with it.
type readiness struct {
	Ready bool              `json:"ready"`
	Parts map[string]string `json:"parts"`
}

const partOK = "ok"

// readyz is GET /readyz.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	const most = 5 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	answer := readiness{Ready: true, Parts: map[string]string{}}
	note := func(name string, err error) {
		switch {
		case err != nil:
			answer.Ready = false
			answer.Parts[name], _, _ = strings.Cut(err.Error(), "\nhint: ")
		case answer.Parts[name] == "":
			answer.Parts[name] = partOK
		}
	}
	for _, part := range s.Ready {
		note(part.Name, part.Check(ctx))
	}
	if f := s.fault.Load(); f != nil && s.Now().Sub(f.at) < faultFor {
		note("store", f.err)
	} else {
		note("store", nil)
	}
	if s.draining.Load() {
		note("server", errors.New("it ends"))
	} else {
		note("server", nil)
	}
	status := http.StatusOK
	if !answer.Ready {
		w.Header().Set("Retry-After", "5")
		status = http.StatusServiceUnavailable
	}
	return reply(w, status, answer)
}

// metrics is GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.Metrics == nil {
		return s.noSuchPath(r.URL.Path)
	}
	s.Metrics.ServeHTTP(w, r)
	return nil
}

// home is GET /.
func (s *Server) home(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("This is the API of retry " + s.Version + ".\n\n" +
		"  POST /retry-tasks    make a task\n  GET  /retry-tasks    list them\n  GET  /openapi.json   every call\n" +
		"  GET  /metrics        for Prometheus\n  GET  /readyz         which part works\n"))
	return nil
}
