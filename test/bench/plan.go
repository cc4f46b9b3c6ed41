package main

import (
	"path/filepath"
	"strings"
)

// plan is what a run of bench measures.
type plan struct {
	programs
	runs int
	dir  string // takes the programs and the journals
	url  string // of a server on loopback
}

// group is a table: commands that do the same work and are measured in turn. The others are compared with the first.
type group struct {
	name, title  string
	runs, atOnce int // atOnce processes of a command are started together
	commands     []*command
}

type command struct {
	label     string // the command line as a person types it
	argv      []string
	state     string // RETRY_STATE_DIR; "" where the command has no journal
	exit      int    // the exit code that it must end with
	reach     string // the bound in the project's specification
	before    *command
	wall, cpu []float64 // measured, in milliseconds; cpu includes the children
}

func (p plan) journal(name string) string { return filepath.Join(p.dir, "journal-"+name) }

// groups lists the tables. Rows whose program is missing are left out.
func (p plan) groups() []group {
	success := group{name: "success", title: "One attempt that succeeds", runs: p.runs, atOnce: 1}
	success.add(p, "debian", "Debian's retry -- true", "")
	success.add(p, "true", "true", "")
	success.add(p, "loop", "loop -- true", "")
	success.add(p, "retry", "retry -- true", "≤ 2.6 × Debian's")
	success.add(p, "retry", "retry -n 3 -b constant:1s -- true", "")
	success.add(p, "retry", "retry --no-state -- true", "≤ 2.4 × Debian's")

	hundred := group{name: "hundred", title: "100 attempts, no delay", runs: max(1, p.runs/5), atOnce: 1}
	hundred.add(p, "debian", "Debian's retry --times=100 --delay=0 -- false", "")
	hundred.add(p, "loop", "loop -n 100 -- false", "")
	hundred.add(p, "retry", "retry -n 100 -b constant:0 -- false", "≤ 1.10 × Debian's")
	hundred.add(p, "retry", "retry --no-state -n 100 -b constant:0 -- false", "≤ 1.00 × Debian's")

	together := group{name: "together", title: "64 at once on one journal", runs: max(1, p.runs/5), atOnce: 64}
	together.add(p, "retry", "retry --no-state -- true", "")
	together.add(p, "retry", "retry -- true", "≤ 1.4 × --no-state")
	together.add(p, "debian", "Debian's retry -- true", "")
	together.add(p, "loop", "loop -- true", "")

	retry := p.programs["retry"]
	million := group{name: "million", title: "A journal of a million attempts", runs: p.runs, atOnce: 1}
	million.commands = []*command{
		{label: "retry -- true, empty journal", argv: []string{retry, "--", "true"}, state: p.journal("empty")},
		{label: "retry -- true", argv: []string{retry, "--", "true"}, state: p.journal("million"), reach: "≤ 1.1 × empty"},
		{label: "retry status", argv: []string{retry, "status"}, state: p.journal("million"), reach: "≤ 30 ms"},
	}

	http := group{name: "http", title: "One request on loopback", runs: p.runs, atOnce: 1}
	http.add(p, "curl", "curl -s URL", "")
	http.add(p, "retry", "retry http URL", "≤ 1 × curl")
	http.add(p, "retry", "retry http --no-state URL", "")
	return []group{success, hundred, together, million, http}
}

// add appends a row for a program, if the machine has it, and after one of retry another of the build before. This has
// a journal of its own, because an older build cannot read a newer one's.
func (g *group) add(p plan, program, label, reach string) *command {
	path := p.programs[program]
	if path == "" {
		return nil
	}
	line := strings.Replace(strings.TrimPrefix(label, "Debian's "), "URL", p.url, 1)
	c := &command{label: label, argv: append([]string{path}, strings.Fields(line)[1:]...), reach: reach}
	if strings.HasSuffix(line, " false") {
		c.exit = 1
	}
	g.commands = append(g.commands, c)
	switch program {
	case "retry":
		c.state = p.journal(g.name)
		c.before = g.add(p, "before", label, "")
	case "before":
		c.label, c.state = label+", before", p.journal(g.name+"-before")
	}
	return c
}
