//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func shell(code string, exit int) command {
	return command{label: "a script", argv: []string{"sh", "-c", code}, exit: exit}
}

func TestMeasureTakesTurns(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	g := group{warmups: 2, runs: 3, commands: []command{
		shell("printf a >>"+log+"; exit 4", 4),
		shell("printf b >>"+log, 0),
	}}
	f, err := g.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Rows) != 2 || f.Rows[0].Median <= 0 || f.Rows[1].Median <= 0 {
		t.Errorf("rows without a time: %+v", f.Rows)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	order := string(text)
	const rounds = 1 + 2 + 3 + peakRuns // checked, warmed up, measured, watched
	if len(order) != 2*rounds {
		t.Fatalf("%d runs, want %d: %s", len(order), 2*rounds, order)
	}
	for i := 0; i < len(order); i += 2 {
		if order[i] == order[i+1] {
			t.Errorf("round %d runs one command twice: %s", i/2, order)
		}
	}
}

func TestMeasureStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := group{runs: 1, commands: []command{shell("", 0)}}.measure(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("measure = %v, want context.Canceled", err)
	}
}

func TestCheck(t *testing.T) {
	journaled := shell(`mkdir "$RETRY_STATE_DIR" && : >"$RETRY_STATE_DIR/journal"`, 0)
	journaled.state = filepath.Join(t.TempDir(), "state")
	forgetful := shell("", 0)
	forgetful.state = filepath.Join(t.TempDir(), "state")
	for _, test := range []struct {
		name string
		c    command
		want string // part of the error, "" for none
	}{
		{"as planned", shell("exit 1", 1), ""},
		{"another exit code, and why", shell("echo 'unknown flag' >&2; exit 125", 1), "exit code 125, not 1\nunknown flag"},
		{"success where failure is due", shell("", 1), "exit code 0, not 1"},
		{"a signal", shell("kill -9 $$", 0), "exit code -1, not 0"},
		{"not there", command{label: "nothing", argv: []string{"/no/such/file"}}, "run nothing: "},
		{"a journal", journaled, ""},
		{"no journal", forgetful, "left no journal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.c.check()
			if test.want == "" && err != nil {
				t.Errorf("check = %v, want no error", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("check = %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestHighWater(t *testing.T) {
	for _, test := range []struct {
		name   string
		status string
		want   int64
		ok     bool
	}{
		{"alive", "Name:\ttrue\nVmPeak:\t    9999 kB\nVmHWM:\t    1336 kB\nVmRSS:\t    1200 kB\n", 1336, true},
		{"a zombie", "Name:\ttrue\nState:\tZ (zombie)\n", 0, false},
		{"nothing", "", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := highWater([]byte(test.status)); got != test.want || ok != test.ok {
				t.Errorf("highWater = %d, %v; want %d, %v", got, ok, test.want, test.ok)
			}
		})
	}
}
