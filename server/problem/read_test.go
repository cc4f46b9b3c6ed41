package problem

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

func TestParse(t *testing.T) {
	deep := func(levels int) string {
		return `{"x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
	}
	tests := []struct {
		name, body string
		status     int // 0 for none
		detail     string
	}{
		{"empty object", "{}", 0, ""},
		{"space around", " \r\n{} \t", 0, ""},
		{"brackets in strings", `{"x": "[[{{\"}"}`, 0, ""},
		{"as deep as allowed", deep(maxDepth), 0, ""},
		{"empty", "", 400, "the body is empty"},
		{"blank", " \n", 400, "the body is empty"},
		{"cut", `{"a": `, 400, "invalid JSON at offset 6: unexpected end of JSON input"},
		{"comma at the end", `{"a": 1,}`, 400,
			"invalid JSON at offset 9: invalid character '}' looking for beginning of object key string"},
		{"two values", `{} {}`, 400, "invalid JSON at offset 4: invalid character '{' after top-level value"},
		{"byte order mark", "\ufeff{}", 400,
			"invalid JSON at offset 1: invalid character 'ï' looking for beginning of value"},
		{"not a number", `{"a": NaN}`, 400, "invalid JSON at offset 7: invalid character 'N' looking for beginning of value"},
		{"form", "a=1&b=2", 400, "invalid JSON at offset 1: invalid character 'a' looking for beginning of value"},
		{"invalid UTF-8", "{\"a\": \"x\xff\"}", 400, "invalid UTF-8 at offset 8"},
		{"overlong", "{\"a\": \"\xc0\xae\"}", 400, "invalid UTF-8 at offset 7"},
		{"a replacement character", "{\"a\": \"\ufffd\"}", 0, ""},
		{"control character", "{\"a\": \"\x00\"}", 400,
			"invalid JSON at offset 8: invalid character '\\x00' in string literal"},
		{"too deep", deep(maxDepth + 1), 400, "nested deeper than 128 levels at offset 132"},
		{"far too deep", deep(100_000), 400, "invalid JSON at offset 10005: invalid character '[' exceeded max depth"},
		{"list", `[1]`, 422, "the body has a mistake"},
		{"null", `null`, 422, "the body has a mistake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.body))
			p := (*Problem)(nil)
			switch {
			case tt.status == 0 && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.status != 0 && (!errors.As(err, &p) || p.Status != tt.status || p.Detail != tt.detail):
				t.Errorf("got %#v, want %d %q", err, tt.status, tt.detail)
			}
		})
	}
}

func TestReadBoundsTheBody(t *testing.T) {
	tests := []struct {
		name   string
		body   io.Reader
		length int64
		status int
	}{
		{"fits", strings.NewReader(`{"a":1}`), 7, 0},
		{"fits, chunked", strings.NewReader(`{"a":1}`), -1, 0},
		{"too long, chunked", strings.NewReader(`{"a":12345}`), -1, 413},
		{"says that it is too long", iotest.ErrReader(errors.New("read")), 1 << 40, 413},
		{"cut off", iotest.ErrReader(io.ErrUnexpectedEOF), -1, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", tt.body)
			r.ContentLength = tt.length
			_, err := Read(httptest.NewRecorder(), r, 10)
			p := (*Problem)(nil)
			switch {
			case tt.status == 0 && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.status != 0 && (!errors.As(err, &p) || p.Status != tt.status):
				t.Errorf("got %v, want status %d", err, tt.status)
			}
		})
	}
}

// Through a real server a body that is too long is refused, and the connection is not kept for the rest of it.
// The error of a connection names the addresses of both ends.
func TestReadABodyThatStalls(t *testing.T) {
	stalled := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 7470}, Err: os.ErrDeadlineExceeded}
	_, err := Read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(stalled)), 10)
	p := (*Problem)(nil)
	if !errors.As(err, &p) || p.Status != http.StatusBadRequest || p.Detail != TooSlow().Detail {
		t.Errorf("got %v, want %v", err, TooSlow())
	}
}

func TestReadOverASocket(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := Read(w, r, 10); err != nil {
			Write(w, err)
		}
	}))
	defer server.Close()
	reply, err := server.Client().Post(server.URL, "application/json", io.LimitReader(zeros{}, 1<<20))
	testkit.Must(t, err)
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusRequestEntityTooLarge || !reply.Close {
		t.Errorf("got %s, close %v, want 413 and the connection closed", reply.Status, reply.Close)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// The members that are found are those that encoding/json finds, byte for byte.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"{}", `{"a": [1, {"b": "\""}], "c": null}`, `{"a":1,"a":2}`, `{"\ud800": "\\"}`,
		"[]", "{", "\xff",
		`{"at": "2026-01-01T00:00:00Z", "n": 1e5}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := Parse(body)
		if err == nil != (o != nil) {
			t.Fatalf("got %v and %v, want one of them", o, err)
		}
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		testkit.Must(t, json.Unmarshal(body, &want))
		names := o.Names()
		if len(names) != len(want) {
			t.Errorf("got %q, want %d names", names, len(want))
		}
		once := !o.Failed() // no name is there twice
		for _, name := range names {
			if once && string(o.Raw(name)) != string(want[name]) {
				t.Errorf("%q: got %s, want %s", name, o.Raw(name), want[name])
			}
			readEverything(o, name)
		}
		if err := o.Finish(); err != nil {
			_, err = json.Marshal(err)
			testkit.Must(t, err)
		}
	})
}

// readEverything reads a field in every way: none may panic.
func readEverything(o *Object, name string) {
	o.String(name, "")
	o.StringOrList(name, 100)
	o.Int(name, 0, 0, 9)
	o.Ints(name, 100, 0, 9)
	o.Float(name, 0, 0, 1)
	o.Bool(name, false)
	o.Milliseconds(name, 0)
	o.Time(name, time.UnixMilli(1))
	if inner := o.Object(name); inner != nil {
		for _, name := range inner.Names() {
			readEverything(inner, name)
		}
	}
	o.Objects(name, 100)
}
