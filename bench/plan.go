package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// role says what a command is compared as.
type role int

const (
	ours   role = iota
	bare        // the command without any retry around it
	debian      // Debian's retry
)

// command is one process to time, whole.
type command struct {
	label string
	role  role
	argv  []string
	exit  int    // the exit code it must end with
	state string // its RETRY_STATE_DIR, "" for none; a run leaves a journal there
}

// group is a set of commands that do the same work and take turns.
type group struct {
	title    string
	warmups  int
	runs     int
	commands []command
}

// attempts is how often the second group tries.
const attempts = "100"

// loop tries "$1" as often as "$2" says: what a script without retry does. A path keeps the shell from using a builtin.
const loop = `i=0; until "$1"; do i=$((i+1)); [ "$i" -lt "$2" ] || exit 1; done`

// plan lists what is timed. An empty debianRetry leaves its rows out; dir takes the journals.
func plan(o options, retry, debianRetry, dir string) ([]group, error) {
	truePath, err := exec.LookPath("true")
	if err != nil {
		return nil, fmt.Errorf("find a command to wrap: %w", err)
	}
	falsePath, err := exec.LookPath("false")
	if err != nil {
		return nil, fmt.Errorf("find a command to wrap: %w", err)
	}
	short := group{title: "Success at once", warmups: 5, runs: o.runs, commands: []command{
		{label: "true", role: bare, argv: []string{truePath}},
		{label: "Debian's retry -- true", role: debian, argv: []string{debianRetry, "--", "true"}},
		{label: "retry -- true", argv: []string{retry, "--", "true"}, state: filepath.Join(dir, "short")},
		{label: "retry --no-state -- true", argv: []string{retry, "--no-state", "--", "true"}},
	}}
	long := group{title: attempts + " attempts of false, no delay", warmups: 1, runs: o.longRuns, commands: []command{
		{label: "a loop in sh", role: bare, exit: 1, argv: []string{"sh", "-c", loop, "sh", falsePath, attempts}},
		{label: "Debian's retry --times=" + attempts + " --delay=0 -- false", role: debian, exit: 1,
			argv: []string{debianRetry, "--times=" + attempts, "--delay=0", "--", "false"}},
		{label: "retry -n " + attempts + " -b constant:0 -- false", exit: 1,
			argv: []string{retry, "-n", attempts, "-b", "constant:0", "--", "false"}, state: filepath.Join(dir, "long")},
		{label: "retry -n " + attempts + " -b constant:0 --no-state -- false", exit: 1,
			argv: []string{retry, "-n", attempts, "-b", "constant:0", "--no-state", "--", "false"}},
	}}
	groups := []group{short, long}
	if debianRetry == "" {
		for i := range groups {
			groups[i].commands = without(debian, groups[i].commands)
		}
	}
	return groups, nil
}

func without(r role, all []command) []command {
	var kept []command
	for _, c := range all {
		if c.role != r {
			kept = append(kept, c)
		}
	}
	return kept
}

// findDebian is the first retry in the folders that is Debian's by its help, or "".
func findDebian(ctx context.Context, folders []string) string {
	for _, folder := range folders {
		path, err := exec.LookPath(filepath.Join(folder, "retry"))
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		help, _ := exec.CommandContext(ctx, path, "--help").CombinedOutput()
		cancel()
		if strings.Contains(string(help), "--until") {
			return path
		}
	}
	return ""
}

// environment is ours without any setting of retry's but the state directory, and without what tells it that this is a CI job.
func (c command) environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "RETRY_") {
			env = append(env, entry)
		}
	}
	env = append(env, "GITHUB_ACTIONS=", "GITLAB_CI=")
	if c.state != "" {
		env = append(env, "RETRY_STATE_DIR="+c.state)
	}
	return env
}
