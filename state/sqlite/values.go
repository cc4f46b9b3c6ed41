package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/10f93571/retry/task"
)

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// joinStrings ends each string with the one byte that no argument and no variable can hold.
func joinStrings(list []string) []byte {
	joined := []byte{} // not nil, which would be NULL
	for _, s := range list {
		joined = append(append(joined, s...), 0)
	}
	return joined
}

func splitStrings(joined []byte) []string {
	if len(joined) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(joined), "\x00"), "\x00")
}

// Whatever stands in a journal, what is read from it lies between these, so that nothing that is reckoned with it overflows.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	latest   = time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro() // a day past what RFC 3339 can write: the wait of a task made in 9999
)

// longest is a hundred years: two of them can be added.
const longest = 36_525 * 24 * time.Hour

// fromMicros returns a duration in [0, longest]; 0 for null.
func fromMicros(us integer) time.Duration { return spanOf(us.Int64) }

// spanOf returns so many microseconds, in [0, longest].
func spanOf(us int64) time.Duration {
	return time.Duration(min(max(us, 0), longest.Microseconds())) * time.Microsecond
}

// moment returns a time between the years 1900 and 10000; the zero time for null.
func moment(us integer) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return time.UnixMicro(min(max(us.Int64, earliest), latest))
}

// integer is a column of whole numbers. In a table that is not ours anything may stand; what is no such number counts as null.
type integer struct{ sql.NullInt64 }

// Scan implements sql.Scanner, and never fails.
func (i *integer) Scan(value any) error {
	if i.NullInt64.Scan(value) != nil {
		i.NullInt64 = sql.NullInt64{}
	}
	return nil
}

// span is what SQL reckoned in microseconds, in [0, longest] like fromMicros. SQLite turns a difference or a sum that is beyond 64
// bits into a float.
type span struct{ time.Duration }

// Scan implements sql.Scanner, and never fails.
func (s *span) Scan(value any) error {
	var us integer
	switch v := value.(type) {
	case int64:
		us.Int64 = v
	case float64:
		us.Int64 = int64(math.Max(0, math.Min(v, float64(longest.Microseconds())))) // NaN, which SQLite turns into null, cannot come
	}
	s.Duration = fromMicros(us)
	return nil
}

// storedOptions are options as the journal holds them. JSON would change a hook that is no UTF-8, which it may be like an
// argument, so hooks are stored as bytes.
type storedOptions struct {
	task.Options
	OnRetry   []byte `json:"on_retry,omitempty"`
	OnSuccess []byte `json:"on_success,omitempty"`
	OnFailure []byte `json:"on_failure,omitempty"`
}

// marshalOptions returns NULL for a plain command.
func marshalOptions(o task.Options) (any, error) {
	if o == (task.Options{}) {
		return nil, nil
	}
	text, err := json.Marshal(storedOptions{o, []byte(o.OnRetry), []byte(o.OnSuccess), []byte(o.OnFailure)})
	return string(text), err
}

func unmarshalOptions(text string) (task.Options, error) {
	var s storedOptions
	err := json.Unmarshal([]byte(text), &s)
	s.Options.OnRetry, s.Options.OnSuccess, s.Options.OnFailure = string(s.OnRetry), string(s.OnSuccess), string(s.OnFailure)
	return s.Options, err
}

// marshalTarget returns what is stored of a task's target; nil for a command, which costs nothing.
func marshalTarget(t *task.Task) (any, error) {
	if t.Target == nil {
		return nil, nil
	}
	text, err := json.Marshal(t.Target)
	return string(text), err
}

// readTarget reads what a task sends. A command has no target.
func (r *taskRow) readTarget(t *task.Task) error {
	if t.Kind == task.KindCommand {
		return nil
	}
	if !r.request.Valid {
		return errors.New("request: there is none")
	}
	target, err := task.DecodeTarget(t.Kind, []byte(r.request.String))
	if err != nil {
		return unreadable("request", err)
	}
	t.Target = target
	return nil
}

// exchange is what is stored of a task.Reply, times in microseconds. The phases' total is the attempt's duration.
type exchange struct {
	Status      int    `json:"status,omitempty"`
	Written     int    `json:"written,omitempty"`
	Event       string `json:"event,omitempty"`
	ServerDelay int64  `json:"server_delay_us,omitempty"`
	DNS         int64  `json:"dns_us,omitempty"`
	Connect     int64  `json:"connect_us,omitempty"`
	TLS         int64  `json:"tls_us,omitempty"`
	FirstByte   int64  `json:"first_byte_us,omitempty"`
}

// marshalExchange returns what is stored of an exchange; nil for a command's attempt.
func marshalExchange(e *task.Reply) (any, error) {
	if e == nil {
		return nil, nil
	}
	text, err := json.Marshal(exchange{
		Status: e.Status, Written: e.Written, Event: e.Default.Event, ServerDelay: e.ServerDelay.Microseconds(),
		DNS: e.Phases.DNS.Microseconds(), Connect: e.Phases.Connect.Microseconds(), TLS: e.Phases.TLS.Microseconds(),
		FirstByte: e.Phases.FirstByte.Microseconds(),
	})
	return string(text), err
}

// readExchange returns what an attempt saw; nil for a command's. What cannot be read of it is left out: the outcome does not need it.
func (r *attemptRow) readExchange(total time.Duration) *task.Reply {
	if !r.exchange.Valid {
		return nil
	}
	var e exchange
	if json.Unmarshal([]byte(r.exchange.String), &e) != nil {
		e = exchange{}
	}
	return &task.Reply{
		Status: max(e.Status, 0), Written: max(e.Written, 0), ServerDelay: spanOf(e.ServerDelay), Default: task.Eligibility{Event: e.Event},
		Phases: task.Phases{
			DNS: spanOf(e.DNS), Connect: spanOf(e.Connect), TLS: spanOf(e.TLS), FirstByte: spanOf(e.FirstByte), Total: total,
		},
	}
}
