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

// null is the null device, open.
func null(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestCheck(t *testing.T) {
	journaled := shell(`mkdir "$RETRY_STATE_DIR" && : >"$RETRY_STATE_DIR/journal"`, 0)
	journaled.state = filepath.Join(t.TempDir(), "state")
	forgetful := shell("", 0)
	forgetful.state = filepath.Join(t.TempDir(), "state")
	talkative, silent := shell("echo 'warning: x' >&2", 0), shell("", 0)
	talkative.atOnce, silent.atOnce = 2, 2
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
		{"many at once", silent, ""},
		{"many at once, with a warning", talkative, "warning: x\nwarning: x"},
		{"no journal", forgetful, "left no journal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.c.check(null(t))
			if test.want == "" && err != nil {
				t.Errorf("check = %v, want no error", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("check = %v, want an error with %q", err, test.want)
			}
		})
	}
}

// Two that wait for each other end only where they run at once.
func TestManyAtOnce(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	meet := shell("mkfifo "+pipe+" 2>/dev/null && : <"+pipe+" || : >"+pipe, 0)
	meet.atOnce = 2
	s, err := meet.time(null(t), null(t))
	if err != nil || s.wall <= 0 || s.cpu <= 0 {
		t.Errorf("time = %+v, %v", s, err)
	}
}

func TestManyAtOnceAllCount(t *testing.T) {
	dir := t.TempDir()
	odd := shell("mkdir "+filepath.Join(dir, "first")+" 2>/dev/null", 0) // one of them succeeds
	odd.atOnce = 3
	if _, err := odd.time(null(t), null(t)); err == nil || strings.Count(err.Error(), "exit code 1, not 0") != 2 {
		t.Errorf("time = %v, want the ends of two", err)
	}
	absent := command{label: "nothing", argv: []string{"/no/such/file"}, atOnce: 2}
	if _, err := absent.time(null(t), null(t)); err == nil {
		t.Error("time = nil for what is not there")
	}
}

func TestSetUp(t *testing.T) {
	ended := false
	g := group{runs: 1, unwatched: true, setUp: func(_ context.Context, g *group) (func(), error) {
		g.commands = []command{shell("", 0)}
		return func() { ended = true }, nil
	}}
	f, err := g.measure(t.Context())
	if err != nil || len(f.Rows) != 1 || f.Rows[0].PeakKiB != 0 || !ended {
		t.Errorf("measure = %+v, %v; ended: %t", f, err, ended)
	}
	g.setUp = func(context.Context, *group) (func(), error) { return nil, os.ErrPermission }
	if _, err := g.measure(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("measure = %v, want what setUp said", err)
	}
}

// A journal of its own, of a line for each run.
func TestComplete(t *testing.T) {
	for _, test := range []struct{ name, status, want string }{
		{"all", "SUCCEEDED", ""},
		{"one that is not over", "IN_FLIGHT", "0 tasks succeeded by its journal, not 6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			binary := script(t, `cd "$RETRY_STATE_DIR"; [ "$1" = status ] || { printf ',{"status":"`+test.status+`"}' >>log; exit; }
printf '{"tasks":['; cut -c 2- log; echo ']}'`) + "/retry"
			c := command{label: "it", argv: []string{binary, "--", "true"}, atOnce: 2, state: t.TempDir()}
			for range 3 {
				if _, err := c.time(null(t), null(t)); err != nil {
					t.Fatal(err)
				}
			}
			err := c.complete(3)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("complete = %v, want %q", err, test.want)
			}
			if err := c.complete(4); err == nil {
				t.Error("complete does not miss a round")
			}
		})
	}
}
