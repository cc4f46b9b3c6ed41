package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
)

// reply writes a value as JSON.
func reply(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err == nil {
		writeLine(w, status, append(body, '\n'))
	}
	return err
}

// writeLine writes a line of JSON.
func writeLine(w http.ResponseWriter, status int, line []byte) {
	header := w.Header()
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(line))}
	w.WriteHeader(status)
	_, _ = w.Write(line) // the client may be gone
}

// tagged is a line of JSON with its ETag.
type tagged struct {
	line []byte
	tag  string
}

func newTagged(value any) (tagged, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return tagged{}, err
	}
	hash := fnv.New64a()
	_, _ = hash.Write(body)
	return tagged{append(body, '\n'), `"` + strconv.FormatUint(hash.Sum64(), 36) + `"`}, nil
}

// reply writes the line, or 304 where the client has it already.
func (t tagged) reply(w http.ResponseWriter, r *http.Request, status int) {
	w.Header()["Etag"] = []string{t.tag}
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && matches(r.Header.Get("If-None-Match"), t.tag) {
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeLine(w, status, t.line)
}

// replyTagged writes a value as JSON with an ETag, or 304 where the client has it already.
func replyTagged(w http.ResponseWriter, r *http.Request, status int, value any) error {
	t, err := newTagged(value)
	if err == nil {
		t.reply(w, r, status)
	}
	return err
}

// mostHeld bounds the bytes of parts of lists that are being written: a client that does not read holds its own for as
// long as a write may take. Parts of at most smallPart do not count.
const (
	mostHeld  = 64 << 20
	smallPart = 64 << 10
)

// held is how many bytes of parts of lists are being written.
type held struct{ bytes atomic.Int64 }

// reply writes a part of a list with an ETag, unless clients hold too many bytes already.
func (h *held) reply(w http.ResponseWriter, r *http.Request, value any) error {
	t, err := newTagged(value)
	if err != nil {
		return err
	}
	if size := int64(len(t.line)); size > smallPart {
		defer h.bytes.Add(-size)
		if h.bytes.Add(size) > mostHeld {
			return problem.Unavailable(time.Second, "too many clients read slowly\nhint: send it again later")
		}
	}
	t.reply(w, r, http.StatusOK)
	return nil
}

// matches reports whether a list of ETags names one. A weak one is the same here: nothing but the bytes is compared.
func matches(list, tag string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "*" || strings.TrimPrefix(item, "W/") == tag {
			return true
		}
	}
	return false
}

// fail answers a request with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch told := s.problem(err); {
	case told != nil:
		problem.Write(w, told)
	case r.Context().Err() != nil: // the client is gone
		problem.Write(w, problem.Unavailable(time.Second, "the request was given up"))
	default:
		s.Warn(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
		problem.Write(w, err)
	}
}

// problem translates the errors of a store; nil where a client is not told.
func (s *Server) problem(err error) *problem.Problem {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p
	}
	if errors.As(err, new(*http.MaxBytesError)) {
		return problem.TooLarge("the body is too large")
	}
	for _, answer := range []struct {
		err error
		as  func(format string, args ...any) *problem.Problem
	}{
		{state.ErrNotFound, problem.NotFound}, {state.ErrFinished, problem.Conflict}, {state.ErrUnfinished, problem.Conflict},
		{state.ErrOwned, problem.Conflict}, {state.ErrNamed, problem.Conflict}, {state.ErrDamaged, problem.Conflict},
		{state.ErrInputDropped, problem.Conflict}, {state.ErrInputLost, problem.Conflict},
		{state.ErrSucceeded, problem.Conflict}, {state.ErrMayBeDone, problem.Conflict}, {state.ErrReply, problem.Conflict},
		{state.ErrNoPolicy, problem.NotFound}, {state.ErrRevision, problem.PreconditionFailed},
	} {
		if errors.Is(err, answer.err) {
			return answer.as("%v", answer.err)
		}
	}
	return s.storeProblem(err)
}

// storeProblem is for a store that cannot be used now. The server is not ready until a write succeeds.
func (s *Server) storeProblem(err error) *problem.Problem {
	for _, kind := range []error{
		state.ErrFull, state.ErrFileLimit, state.ErrReadOnly, state.ErrLocked, state.ErrForbidden, state.ErrNoFiles,
		state.ErrCorrupt, state.ErrMoved, state.ErrNewer, blobs.ErrUnwritable,
	} {
		if !errors.Is(err, kind) {
			continue
		}
		after := 10 * time.Second
		if errors.Is(kind, state.ErrLocked) {
			after = time.Second
		}
		if s.fault.Swap(&fault{kind, s.Now()}) == nil {
			s.Warn(fmt.Errorf("the store cannot be written: %w", err))
		}
		return problem.Unavailable(after, "the store cannot be written: %v\nhint: nothing was made; send it again later",
			kind)
	}
	return nil
}

// fault is a write to the store that failed. /readyz tells the kind alone: anybody may ask, and the error names files.
type fault struct {
	err error
	at  time.Time
}

// faultFor is how long the server is not ready after such a write. It has to become so again by itself: who is not
// ready gets no requests, and so writes nothing.
const faultFor = 15 * time.Second

// written notes that the store could be written.
func (s *Server) written() {
	if s.fault.Load() != nil {
		s.fault.Store(nil)
	}
}

// detached keeps a write going when the client goes away: half of it may be done.
func detached(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }
