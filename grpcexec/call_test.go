package grpcexec

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		url, wantURL, wantHost string
		want                   string // a part of the error; "" for none
	}{
		{url: "grpc://Host.Example:50051/shop.Orders/Create", wantURL: "grpc://host.example:50051/shop.Orders/Create", wantHost: "host.example:50051"},
		{url: "grpcs://h/a.B/C", wantURL: "grpcs://h:443/a.B/C", wantHost: "h"},
		{url: "grpcs://h:443/a.B/C", wantURL: "grpcs://h:443/a.B/C", wantHost: "h"},
		{url: "grpcs://h:444/B/C", wantURL: "grpcs://h:444/B/C", wantHost: "h:444"},
		{url: "grpc://[::1]:5/a.B/C_2", wantURL: "grpc://[::1]:5/a.B/C_2", wantHost: "[::1]:5"},
		{url: "grpc://h/a.B/C", want: "it names no port"}, {url: "http://h:1/a.B/C", want: `"http" is neither grpc nor grpcs`},
		{url: "h:1/a.B/C", want: "neither"}, {url: "grpc://:1/a.B/C", want: "it names no host"},
		{url: "grpc://h:1/a.B", want: `its path "/a.B" is not package.Service/Method`}, {url: "grpc://h:1/a/b/c", want: "its path"},
		{url: "grpc://h:1/a.B/C?x=1", want: "it has a query"}, {url: "grpc://h:1/a.B/C#x", want: "it has a query"},
		{url: "grpc://me:secret@h:1/a.B/C", want: "a user has no place"}, {url: "grpc://h:0/a.B/C", want: `invalid port "0"`},
		{url: "grpc://h:70000/a.B/C", want: "invalid port"}, {url: "grpc://h:x/a.B/C", want: "it is no URL"},
		{url: "grpc://h:1/a.B/%43", wantURL: "grpc://h:1/a.B/C", wantHost: "h:1"}, {url: "grpc://h:1/a.B/%2e%2e", want: "its path"},
		{url: "grpc://ä:1/a.B/C", want: "beyond ASCII"}, {url: "grpc://h:1/a.B/C\n", want: "it is no URL"},
	} {
		c, err := New(tt.url, nil, nil, nil)
		if tt.want != "" {
			if err == nil || !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v, want %q", tt.url, err, tt.want)
			}
			continue
		}
		if err != nil || c.URL != tt.wantURL || c.Host() != tt.wantHost {
			t.Errorf("%q: got %+v, host %q, %v, want %q", tt.url, c, c.Host(), err, tt.wantURL)
		}
	}
	const url = "grpc://h:1/a.B/C"
	for _, tt := range []struct {
		body, message []byte
		metadata      []string
		want          string
	}{
		{body: []byte(`{"a": }`), want: "invalid JSON at byte 7"}, {body: []byte(`{}`), message: []byte{}, want: "there twice"},
		{body: bytes.Repeat([]byte(" "), MaxMessage+1), want: "invalid JSON"}, {message: make([]byte, MaxMessage+1), want: "servers take up to 4 MiB"},
		{metadata: []string{"no colon"}, want: "has no colon"}, {metadata: []string{"grpc-timeout: 1S"}, want: "belongs to the protocol"},
		{metadata: []string{"Host: x"}, want: "belongs to the protocol"}, {metadata: []string{"a!: x"}, want: "letters, digits, _, - and . alone"},
		{metadata: []string{"a: ä"}, want: "metadata a: the value holds other characters"}, {metadata: []string{"a-bin: ?"}, want: "in base64"},
		{metadata: []string{"a: x\r\nb: y"}, want: "control character"}, {metadata: []string{"a: {env:B"}, want: "resolve a reference"},
	} {
		if _, err := New(url, tt.body, tt.message, tt.metadata); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.20q %q: got %v, want %q", tt.body, tt.metadata, err, tt.want)
		}
	}
}

// A call comes back from a journal as it was, and is the same work until what it sends differs.
func TestCallIsStored(t *testing.T) {
	c, err := New("grpcs://h/a.B/C", []byte(`{"a": 1}`), nil, []string{"authorization: Bearer hunter2", "x: {env:X}"})
	if err != nil {
		t.Fatal(err)
	}
	c.Keyed, c.KeyTTL, c.MaxRetryAfter, c.Network.ConnectTimeout = true, time.Hour, time.Minute, time.Second
	stored, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	read, err := task.DecodeTarget(Kind, stored)
	if err != nil || !c.SameWork(read) {
		t.Fatalf("got %+v, %v, want %+v", read, err, c)
	}
	if !c.Safe() || c.KeyLifetime() != time.Hour || c.MaxServerDelay() != time.Minute || c.ReadsStdin() ||
		c.Title() != "CALL grpcs://h:443/a.B/C" || c.Endpoint().URL != "grpcs://h:443/a.B/C" {
		t.Errorf("got %+v", c)
	}
	other := *c
	other.KeyTTL = 0
	if !c.SameWork(&other) {
		t.Error("got other work for another lifetime of the key")
	}
	other.JSON = `{"a": 2}`
	if c.SameWork(&other) || c.SameWork(&request.Request{}) {
		t.Error("got the same work for another request")
	}
	details := c.Details(false, "")
	shown, err := json.Marshal(details.JSON)
	if err != nil || strings.Contains(string(shown)+strings.Join(details.Rows[1][:], " "), "hunter2") || len(details.Rows) != 5 {
		t.Errorf("got %s, %v, %v, want no secret", shown, details.Rows, err)
	}
	for _, damaged := range []string{``, `{}`, `{"url": "http://h/"}`} {
		if _, err := task.DecodeTarget(Kind, []byte(damaged)); err == nil {
			t.Errorf("%s: got no error", damaged)
		}
	}
}

func TestTimeoutHeader(t *testing.T) {
	for left, want := range map[time.Duration]string{
		time.Nanosecond: "1n", 99_999_999: "99999999n", 100_000_000: "100000u", 100_000_001: "100001u", time.Minute: "60000000u",
		2 * time.Minute: "120000m", 30 * time.Hour: "108000S", 1 << 62: "76861434M", 0: "1n", -5: "1n",
	} {
		if got := timeoutHeader(left); got != want {
			t.Errorf("%v: got %s, want %s", left, got, want)
		}
	}
}

func TestPercentDecoded(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a%20b": "a b", "50%": "50%", "%zz%4": "%zz%4", "%e4%bd%a0": "你", "%ff": "\ufffd", "\xff": "\ufffd", "%0a": "\n",
	} {
		if got := percentDecoded(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add("grpc://h:1/a.B/C", "authorization: Bearer x")
	f.Add("grpcs://[::1]/a.B/C", "x-bin: AAEC")
	f.Fuzz(func(t *testing.T, url, line string) {
		c, err := New(url, nil, nil, []string{line})
		if err != nil {
			return
		}
		again, err := New(c.URL, nil, nil, c.Metadata)
		if err != nil || !again.SameWork(c) || c.Host() == "" {
			t.Fatalf("%q: got %+v, %v, want %+v", url, again, err, c)
		}
		header, err := c.metadata(&request.References{}, http.Header{})
		if err != nil && !errors.Is(err, request.ErrReference) {
			t.Fatal(err)
		}
		for _, values := range header {
			for _, value := range values {
				if strings.ContainsAny(value, "\r\n\x00") {
					t.Fatalf("got value %q", value)
				}
			}
		}
	})
}

// A call of the API names no longest delay.
func TestLongestDelay(t *testing.T) {
	for _, tt := range []struct {
		call Call
		want time.Duration
	}{
		{Call{}, 0}, {Call{MaxRetryAfter: time.Minute}, time.Minute}, {Call{Guarded: true}, time.Hour},
		{Call{MaxRetryAfter: time.Minute, Guarded: true}, time.Minute},
	} {
		if got := tt.call.MaxServerDelay(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.call, got, tt.want)
		}
	}
}
