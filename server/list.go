package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// query is the query of a URL. It remembers the first mistake.
type query struct {
	values url.Values
	err    error
}

// readQuery reads the query of a URL that may have these parameters.
func readQuery(r *http.Request, known ...string) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.BadRequest("invalid query: %v", err)
	}
	for name, given := range values {
		shown := text.Shorten(name, 40)
		switch {
		case !slices.Contains(known, name):
			hint := "the parameters are " + strings.Join(known, ", ")
			if near := text.Nearest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			return nil, problem.BadRequest("unknown parameter %q\nhint: %s", shown, hint)
		case len(given) > 1:
			return nil, problem.BadRequest("the parameter %s is there %d times", shown, len(given))
		}
	}
	return &query{values: values}, nil
}

func (q *query) failf(name, format string, args ...any) {
	if q.err == nil {
		q.err = problem.BadRequest("the parameter %s: %v", name, fmt.Errorf(format, args...))
	}
}

// choice returns a parameter that is one of a few; the first is for one that is missing.
func (q *query) choice(name string, choices ...string) string {
	value := q.values.Get(name)
	if value == "" {
		return choices[0]
	}
	if !slices.Contains(choices, value) {
		q.failf(name, "invalid value %q\nhint: write %s", text.Shorten(value, 40), strings.Join(choices, " or "))
	}
	return value
}

// The numbers of rows in a part of a list, and of bytes: a part that has more of them ends there.
const (
	usualLimit   = 50
	largestLimit = 200
	largestPart  = 1 << 20
)

func (q *query) limit() int {
	value := q.values.Get("limit")
	if value == "" {
		return usualLimit
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > largestLimit {
		q.failf("limit", "want a number from 1 to %d, got %q", largestLimit, text.Shorten(value, 40))
		return usualLimit
	}
	return n
}

// cursor is where the next part of a list begins. Clients see it as an opaque text. It belongs to one list: what it
// selects is a part of it.
type cursor struct {
	At   int64  `json:"n"`
	List string `json:"f"`
}

// cursor returns where a list goes on; 0 for its beginning.
func (q *query) cursor(list string) int64 {
	value := q.values.Get("cursor")
	if value == "" {
		return 0
	}
	var c cursor
	decoded, err := base64.RawURLEncoding.DecodeString(value)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	switch {
	case err != nil || c.At <= 0:
		q.failf("cursor", "it is not one that this server has given\nhint: take that of next, or leave it out")
	case c.List != hashOf(list):
		q.failf("cursor", "it belongs to a list with other parameters\nhint: leave it out to begin anew")
	}
	return c.At
}

// next returns the cursor of the next part, and links it.
func (q *query) next(w http.ResponseWriter, r *http.Request, at int64, list string) *string {
	written, _ := json.Marshal(cursor{at, hashOf(list)})
	value := base64.RawURLEncoding.EncodeToString(written)
	link := url.Values{}
	for name, values := range q.values {
		link[name] = values
	}
	link.Set("cursor", value)
	w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+link.Encode()+`>; rel="next"`)
	return &value
}

func hashOf(list string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(list))
	return strconv.FormatUint(uint64(hash.Sum32()), 36)
}

// filterNames are the parameters that select tasks.
func filterNames() []string {
	return []string{"status", "policyId", "partition", "host", "tag", "error", "since", "until"}
}

// filter reads the parameters that select tasks.
func (q *query) filter() (f state.PageFilter) {
	v := q.values
	f = state.PageFilter{PolicyID: v.Get("policyId"), Tag: v.Get("tag"), Error: v.Get("error")}
	if v.Has("partition") {
		f.Partition = new(v.Get("partition"))
	}
	if v.Has("status") {
		for name := range strings.SplitSeq(v.Get("status"), ",") {
			status, err := readStatus(name)
			if err != nil {
				q.failf("status", "%w", err)
			}
			if !slices.Contains(f.Statuses, status) { // a query of 32 KiB can name one 4,000 times
				f.Statuses = append(f.Statuses, status)
			}
		}
	}
	f.Host = hostOf(v.Get("host"))
	f.Since, f.Until = q.time("since"), q.time("until")
	return f
}

// hostOf spells a host as tasks are found by it.
func hostOf(host string) string {
	if host == "" {
		return ""
	}
	return request.HostOf(host)
}

// statuses are those that a task can have.
func statuses() []string {
	return []string{
		string(task.Pending), string(task.InFlight), string(task.Succeeded), string(task.Exhausted), string(task.Failed),
		string(task.Cancelled),
	}
}

func readStatus(name string) (task.Status, error) {
	if slices.Contains(statuses(), name) {
		return task.Status(name), nil
	}
	hint := "write " + strings.Join(statuses(), ", ")
	if near := text.Nearest(strings.ToUpper(name), statuses()); near != "" {
		hint = "did you mean " + near + "?"
	}
	return "", fmt.Errorf("there is no status %q\nhint: %s", text.Shorten(name, 40), hint)
}

// time returns a time in milliseconds since 1970 or as RFC 3339.
func (q *query) time(name string) time.Time {
	value := q.values.Get(name)
	if value == "" {
		return time.Time{}
	}
	if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms >= 0 && ms < 1<<52 {
		return time.UnixMilli(ms)
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil || t.Unix() < 0 {
		q.failf(name, "invalid time %q\nhint: write milliseconds since 1970, or RFC 3339 such as 2006-01-02T15:04:05Z",
			text.Shorten(value, 40))
	}
	return t
}

// listTasks is GET /retry-tasks.
func (s *Server) listTasks(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, append(filterNames(), "limit", "cursor", "view")...)
	if err != nil {
		return err
	}
	f := q.filter()
	list := fmt.Sprint(f.Statuses, "|", f.PolicyID, "|", q.values["partition"], "|", f.Host, "|", f.Tag, "|", f.Error, "|",
		f.Since.UnixMilli(), "|", f.Until.UnixMilli())
	f.Limit, f.Cursor = q.limit(), q.cursor(list)
	full := q.choice("view", "short", "full") == "full"
	if full {
		f.Bytes = largestPart
	}
	if q.err != nil {
		return q.err
	}
	page, err := s.reads.Page(r.Context(), f)
	if err != nil {
		return err
	}
	answer := struct {
		Tasks []wire.Task `json:"tasks"`
		Next  *string     `json:"next"`
	}{Tasks: make([]wire.Task, len(page.Tasks))}
	for i, t := range page.Tasks {
		answer.Tasks[i] = s.shown(r, t, full)
	}
	if page.Next != 0 {
		answer.Next = q.next(w, r, page.Next, list)
	}
	return s.held.reply(w, r, answer)
}
