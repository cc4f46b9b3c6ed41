package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// What a program tells problems apart by, and what goes into headers.
func TestWrite(t *testing.T) {
	mistakes := Unprocessable("two")
	mistakes.Errors = []Mistake{{Pointer: "/a~1b", Detail: "wrong", Hint: "right"}}
	tests := []struct {
		name   string
		err    error
		status int
		body   string
		header http.Header
	}{
		{name: "with a hint", err: NotFound("no task %q\nhint: list them", "x"), status: 404,
			body: `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"no task \"x\"","hint":"list them"}`},
		{name: "wrapped", err: fmt.Errorf("handle: %w", Conflict("it runs")), status: 409,
			body: `{"type":"/problems/conflict","title":"Conflict","status":409,"detail":"it runs"}`},
		{name: "mistakes", err: mistakes, status: 422,
			body: `{"type":"/problems/unprocessable","title":"Unprocessable","status":422,"detail":"two",` +
				`"errors":[{"pointer":"/a~1b","detail":"wrong","hint":"right"}]}`},
		{name: "no token", err: Unauthorized("no token"), status: 401,
			body:   `{"type":"/problems/unauthorized","title":"Unauthorized","status":401,"detail":"no token"}`,
			header: http.Header{"Www-Authenticate": {`Bearer realm="retry"`}}},
		{name: "a wait is rounded up", err: TooManyRequests(1200*time.Millisecond, "full"), status: 429,
			body:   `{"type":"/problems/too-many-requests","title":"Too many requests","status":429,"detail":"full"}`,
			header: http.Header{"Retry-After": {"2"}}},
		{name: "unavailable", err: Unavailable(30*time.Second, "disk full"), status: 503,
			body:   `{"type":"/problems/unavailable","title":"Unavailable","status":503,"detail":"disk full"}`,
			header: http.Header{"Retry-After": {"30"}}},
		{name: "body too long", err: fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 10}), status: 413,
			body: `{"type":"/problems/too-large","title":"Too large","status":413,"detail":"the body is larger than 10 bytes"}`},
		{name: "unknown errors tell nothing", err: &fs.PathError{Op: "open", Path: "/secret", Err: errors.New("no")},
			status: 500,
			body: `{"type":"/problems/internal-error","title":"Internal error","status":500,` +
				`"detail":"the request failed, see the log of the server"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Length", "7") // of the answer that was planned
			Write(w, tt.err)
			want := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"},
				"X-Content-Type-Options": {"nosniff"}}
			for name, values := range tt.header {
				want[name] = values
			}
			if got := w.Body.String(); w.Code != tt.status || got != tt.body+"\n" {
				t.Errorf("got %d %s, want %d %s", w.Code, got, tt.status, tt.body)
			}
			if got := w.Header(); !reflect.DeepEqual(got, want) {
				t.Errorf("header: got %v, want %v", got, want)
			}
		})
	}
}

func TestConstructors(t *testing.T) {
	tests := []struct {
		problem *Problem
		status  int
		name    string
	}{
		{BadRequest(""), 400, "bad-request"},
		{Unauthorized(""), 401, "unauthorized"},
		{Forbidden(""), 403, "forbidden"},
		{NotFound(""), 404, "not-found"},
		{MethodNotAllowed(""), 405, "method-not-allowed"},
		{Conflict(""), 409, "conflict"},
		{Gone(""), 410, "gone"},
		{PreconditionFailed(""), 412, "precondition-failed"},
		{TooLarge(""), 413, "too-large"},
		{UnsupportedMediaType(""), 415, "unsupported-media-type"},
		{Unprocessable(""), 422, "unprocessable"},
		{TooManyRequests(0, ""), 429, "too-many-requests"},
		{Unavailable(0, ""), 503, "unavailable"},
		{New(422, "key-reused", ""), 422, "key-reused"},
	}
	for _, tt := range tests {
		if got := tt.problem; got.Status != tt.status || got.Type != "/problems/"+tt.name || got.Title == "" {
			t.Errorf("got %+v, want status %d, type /problems/%s and a title", got, tt.status, tt.name)
		}
	}
}

func TestProblemAsText(t *testing.T) {
	o, err := Parse([]byte(`{"a": 1, "b": 2}`))
	testkit.Must(t, err)
	got := fmt.Sprint(o.Finish())
	want := "Invalid fields: the body has 2 mistakes\n/a: unknown field\n/b: unknown field"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := NotFound("no task\nhint: look").Error(), "Not found: no task\nhint: look"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The problem that is written is JSON whatever a client sent.
func TestWriteHostileText(t *testing.T) {
	w := httptest.NewRecorder()
	Write(w, NotFound("no task %q", "<script>\x00\xff\u202e"))
	var got Problem
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Status != 404 {
		t.Errorf("got %s, %v, want JSON", w.Body, err)
	}
}
