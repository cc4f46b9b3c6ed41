package main

import (
	"context"
	"os/exec"
	"testing"
)

// What is timed works: curl gets the reply, and so may a retry in its place.
func TestRequests(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl to compare with")
	}
	g, done, err := requests(options{runs: 1}, curl, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if len(g.commands) != 3 || g.commands[0].role != bare {
		t.Fatalf("%+v", g.commands)
	}
	g.commands, g.warmups = g.commands[:1], 0
	if _, err := g.measure(context.Background()); err != nil {
		t.Error(err)
	}
}
