//go:build unix

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allTools has a path for each; none of them is there.
var allTools = tools{retry: "/r", before: "/b", debian: "/d", recur: "/u", curl: "/c", empty: "/e", fork: "/f", loop: "/l", yes: "/t", no: "/n"}

func names(groups []group) (names []string) {
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

func TestOnlyChoosesGroups(t *testing.T) {
	for pattern, want := range map[string][]string{
		"":                 {"success", "three", "hundred", "together", "million", "http", "pipes"},
		"^(hundred|pipes)": {"hundred", "pipes"},
		"ree":              {"three"},
		"waiting":          nil,
	} {
		if got := names(plan{}.groups(regexp.MustCompile(pattern))); !slices.Equal(got, want) {
			t.Errorf("-only %q: %q, want %q", pattern, got, want)
		}
	}
}

// What is compared by name has one row of that name, and a target names rows that there are.
func TestNamesOfRows(t *testing.T) {
	p := plan{options: options{runs: 1, longRuns: 1, bytes: 1 << 20}, tools: allTools, dir: t.TempDir()}
	var r report
	for _, g := range p.groups(regexp.MustCompile("")) {
		var seen []string
		for _, c := range g.commands {
			if slices.Contains(seen, c.name) {
				t.Errorf("%s has two rows named %s", g.name, c.name)
			}
			seen = append(seen, c.name)
		}
		if !slices.Contains(seen, bare) {
			t.Errorf("%s has nothing to compare with: %q", g.name, seen)
		}
		samples := make([][]sample, len(g.commands))
		for i := range samples {
			samples[i] = walled(1)
		}
		r.Groups = append(r.Groups, g.summarise(samples, make([]int64, len(samples))))
	}
	for _, a := range aims {
		if _, ok := a.find(r, medians); !ok {
			t.Errorf("no rows for %s", a.what)
		}
	}
}

func TestAbsentToolsAreLeftOut(t *testing.T) {
	few := allTools
	few.debian, few.recur, few.curl, few.before = "", "", "", ""
	all := plan{tools: allTools}.groups(regexp.MustCompile(""))
	for i, g := range (plan{tools: few}).groups(regexp.MustCompile("")) {
		kept, absent := g.present().commands, 0
		for _, c := range all[i].commands {
			if slices.Contains([]string{"/d", "/u", "/c", "/b"}, c.argv[0]) {
				absent++
			}
		}
		if len(kept) != len(all[i].commands)-absent {
			t.Errorf("%s: %d rows of %d, %d of programs that are not there", g.name, len(kept), len(all[i].commands), absent)
		}
	}
}

// A round of a command is three attempts, whatever repeats it: the shell here.
func TestThird(t *testing.T) {
	g := plan{options: options{runs: 2}, tools: tools{loop: "/none"}, dir: t.TempDir()}.three()
	if _, err := g.setUp(t.Context(), &g); err != nil {
		t.Fatal(err)
	}
	c := g.commands[0]
	c.argv = c.argv[4:]
	for i, exit := range []int{1, 1, 0, 1, 1, 0} {
		if c.exit = exit; c.check(null(t)) != nil {
			t.Errorf("attempt %d: %v", i+1, c.check(null(t)))
		}
	}
	c = g.commands[0]
	if err := c.check(null(t)); err != nil {
		t.Errorf("the loop: %v", err)
	}
	if count, err := os.ReadFile(c.argv[len(c.argv)-1]); err != nil || string(count) != "0\n" {
		t.Errorf("after three attempts the count is %q, %v", count, err)
	}
}

func TestLoopTriesAsOftenAsItIsTold(t *testing.T) {
	c := plan{tools: tools{no: "false"}}.hundred().commands[0]
	c.argv = slices.Clone(c.argv)
	c.argv[4] = script(t, `echo x >>"${0%/*}/log"; exit 1`) + "/retry"
	if err := c.check(null(t)); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(strings.TrimSuffix(c.argv[4], "retry") + "log")
	if err != nil || len(log) != 2*100 {
		t.Errorf("%d attempts, %v", len(log)/2, err)
	}
}

// A cat in retry's place shows that the pipelines pass all bytes on and end well.
func TestPipes(t *testing.T) {
	p := plan{options: options{bytes: 1 << 20}, tools: tools{retry: script(t, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`) + "/retry"}, dir: t.TempDir()}
	for _, c := range p.pipes().commands {
		c.state = ""
		c.argv[2] = strings.Replace(c.argv[2], ">/dev/null", "| wc -c | grep -qx ' *1048576'", 1)
		if err := c.check(null(t)); err != nil {
			t.Errorf("%s: %v", c.argv[2], err)
		}
	}
}

func TestEnvironmentHidesOurSettings(t *testing.T) {
	t.Setenv("RETRY_ATTEMPTS", "3")
	t.Setenv("RETRY_STATE_DIR", "/mine")
	env := command{state: "/fresh"}.environment()
	if slices.Contains(env, "RETRY_ATTEMPTS=3") || slices.Contains(env, "RETRY_STATE_DIR=/mine") {
		t.Errorf("the caller's settings reach the command: %q", env)
	}
	if !slices.Contains(env, "XDG_CONFIG_HOME=/nonexistent") {
		t.Errorf("the caller's config file may be read: %q", env)
	}
	if !slices.Contains(env, "RETRY_STATE_DIR=/fresh") {
		t.Errorf("no state directory in %q", env)
	}
}
