package server

import (
	"net/http"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
)

// host returns the host that a path names, as tasks have it.
func host(r *http.Request) (string, error) {
	given := r.PathValue("host")
	host := request.HostOf(given)
	if host == "" || strings.ContainsAny(given, "/@?# ") {
		return "", problem.BadRequest("invalid host %q\nhint: write example.org, or example.org:8443 with an unusual port",
			text.Shorten(given, 100))
	}
	return host, nil
}

// target returns the settings of a host; none is as good as zero values.
func (s *Server) target(r *http.Request, host string) (state.TargetSettings, error) {
	all, err := s.reads.Targets(r.Context())
	for _, t := range all {
		if t.Host == host {
			return t, err
		}
	}
	return state.TargetSettings{Host: host}, err
}

// listTargets is GET /targets.
func (s *Server) listTargets(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	all, err := s.reads.Targets(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Targets []state.TargetSettings `json:"targets"`
		Next    *string                `json:"next"`
	}{Targets: []state.TargetSettings{}}
	for _, t := range all {
		if t != (state.TargetSettings{Host: t.Host}) {
			answer.Targets = append(answer.Targets, t)
		}
	}
	return replyTagged(w, r, http.StatusOK, answer)
}

// getTarget is GET /targets/{host}.
func (s *Server) getTarget(w http.ResponseWriter, r *http.Request) error {
	host, err := host(r)
	if err != nil {
		return err
	}
	t, err := s.target(r, host)
	if err != nil {
		return err
	}
	return replyTagged(w, r, http.StatusOK, t)
}

// putTarget is PUT /targets/{host}. It replaces all settings: one that is left out has no bound.
func (s *Server) putTarget(w http.ResponseWriter, r *http.Request) error {
	host, err := host(r)
	if err != nil {
		return err
	}
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	const mostConcurrent, mostRate = 100_000, 1e6
	t := state.TargetSettings{
		Host: host, Paused: o.Bool("paused", false), MaxConcurrent: int(o.Int("maxConcurrent", 0, 0, mostConcurrent)),
		RatePerSecond: o.Float("ratePerSecond", 0, 0, mostRate),
	}
	if given := o.String("host", host); given != host {
		o.Failf("host", "it is not that of the path")
	}
	if err := o.Finish(); err != nil {
		return err
	}
	if err := s.Queue.PutTarget(detached(r), t); err != nil {
		return err
	}
	s.written()
	return reply(w, http.StatusOK, t)
}
