package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// createTask is POST /retry-tasks.
func (s *Server) createTask(w http.ResponseWriter, r *http.Request) error {
	h, err := s.taskHeader(r)
	if err != nil {
		return err
	}
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	if o.Has("idempotencyKey") && h.Key != "" && o.String("idempotencyKey", "") != h.Key {
		return problem.BadRequest("the header Idempotency-Key and the field idempotencyKey differ\nhint: give one of them")
	}
	t := s.decoder.New(o, h)
	s.checkBlob(o, t)
	if err := o.Finish(); err != nil {
		return err
	}
	added, err := s.add(r, []*task.Task{t})
	if err != nil {
		return s.addProblem(err, nil, "")
	}
	w.Header()["Location"] = []string{"/retry-tasks/" + added[0].Task.ID}
	status := http.StatusCreated
	if added[0].Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
		status = http.StatusOK
	}
	return replyTagged(w, r, status, s.shown(r, added[0].Task, false))
}

// createTasks is POST /retry-tasks:batch.
func (s *Server) createTasks(w http.ResponseWriter, r *http.Request) error {
	h, err := s.taskHeader(r)
	if err != nil {
		return err
	}
	if h.Key != "" {
		return problem.BadRequest("the header Idempotency-Key is for one task\nhint: give each task an idempotencyKey")
	}
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	o.Require("tasks")
	list := o.Objects("tasks", s.Limits.Batch)
	if len(list) == 0 && !o.Failed() {
		o.Failf("tasks", "the list is empty")
	}
	tasks := make([]*task.Task, 0, len(list))
	for _, one := range list {
		if one != nil {
			t := s.decoder.New(one, h)
			s.checkBlob(one, t)
			tasks = append(tasks, t)
		}
	}
	if err := o.Finish(); err != nil {
		return err
	}
	added, err := s.add(r, tasks)
	if err != nil {
		return s.addProblem(err, tasks, "/tasks/")
	}
	answer := struct {
		Tasks []wire.Task `json:"tasks"`
	}{make([]wire.Task, len(added))}
	status := http.StatusOK
	for i, a := range added {
		answer.Tasks[i] = s.shown(r, a.Task, false)
		if !a.Replayed {
			status = http.StatusCreated
		}
	}
	if status == http.StatusOK {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return reply(w, status, answer)
}

// taskHeader returns what the headers say about a task.
func (s *Server) taskHeader(r *http.Request) (h wire.Header, err error) {
	if keys := r.Header.Values(request.KeyHeader); len(keys) > 1 {
		return h, problem.BadRequest("there are %d headers Idempotency-Key", len(keys))
	} else if len(keys) == 1 {
		h.Key = unquoted(keys[0])
		if err := wire.CheckKey(h.Key, s.keyLimit()); err != nil || h.Key == "" {
			return h, problem.BadRequest("invalid Idempotency-Key: %v", orEmpty(err))
		}
	}
	if parents := r.Header["Traceparent"]; len(parents) == 1 && len(parents[0]) < 256 {
		h.TraceParent = parents[0]
	}
	h.Exec = s.mayRun(r)
	return h, nil
}

// unquoted returns the key of a header that is written as a string of RFC 8941, as the IETF's draft asks, or as it is.
func unquoted(header string) string {
	key := strings.TrimSpace(header)
	if inner := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`); len(inner) == len(key)-2 {
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(inner)
	}
	return key
}

func (s *Server) keyLimit() int {
	if s.Limits.Key > 0 {
		return s.Limits.Key
	}
	return wire.DefaultLimits().Key
}

func orEmpty(err error) error {
	if err == nil {
		return errors.New("it is empty")
	}
	return err
}

// checkBlob refuses a bodyRef that is not there.
func (s *Server) checkBlob(o *problem.Object, t *task.Task) {
	r := request.Of(t)
	if r == nil || len(r.Body) == 0 || !request.IsBlob(r.Body[0].Blob) || !o.Has("bodyRef") {
		return
	}
	err := fs.ErrNotExist
	if s.Blobs != nil {
		var info blobs.Info
		info, err = s.Blobs.Keep(r.Body[0].Blob)
		r.Body[0].Size = info.Size
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Failf("bodyRef", "there is no such blob\nhint: PUT /blobs/{sha256} first")
	case err != nil:
		o.Failf("bodyRef", "the blob cannot be read")
		s.Warn(fmt.Errorf("open blob %s: %w", r.Body[0].Blob, err))
	}
}

// add stores tasks.
func (s *Server) add(r *http.Request, tasks []*task.Task) ([]state.Added, error) {
	ctx := detached(r)
	if err := s.pending.check(ctx, s, len(tasks)); err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if err := s.moveBody(r, t); err != nil {
			return nil, err
		}
	}
	added, err := s.Queue.Add(ctx, tasks)
	if err == nil {
		s.written()
		s.pending.added.Add(int64(len(tasks)))
	}
	return added, err
}

// moveBody puts a body that is too long for a task's row into the blob store.
func (s *Server) moveBody(r *http.Request, t *task.Task) error {
	sends := request.Of(t)
	if s.Blobs == nil || sends == nil {
		return nil
	}
	for i := range sends.Body {
		part := &sends.Body[i]
		if len(part.Text) <= s.Limits.Inline {
			continue
		}
		hash := blobs.Hash(part.Text)
		size, _, err := s.Blobs.Put(r.Context(), hash, bytes.NewReader(part.Text), int64(len(part.Text)))
		if err != nil {
			return fmt.Errorf("store a body: %w", err)
		}
		*part = request.Part{Blob: hash, Size: size}
	}
	return nil
}

// addProblem tells which of the tasks has a key that is another's. prefix is the pointer of a batch's list.
func (s *Server) addProblem(err error, tasks []*task.Task, prefix string) error {
	reused, ok := errors.AsType[*state.KeyError](err)
	if !ok {
		return err
	}
	pointer := "/idempotencyKey"
	if prefix != "" {
		pointer = prefix + strconv.Itoa(reused.Index) + pointer
	}
	owner := "task " + reused.ID + ", which was made of another request"
	for i, t := range tasks[:reused.Index] { // that one is not made either, so its id means nothing
		if t.ID == reused.ID {
			owner = prefix + strconv.Itoa(i) + ", which is another request"
		}
	}
	p := problem.New(http.StatusUnprocessableEntity, "idempotency-key-reused", "the idempotency key belongs to %s"+
		"\nhint: give another request another key; the same one has the same fields, the policy among them", owner)
	p.Errors = []problem.Mistake{{Pointer: pointer, Detail: p.Detail}}
	return p
}

// pending counts unfinished tasks, for --max-pending. It asks the store only where the limit may be reached.
type pending struct {
	added   atomic.Int64 // since the store was asked
	mutex   sync.Mutex
	counted int64
	asked   time.Time
}

// check returns an error where there are too many tasks for n more.
func (p *pending) check(ctx context.Context, s *Server, n int) error {
	most := int64(s.Limits.MaxPending)
	if most == 0 {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	const again = time.Second
	if now := s.Now(); p.asked.IsZero() || p.counted+p.added.Load()+int64(n) > most && now.Sub(p.asked) >= again {
		counted, err := s.Queue.CountUnfinished(ctx)
		if err != nil {
			return err
		}
		p.asked = now
		p.added.Store(0)
		p.counted = int64(counted)
	}
	if p.counted+p.added.Load()+int64(n) > most {
		return problem.TooManyRequests(5*time.Second, "%d tasks wait or run, and %d is the limit"+
			"\nhint: nothing was made; send it again later", p.counted+p.added.Load(), most)
	}
	return nil
}
