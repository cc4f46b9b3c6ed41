package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/10f93571/retry/test/bench/load"
)

// workerArgument makes this program a worker: "rivals worker KIND ADDRESS TUNING".
const workerArgument = "worker"

// delivery is what a rival's task has in its store.
type delivery struct {
	URL  string `json:"url"`
	Body string `json:"body"`
}

// worker is the part of a system that is a process of its own.
type worker struct {
	kind, address string
	tuning        tuning
	log           string
	process       *load.Process
	server        *load.Process // that has the store; nil where the worker has it
}

// Work starts the process.
func (w *worker) Work(context.Context) error {
	settings, err := json.Marshal(w.tuning)
	if err != nil {
		return fmt.Errorf("encode the settings: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	w.process, err = load.Start(exec.Command(self, workerArgument, w.kind, w.address, string(settings)), w.log)
	return err
}

// Kill kills the process, if there is one, and says so where it had ended by itself.
func (w *worker) Kill() error {
	if w.process == nil {
		return nil
	}
	ended := w.process.Ended()
	err := w.process.Kill()
	w.process = nil
	if ended != nil {
		return ended
	}
	return err
}

// Hold ends the worker: the store keeps what comes.
func (w *worker) Hold() error { return w.Kill() }

// Processes are the worker's and its server's.
func (w *worker) Processes() (worker, server int) { return w.process.Pid(), w.server.Pid() }

// work is the main function of a worker's process. It ends by being killed.
func work(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("got %d arguments, want a kind, an address and settings", len(args))
	}
	var t tuning
	if err := json.Unmarshal([]byte(args[2]), &t); err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	switch address := args[1]; args[0] {
	case "asynq":
		return workAsynq(address, t)
	case "river-postgres":
		return workRiverPostgres(address, t)
	case "river-sqlite":
		return workRiverSQLite(address, t)
	}
	return fmt.Errorf("unknown kind %q", args[0])
}

// sender makes one request after another on kept connections.
type sender struct{ client *http.Client }

func newSender(slots int) sender {
	return sender{&http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: slots}}}
}

// send fails on any status that is not of success, as retry does.
func (s sender) send(ctx context.Context, d delivery) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, strings.NewReader(d.Body))
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("got status %d", response.StatusCode)
	}
	return nil
}
