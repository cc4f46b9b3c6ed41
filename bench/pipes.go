package main

import (
	"fmt"
	"path/filepath"
)

// pipes times how fast bytes go through. Each pipeline has three programs and two pipes; cat stands where retry is in the others.
func (p plan) pipes() group {
	g := group{name: "pipes", bytes: p.bytes, warmups: 1, runs: max(3, p.longRuns/4), unwatched: true}
	g.title = fmt.Sprintf("%d MiB through a pipe", p.bytes>>20)
	source := fmt.Sprintf("head -c %d /dev/zero", p.bytes)
	add := func(name, label, script, state string) {
		kept := filepath.Join(p.dir, "kept")
		g.commands = append(g.commands, command{name: name, label: label, argv: []string{"sh", "-c", script, p.retry, kept}, state: state})
	}
	into := func(wrapper string) string { return source + " | " + wrapper + " | cat >/dev/null" }
	state := p.journal(g.name)
	add(bare, "cat", into("cat"), "")
	add("tee", "tee FILE", into(`tee "$1"`), "")
	add("stdin", "stdin, as it is: retry -- cat", source+` | "$0" -- cat | cat >/dev/null`, state)
	add("replay", "stdin, kept: retry --stdin replay -- cat", source+` | "$0" --stdin replay -- cat >/dev/null`, state)
	add("stdout", "stdout, as it is: retry -- head", `"$0" -- `+into("cat"), state)
	add("held", "stdout, held: retry --output success -- head", `"$0" --output success -- `+source+" | cat >/dev/null", state)
	add("capture", "stdout, its end kept: retry --capture both -- head", `"$0" --capture both -- `+source+" | cat >/dev/null", state)
	return g
}
