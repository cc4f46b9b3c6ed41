package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retry is a built retry as a service: "retry serve" with its own journal. It works in the process that has the API.
type Retry struct {
	Label       string   // the column of the table
	Program     string   // the binary
	Dir         string   // takes the journals
	Concurrency int      // slots of the worker, all of which may go to the one host
	Flags       []string // more flags of retry serve
	client      *http.Client
	process     *Process
	url, state  string
	journals    int
	paused      bool // the hosts of tasks are paused as soon as they are known
	hosts       []string
}

// Name is the column of the table.
func (r *Retry) Name() string { return r.Label }

// Handicaps of retry are against the others.
func (*Retry) Handicaps(row string) string {
	switch row {
	case "attempts":
		return "keeps each attempt with its reply; the API is in the process"
	case "creates":
		return "over HTTP and JSON, each checked for its idempotency key"
	}
	return ""
}

// Reset ends the service and starts one with another journal. It acknowledges nothing before it is on disk, always.
func (r *Retry) Reset(ctx context.Context, _ bool) error {
	if err := r.process.Stop(); err != nil {
		return err
	}
	r.process = nil
	if r.state != "" {
		if err := os.RemoveAll(r.state); err != nil {
			return fmt.Errorf("remove the last journal: %w", err)
		}
	}
	r.journals++
	r.state, r.paused, r.hosts = filepath.Join(r.Dir, "retry-"+strconv.Itoa(r.journals)), true, nil
	return r.start(ctx)
}

// start runs retry serve on a free port, and returns when it is ready. Its limit of pending tasks is twice what the
// rows need, so that it is looked at and never met.
func (r *Retry) start(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	slots, all := strconv.Itoa(r.Concurrency), strconv.Itoa(2*r.Concurrency) // a host that has not replied gets no more
	cmd := exec.Command(r.Program, slices.Concat([]string{"serve", "--listen", address,
		"--allow-target", "127.0.0.0/8", "--concurrency", all, "--per-host", slots,
		"--max-pending", "2000000"}, r.Flags)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RETRY_") })
	cmd.Env = append(cmd.Env, "RETRY_STATE_DIR="+r.state, "XDG_CONFIG_HOME=/nonexistent")
	if r.process, err = Start(cmd, r.state+".log"); err != nil {
		return err
	}
	r.url = "http://" + address
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
	for range 1000 {
		if err := errors.Join(r.process.Ended(), pause(ctx, 10*time.Millisecond)); err != nil {
			return err
		}
		if r.call(ctx, http.MethodGet, "/readyz", nil, anySuccess) == nil {
			return nil
		}
	}
	return errors.New("retry serve is not ready after 10 s")
}

// freeAddress is one on loopback that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// Fill creates tasks in batches of the largest size that the API takes.
func (r *Retry) Fill(ctx context.Context, tasks []Task) error {
	if err := r.hold(ctx, tasks); err != nil {
		return err
	}
	for some := range slices.Chunk(tasks, 1000) {
		all := make([]apiTask, len(some))
		for i, t := range some {
			all[i] = toAPI(t)
		}
		body := map[string]any{"tasks": all}
		if err := r.call(ctx, http.MethodPost, "/retry-tasks:batch", body, http.StatusCreated); err != nil {
			return err
		}
	}
	return nil
}

// hold pauses the hosts of tasks that are created while no work is to be done.
func (r *Retry) hold(ctx context.Context, tasks []Task) error {
	for _, t := range tasks {
		host, _, _ := strings.Cut(strings.TrimPrefix(t.URL, "http://"), "/")
		if !r.paused || slices.Contains(r.hosts, host) {
			continue
		}
		r.hosts = append(r.hosts, host)
		if err := r.call(ctx, http.MethodPut, "/targets/"+host, map[string]any{"paused": true}, anySuccess); err != nil {
			return err
		}
	}
	return nil
}

// Add creates one task.
func (r *Retry) Add(ctx context.Context, task Task) error {
	return r.call(ctx, http.MethodPost, "/retry-tasks", toAPI(task), http.StatusCreated)
}

// Work lets the worker begin: it starts the service again after Kill, and resumes the hosts that were paused.
func (r *Retry) Work(ctx context.Context) error {
	if r.process == nil {
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	r.paused = false
	hosts := r.hosts
	r.hosts = nil
	for _, host := range hosts {
		if err := r.call(ctx, http.MethodPut, "/targets/"+host, map[string]any{"paused": false}, anySuccess); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills the service.
func (r *Retry) Kill() error {
	err := r.process.Kill()
	r.process = nil
	return err
}

// Hold pauses the hosts of tasks that come.
func (r *Retry) Hold() error {
	r.paused, r.hosts = true, nil
	return nil
}

// Processes are the service alone: the store is in it.
func (r *Retry) Processes() (worker, server int) { return r.process.Pid(), 0 }

// StoreBytes is the size of the state directory.
func (r *Retry) StoreBytes(context.Context) (int64, string, error) {
	size, err := DirSize(r.state)
	return size, "on disk", err
}

// DirSize is the size of all files in a folder.
func DirSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// Close ends the service and removes its journal.
func (r *Retry) Close() error {
	err := r.process.Stop()
	r.process = nil
	return err
}

// apiTask is a task as the API takes it.
type apiTask struct {
	TargetURL string     `json:"targetUrl"`
	Method    string     `json:"method"`
	Body      string     `json:"body"`
	NotBefore int64      `json:"notBefore,omitempty"`
	PolicyID  string     `json:"policyId,omitempty"`
	Policy    *apiPolicy `json:"policy,omitempty"`
}

type apiPolicy struct {
	MaxAttempts    int     `json:"maxAttempts"`
	InitialDelayMs int64   `json:"initialDelayMs"`
	MaxDelayMs     int64   `json:"maxDelayMs"`
	Multiplier     float64 `json:"multiplier"`
	JitterType     string  `json:"jitterType"`
}

func toAPI(t Task) apiTask {
	a := apiTask{TargetURL: t.URL, Method: http.MethodPost, Body: Body, PolicyID: "default"}
	if !t.Due.IsZero() {
		a.NotBefore = t.Due.UnixMilli()
	}
	if delay := RetryDelay.Milliseconds(); t.Attempts > 0 {
		a.PolicyID = ""
		a.Policy = &apiPolicy{MaxAttempts: t.Attempts, InitialDelayMs: delay, MaxDelayMs: delay, Multiplier: 1, JitterType: "NONE"}
	}
	return a
}

// anySuccess is every status from 200 to 299.
const anySuccess = 200

// call sends JSON and wants the given status.
func (r *Retry) call(ctx context.Context, method, path string, body any, want int) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode a request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("call the service: %w", err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want && (want != anySuccess || response.StatusCode/100 != 2) {
		err = fmt.Errorf("%s %s: got status %d, want %d\n%s", method, path, response.StatusCode, want, said[:min(len(said), 1000)])
	}
	return err
}
