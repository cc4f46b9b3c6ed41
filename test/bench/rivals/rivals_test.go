package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/10f93571/retry/test/bench/load"
)

// TestMain makes the test a worker where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each system does a little of each row that takes seconds. asynq and River need more than that to come back from a kill.
func TestSystems(t *testing.T) {
	for _, test := range []struct {
		id      string
		needs   func() error
		numbers map[string]int // rows, and how many figures each has
	}{
		{"asynq", func() error { _, err := exec.LookPath("redis-server"); return err }, figures(false)},
		{"river-postgres", func() error { _, err := postgresFolder(); return err }, figures(false)},
		{"river-sqlite", func() error { return nil }, figures(false)},
		{"retry", serves, figures(true)},
	} {
		t.Run(test.id, func(t *testing.T) {
			if err := test.needs(); err != nil {
				t.Skip(err)
			}
			file := filepath.Join(t.TempDir(), "figures.json")
			o := options{systems: test.id, million: test.id, json: file, runs: 1, retry: os.Getenv("RETRY_PROGRAM"),
				tuning: tuning{Concurrency: 8, RiverWorkers: 8, RiverPoll: 10 * time.Millisecond, Forward: time.Second},
				sizes: load.Sizes{Attempts: 300, Clients: 4, Creating: 100 * time.Millisecond, Settle: 500 * time.Millisecond,
					Scheduled: 100, Span: 500 * time.Millisecond, Half: 100, Million: 500, InHand: 8, Waiting: 500,
					Patience: 20 * time.Second, Back: 20 * time.Second, SecondTries: 2 * time.Second}}
			if test.id != "retry" {
				o.rows = "attempts,creates,late,half,memory,million,million-attempts,million-memory"
			}
			if err := run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var results []load.Result
			if err := json.Unmarshal(text, &results); err != nil || len(results) != len(test.numbers) {
				t.Fatalf("got %d rows, error %v, want %d", len(results), err, len(test.numbers))
			}
			for _, r := range results {
				if r.Error != "" || len(r.Numbers) < test.numbers[r.Row] {
					t.Errorf("%s: got %v, error %q, want %d figures", r.Row, r.Numbers, r.Error, test.numbers[r.Row])
				}
			}
		})
	}
}

// figures are those that a row has at least: a processor time of less than 10 ms is none.
func figures(kill bool) map[string]int {
	rows := map[string]int{"attempts": 3, "creates": 1, "late": 4, "half": 4, "memory": 2, "million": 4, "million-attempts": 3,
		"million-memory": 1}
	if kill {
		rows["kill"] = 2
	}
	return rows
}

// serves wants a built retry with the command serve in RETRY_PROGRAM.
func serves() error { return exec.Command(os.Getenv("RETRY_PROGRAM"), "serve", "--help").Run() }
