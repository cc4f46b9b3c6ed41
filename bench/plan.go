package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// attempts is how often the commands with many attempts try.
const attempts = "100"

// loop tries "$1" as often as "$2" says: what a script without retry does. A path keeps the shell from using a builtin.
const loop = `i=0; until "$1"; do i=$((i+1)); [ "$i" -lt "$2" ] || exit 1; done`

// third fails twice and then succeeds, by a count in the file that it is given. A shell does all of it without starting anything.
const third = `read n <"$1"; echo $(((n + 1) % 3)) >"$1"; [ "$n" -eq 2 ]`

// plan is what a run of bench is about.
type plan struct {
	options
	tools
	dir string // takes the journals
}

// groups lists what is timed, in its order, as far as a pattern chooses it.
func (p plan) groups(chosen *regexp.Regexp) []group {
	all := []group{p.success(), p.three(), p.hundred(), p.together(), p.grown(), p.requests(), p.pipes()}
	return slices.DeleteFunc(all, func(g group) bool { return !chosen.MatchString(g.name) })
}

func (p plan) journal(name string) string { return filepath.Join(p.dir, "journal-"+name) }

func (p plan) success() group {
	state := p.journal("success")
	return group{name: "success", title: "Success at once", warmups: 5, runs: p.runs, commands: []command{
		{name: bare, label: "true", argv: []string{p.yes}},
		{name: debian, label: "Debian's retry -- true", argv: []string{p.debian, "--", "true"}},
		{name: "empty", label: "an empty Go program", argv: []string{p.empty}},
		{name: "fork", label: "a Go program that runs true", argv: []string{p.fork, "true"}},
		{name: "loop", label: "a loop in Go -- true", argv: []string{p.loop, "--", "true"}},
		{name: "recur", label: "recur -- true", argv: []string{p.recur, "--", "true"}},
		{name: "retry", label: "retry -- true", argv: []string{p.retry, "--", "true"}, state: state},
		{name: "no-state", label: "retry --no-state -- true", argv: []string{p.retry, "--no-state", "--", "true"}},
		{name: "before", label: "retry -- true, before", argv: []string{p.before, "--", "true"}, state: p.journal("before")},
		{name: "before-no-state", label: "retry --no-state -- true, before", argv: []string{p.before, "--no-state", "--", "true"}},
		{name: "flags", label: "retry -n 3 -- true", argv: []string{p.retry, "-n", "3", "--", "true"}, state: state},
		{name: "capture", label: "retry --capture both -- true", argv: []string{p.retry, "--capture", "both", "--", "true"}, state: state},
	}}
}

// three is a script that fails twice and then succeeds.
func (p plan) three() group {
	script := filepath.Join(p.dir, "third.sh")
	g := group{name: "three", title: "A script that succeeds at the third attempt, no delay", warmups: 5, runs: p.runs}
	add := func(c command, wrapper ...string) {
		c.argv = slices.Concat(wrapper, []string{"sh", script, filepath.Join(p.dir, "count-"+c.name)})
		g.commands = append(g.commands, c)
	}
	add(command{name: bare, label: "a loop in sh"}, "sh", "-c", `until "$@"; do :; done`, "sh")
	add(command{name: debian, label: "Debian's retry --delay=0 -- SCRIPT"}, p.debian, "--delay=0", "--")
	add(command{name: "loop", label: "a loop in Go"}, p.loop, "--")
	add(command{name: "recur", label: "recur"}, p.recur, "--")
	add(command{name: "retry", label: "retry -b constant:0 -- SCRIPT", state: p.journal(g.name)}, p.retry, "-b", "constant:0", "--")
	add(command{name: "no-state", label: "retry -b constant:0 --no-state -- SCRIPT"}, p.retry, "-b", "constant:0", "--no-state", "--")
	add(command{name: "capture", label: "retry -b constant:0 --capture both -- SCRIPT", state: p.journal(g.name)},
		p.retry, "-b", "constant:0", "--capture", "both", "--")
	g.setUp = func(context.Context, *group) (func(), error) { return func() {}, g.writeThird(script) }
	return g
}

// writeThird writes the script, and each command a count of its own to begin with.
func (g group) writeThird(script string) error {
	err := os.WriteFile(script, []byte(third+"\n"), 0o600)
	for _, c := range g.commands {
		err = errors.Join(err, os.WriteFile(c.argv[len(c.argv)-1], []byte("0\n"), 0o600))
	}
	return err
}

func (p plan) hundred() group {
	g := group{name: "hundred", title: attempts + " attempts of false, no delay", warmups: 1, runs: p.longRuns, commands: []command{
		{name: bare, label: "a loop in sh", argv: []string{"sh", "-c", loop, "sh", p.no, attempts}},
		{name: debian, label: "Debian's retry --times=" + attempts + " --delay=0 -- false",
			argv: []string{p.debian, "--times=" + attempts, "--delay=0", "--", "false"}},
		{name: "loop", label: "a loop in Go -n " + attempts + " -- false", argv: []string{p.loop, "-n", attempts, "--", "false"}},
		{name: "recur", label: "recur -a " + attempts + " -- false", argv: []string{p.recur, "-a", attempts, "--", "false"}},
	}}
	add := func(name, program, flags, state, note string) {
		flags = "-n " + attempts + " -b constant:0" + flags + " -- false"
		g.commands = append(g.commands, command{name: name, label: "retry " + flags + note, argv: append([]string{program}, strings.Fields(flags)...), state: state})
	}
	add("retry", p.retry, "", p.journal(g.name), "")
	add("no-state", p.retry, " --no-state", "", "")
	add("before", p.before, "", p.journal("before"), ", before")
	add("before-no-state", p.before, " --no-state", "", ", before")
	add("capture", p.retry, " --capture both", p.journal(g.name), "")
	for i := range g.commands {
		g.commands[i].exit = 1
	}
	return g
}

// together starts many at once: how long until all have ended.
func (p plan) together() group {
	const many = 64
	g := group{name: "together", title: strconv.Itoa(many) + " at once, until all have ended", warmups: 1, runs: p.longRuns, unwatched: true, commands: []command{
		{name: bare, label: "true", argv: []string{p.yes}},
		{name: debian, label: "Debian's retry -- true", argv: []string{p.debian, "--", "true"}},
		{name: "loop", label: "a loop in Go -- true", argv: []string{p.loop, "--", "true"}},
		{name: "retry", label: "retry -- true, one journal", argv: []string{p.retry, "--", "true"}, state: p.journal("together")},
		{name: "no-state", label: "retry --no-state -- true", argv: []string{p.retry, "--no-state", "--", "true"}},
	}}
	for i := range g.commands {
		g.commands[i].atOnce = many
	}
	return g
}
