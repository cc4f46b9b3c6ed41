//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/test/bench/load"
)

func shell(code string, exit int) *command {
	return &command{label: "a script", argv: []string{"sh", "-c", code}, exit: exit}
}

// script writes an executable shell script named retry into a new folder.
func script(t *testing.T, body string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "retry"), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestMeasureRunsEachCommandOnceARound(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	a, b := shell("printf a >>"+log+"; exit 4", 4), shell("printf b >>"+log, 0)
	g := group{runs: 20, atOnce: 1, commands: []*command{a, b}}
	if err := g.measure(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.commands {
		if len(c.wall) != 20 || len(c.cpu) != 20 || load.Percentile(c.wall, 0) <= 0 {
			t.Errorf("got times %v and processor times %v, want 20 each", c.wall, c.cpu)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	order := string(text)
	if want := 2 * (3 + 20); len(order) != want { // three rounds are not counted
		t.Fatalf("got %d runs, want %d: %s", len(order), want, order)
	}
	seen := map[string]bool{}
	for pair := range slices.Chunk([]byte(order), 2) {
		seen[string(pair)] = true
	}
	if len(seen) != 2 || !seen["ab"] || !seen["ba"] {
		t.Errorf("got rounds %v, want both orders: ab and ba", seen)
	}
}

func TestMeasureFails(t *testing.T) {
	one := shell("mkdir "+filepath.Join(t.TempDir(), "first")+" 2>/dev/null", 0) // the first of them succeeds
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		c      *command
		atOnce int
		want   string // part of the error
	}{
		{"with another exit code, and its message", t.Context(), shell("echo 'unknown flag' >&2; exit 125", 1), 1,
			"got exit code 125, want 1\nunknown flag"},
		{"with success where failure is due", t.Context(), shell("", 1), 1, "got exit code 0, want 1"},
		{"with a signal", t.Context(), shell("kill -9 $$", 0), 1, "got exit code -1, want 0"},
		{"with a warning", t.Context(), shell("echo 'retry: warning: x' >&2", 0), 1,
			"got warnings, want none:\nretry: warning: x"},
		{"without a program", t.Context(), &command{label: "nothing", argv: []string{"/no/such/file"}}, 1,
			"run nothing: "},
		{"after an interrupt", canceled, shell("", 0), 1, context.Canceled.Error()},
		{"when one of many fails", t.Context(), one, 3, "got exit code 1, want 0\ngot exit code 1, want 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := group{runs: 1, atOnce: test.atOnce, commands: []*command{test.c}}
			err := g.measure(test.ctx, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// Two processes that wait for each other end only where they run at once.
func TestManyRunAtOnce(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	c := shell("mkfifo "+pipe+" 2>/dev/null && : <"+pipe+" || : >"+pipe, 0)
	if err := c.time(2, nil, true); err != nil || c.wall[0] <= 0 || c.cpu[0] <= 0 {
		t.Errorf("got times %v and %v, error %v", c.wall, c.cpu, err)
	}
}

func TestMissingTasksAreAnError(t *testing.T) {
	for _, test := range []struct{ name, status, want string }{
		{"all succeeded", "SUCCEEDED", ""},
		{"none has ended", "IN_FLIGHT", "got 0 succeeded tasks, want 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := script(t, `cd "$RETRY_STATE_DIR"; 
[ "$1" = status ] || { printf ',{"status":"`+test.status+`"}' >>log; exit; }
printf '{"tasks":['; cut -c 2- log; echo ']}'`)
			c := &command{label: "it", argv: []string{filepath.Join(folder, "retry"), "--", "true"}, state: t.TempDir()}
			err := group{runs: 1, atOnce: 2, commands: []*command{c}}.measure(t.Context(), t.TempDir())
			if test.want == "" && err != nil || test.want != "" &&
				(err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func labels(g group) (all []string) {
	for _, c := range g.commands {
		all = append(all, c.label)
	}
	return all
}

func TestRows(t *testing.T) {
	all := programs{"retry": "/r", "before": "/b", "loop": "/l", "true": "/t", "debian": "/d", "curl": "/c"}
	every := plan{programs: all, runs: 10, dir: "/dir", url: "http://host/"}
	few := plan{programs: programs{"retry": "/r", "loop": "/l", "true": "/t"}, runs: 10}
	if got, want := labels(few.groups()[1]), []string{"loop -n 100 -- false", "retry -n 100 -b constant:0 -- false",
		"retry --no-state -n 100 -b constant:0 -- false"}; !slices.Equal(got, want) {
		t.Errorf("without Debian's: got rows %q, want %q", got, want)
	}
	http := every.groups()[4]
	if got, want := labels(http), []string{"curl -s URL", "retry http URL", "retry http URL, before",
		"retry http --no-state URL", "retry http --no-state URL, before"}; !slices.Equal(got, want) {
		t.Errorf("got rows %q, want %q", got, want)
	}
	now, before := http.commands[1], http.commands[2]
	if want := []string{"/b", "http", "http://host/"}; now.before != before || !slices.Equal(before.argv, want) {
		t.Errorf("got %q as the row before, want %q", before.argv, want)
	}
	if now.state == before.state || before.state == "" {
		t.Errorf("got journals %q and %q, want one for each build", now.state, before.state)
	}
	for i, want := range []int{0, 1, 0, 0, 0} {
		for _, c := range every.groups()[i].commands {
			if c.exit != want {
				t.Errorf("%s: got exit code %d, want %d", c.label, c.exit, want)
			}
		}
	}
}

func TestPrint(t *testing.T) {
	before := &command{label: "retry, before", wall: []float64{4}, cpu: []float64{1}}
	g := group{title: "Success", runs: 3, commands: []*command{
		{label: "theirs", wall: []float64{2, 1, 2}, cpu: []float64{0.5}},
		{label: "retry", wall: []float64{5, 3, 9}, cpu: []float64{2.5}, reach: "≤ 4", before: before}, before}}
	var out strings.Builder
	g.print(&out)
	want := strings.ReplaceAll(`
| Success (3 runs) | median ms | p10 | CPU ms | to the first row | to reach | to before |
|---|--:|--:|--:|--:|--:|--:|
| ~theirs~ | 2.00 | 1.00 | 0.50 | 1.00 (1.00, 1.00) | – | – |
| ~retry~ | 5.00 | 3.00 | 2.50 | 2.50 (3.00, 5.00) | ≤ 4 | 1.25 (0.75, 2.50) |
| ~retry, before~ | 4.00 | 4.00 | 1.00 | 2.00 (4.00, 2.00) | – | – |
`, "~", "`")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestWaiting(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the private memory")
	}
	waits := programs{"retry": filepath.Join(script(t, "exec sleep 60"), "retry")}
	var out strings.Builder
	err := plan{programs: waits, dir: t.TempDir()}.waiting(&out, 0)
	if want := "| `retry --no-state -b constant:1h -- false` | "; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("got error %v and\n%s\nwant %q", err, &out, want)
	}
}

func TestServiceTellsOfRowsThatFail(t *testing.T) {
	refuses := programs{"retry": filepath.Join(script(t, "echo 'no such command' >&2; exit 2"), "retry")}
	var out strings.Builder
	both := programs{"retry": refuses["retry"], "before": refuses["retry"]}
	err := plan{programs: both, dir: t.TempDir(), runs: 200}.service(t.Context(), &out, load.Usual())
	if !strings.Contains(out.String(), "200 slots, bodies of 256 bytes, medians of 3") {
		t.Errorf("got\n%s\nwant the settings", &out)
	}
	want, beside := len(load.Rows()), 3
	if runtime.GOOS != "linux" {
		want, beside = want-2, 2 // without the memory
	}
	if got := strings.Count(out.String(), "**failed**: "); got != 2*want-beside {
		t.Errorf("got %d failed cells, want %d, the build before without a million:\n%s", got, 2*want-beside, &out)
	}
	if err == nil || !strings.Contains(err.Error(), "attempts of retry; attempts of before; ") {
		t.Errorf("got error %v, want one that names the rows", err)
	}
}

func TestFindDebian(t *testing.T) {
	another := script(t, "echo 'usage: retry --attempts N'")
	theirs := script(t, "echo '  -u criteria, --until=criteria'")
	for _, test := range []struct {
		name    string
		folders []string
		want    string
	}{
		{"none", []string{t.TempDir()}, ""},
		{"another retry", []string{another}, ""},
		{"behind another", []string{t.TempDir(), another, theirs}, filepath.Join(theirs, "retry")},
	} {
		if got := findDebian(t.Context(), test.folders); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestProcessHidesTheCallersSettings(t *testing.T) {
	t.Setenv("RETRY_ATTEMPTS", "3")
	t.Setenv("RETRY_STATE_DIR", "/mine")
	env := (&command{argv: []string{"true"}, state: "/fresh"}).process(nil).Env
	for entry, want := range map[string]bool{"RETRY_ATTEMPTS=3": false, "RETRY_STATE_DIR=/mine": false,
		"RETRY_STATE_DIR=/fresh": true, "XDG_CONFIG_HOME=/nonexistent": true} {
		if got := slices.Contains(env, entry); got != want {
			t.Errorf("%s: got %t, want %t", entry, got, want)
		}
	}
}

func TestLoop(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if said, err := exec.Command("go", "build", "-o", loop, "./loop").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, test := range []struct {
		code string
		exit int
		want string
	}{
		{"printf x; exit 1", 1, "xxx"},
		{"printf x", 0, "x"},
	} {
		out, err := exec.Command(loop, "-n", "3", "--", "sh", "-c", test.code).Output()
		exit := 0
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			exit = failed.ExitCode()
		}
		if string(out) != test.want || exit != test.exit {
			t.Errorf("%s: got %q and exit code %d, want %q and %d", test.code, out, exit, test.want, test.exit)
		}
	}
}
