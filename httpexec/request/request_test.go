package request

import (
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func TestKeyLifetime(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		request Request
		want    time.Duration
	}{
		"POST":                       {request: Request{Method: "POST", KeyTTL: day}, want: day},
		"POST without a key":         {request: Request{Method: "POST", KeyTTL: day, KeyStyle: KeyNone}},
		"POST, remembered for ever":  {request: Request{Method: "POST"}},
		"GET":                        {request: Request{Method: "GET", KeyTTL: day}},
		"GET with a key":             {request: Request{Method: "GET", Keyed: true, KeyTTL: day}, want: day},
		"in lower case no known GET": {request: Request{Method: "get", KeyTTL: day}, want: day},
	} {
		if got := tt.request.KeyLifetime(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for url, want := range map[string]string{
		"https://h/a":           "https://h/a",
		"https://h/a?page=1#b":  "https://h/a",
		"https://h/a#b?c":       "https://h/a",
		"https://ann:pw@h/a?b":  "https://ann:***@h/a",
		"https://ann:{env:P}@h": "https://ann:{env:P}@h",
	} {
		got := (&Request{Method: "PUT", URL: url}).Endpoint()
		if want := (task.Endpoint{Method: "PUT", URL: want}); got != want {
			t.Errorf("%s: got %+v, want %+v", url, got, want)
		}
	}
}
