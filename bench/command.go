package main

import (
	"context"
	"os"
	"strings"
)

// Names of commands that others are compared with.
const (
	bare   = "bare"   // the work without any retry around it, or what stands for that
	debian = "debian" // Debian's retry
)

// command is one process to time, whole, or many of them at once.
type command struct {
	name   string // within its group
	label  string
	argv   []string
	exit   int    // the exit code it must end with
	state  string // its RETRY_STATE_DIR, "" for none; a run leaves a journal there
	atOnce int    // so many are started, and all are waited for; 0 and 1 are one
}

// group is a set of commands that do the same work and take turns.
type group struct {
	name      string // what -only chooses by
	title     string
	warmups   int
	runs      int
	bytes     int64 // that a run passes on; 0 where that is not what is timed
	unwatched bool  // the memory of its commands says nothing
	commands  []command
	// setUp, where there is one, makes what the commands need, and returns what ends that.
	setUp func(context.Context, *group) (done func(), err error)
}

// present leaves out the commands whose program is not there.
func (g group) present() group {
	var kept []command
	for _, c := range g.commands {
		if c.argv[0] != "" {
			kept = append(kept, c)
		}
	}
	g.commands = kept
	return g
}

// environment is ours without any setting of retry's but the state directory, and without what tells it that this is a CI job. There is no
// config file.
func (c command) environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "RETRY_") {
			env = append(env, entry)
		}
	}
	env = append(env, "GITHUB_ACTIONS=", "GITLAB_CI=", "XDG_CONFIG_HOME=/nonexistent")
	if c.state != "" {
		env = append(env, "RETRY_STATE_DIR="+c.state)
	}
	return env
}
