//go:build unix

package load

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain makes the test a fake retry where it is started as "serve": Retry starts a process, not a handler.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve(os.Args[2:])
	}
	os.Exit(m.Run())
}

// stub is a service that keeps the tasks of each host until the host is not paused.
type stub struct {
	mu     sync.Mutex
	paused map[string]bool
	tasks  []apiTask
}

func serve(flags []string) {
	s := &stub{paused: map[string]bool{}}
	http.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /flags", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Join(append(flags[2:], os.Getenv("RETRY_STATE_DIR"), os.Getenv("RETRY_TOKEN_FILE")), " "))
	})
	http.HandleFunc("PUT /targets/{host}", func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Paused bool }
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.mu.Lock()
		s.paused[r.PathValue("host")] = body.Paused
		s.mu.Unlock()
		s.send()
	})
	http.HandleFunc("POST /retry-tasks", func(w http.ResponseWriter, r *http.Request) {
		var task apiTask
		err := json.NewDecoder(r.Body).Decode(&task)
		s.create(w, err, []apiTask{task})
	})
	http.HandleFunc("POST /retry-tasks:batch", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Tasks []apiTask }
		err := json.NewDecoder(r.Body).Decode(&body)
		s.create(w, err, body.Tasks)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(flags[1], nil))
	os.Exit(1)
}

func (s *stub) create(w http.ResponseWriter, err error, tasks []apiTask) {
	if err != nil || len(tasks) > 1000 {
		http.Error(w, fmt.Sprint("too many, or ", err), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.tasks = append(s.tasks, tasks...)
	s.mu.Unlock()
	s.send()
	w.WriteHeader(http.StatusCreated)
}

func (s *stub) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = slices.DeleteFunc(s.tasks, func(t apiTask) bool {
		host, _, _ := strings.Cut(strings.TrimPrefix(t.TargetURL, "http://"), "/")
		due := time.UnixMilli(t.NotBefore)
		if s.paused[host] || time.Until(due) > time.Hour {
			return false
		}
		time.AfterFunc(time.Until(due), func() {
			if response, err := http.Post(t.TargetURL, "text/plain", strings.NewReader(t.Body)); err == nil {
				response.Body.Close()
			}
		})
		return true
	})
}

func TestRetryIsMeasuredThroughItsAPI(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("RETRY_TOKEN_FILE", "of-the-caller")
	r := &Retry{Label: "retry", Program: self, Dir: t.TempDir(), Concurrency: 8, Flags: []string{"--lease", "9s"}}
	rows, err := Choose("attempts,creates,late")
	if err != nil {
		t.Fatal(err)
	}
	sizes := tiny()
	sizes.Attempts = 1500 // two batches
	results, err := Plan{Systems: []System{r}, Rows: rows, Runs: 1, Sizes: sizes, Log: io.Discard}.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Error != "" || len(result.Numbers) == 0 || result.Numbers[0].Value <= 0 {
			t.Errorf("%s: got %v, error %q, want a figure", result.Row, result.Numbers, result.Error)
		}
	}
	response, err := http.Get(r.url + "/flags")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	flags, _ := io.ReadAll(response.Body)
	want := "--allow-target 127.0.0.0/8 --concurrency 16 --per-host 8 --max-pending 2000000 --lease 9s " +
		filepath.Join(r.Dir, "retry-3") + " "
	if string(flags) != want {
		t.Errorf("got flags, state directory and token file %q, want %q", flags, want)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Work(t.Context()); err != nil {
		t.Errorf("work after a kill: got error %v", err)
	}
	if err := r.call(t.Context(), http.MethodGet, "/nothing", nil, http.StatusOK); err == nil || !strings.Contains(err.Error(), "got status 404, want 200") {
		t.Errorf("got error %v, want one with the status", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestATaskOfTheAPI(t *testing.T) {
	due := time.UnixMilli(1700000000123)
	for _, test := range []struct {
		name string
		task Task
		want string
	}{
		{"due now", Task{URL: "http://h/0"}, `{"targetUrl":"http://h/0","method":"POST","body":"` + Body + `","policyId":"default"}`},
		{"due later, two attempts", Task{URL: "http://h/0", Due: due, Attempts: 2}, `{"targetUrl":"http://h/0","method":"POST","body":"` + Body +
			`","notBefore":1700000000123,"policy":{"maxAttempts":2,"initialDelayMs":100,"maxDelayMs":100,"multiplier":1,"jitterType":"NONE"}}`},
	} {
		got, err := json.Marshal(toAPI(test.task))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, error %v, want %s", test.name, got, err, test.want)
		}
	}
}

func TestAServiceThatEndsIsToldWithItsWords(t *testing.T) {
	program := filepath.Join(t.TempDir(), "retry")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho 'unknown command \"serve\"' >&2\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &Retry{Program: program, Dir: t.TempDir()}
	if err := r.Reset(t.Context(), false); err == nil || !strings.Contains(err.Error(), `unknown command "serve"`) {
		t.Errorf("got error %v, want one with what it said", err)
	}
}
