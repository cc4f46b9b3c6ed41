package main

import "testing"

// What is timed works: curl gets the reply, and so may a retry in its place.
func TestRequests(t *testing.T) {
	curl := find("curl")
	if curl == "" {
		t.Skip("there is no curl to compare with")
	}
	g := plan{options: options{runs: 1}, tools: tools{curl: curl}, dir: t.TempDir()}.requests()
	if g.commands = g.commands[:1]; g.commands[0].name != bare {
		t.Fatalf("%+v", g.commands)
	}
	g.warmups = 0
	if _, err := g.measure(t.Context()); err != nil {
		t.Error(err)
	}
}
