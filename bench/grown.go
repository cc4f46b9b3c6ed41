package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// grown times retry with a journal of a million attempts next to an empty one, which stands for the bare command here.
func (p plan) grown() group {
	empty, million := p.journal("empty"), p.journal("million")
	return group{name: "million", title: "A journal of 1,000,000 attempts, compared with an empty one", warmups: 5, runs: p.runs, commands: []command{
		{name: bare, label: "retry -- true, empty", argv: []string{p.retry, "--", "true"}, state: empty},
		{name: "million", label: "retry -- true, a million", argv: []string{p.retry, "--", "true"}, state: million},
		{name: "status", label: "retry status, a million", argv: []string{p.retry, "status"}, state: million},
	}, setUp: func(ctx context.Context, _ *group) (func(), error) { return func() {}, fill(ctx, million) }}
}

// fill makes the journal. Only the package that keeps journals can: one of its tests does.
func fill(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestMakeABigJournal$", "github.com/10f93571/retry/state/sqlite")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "RETRY_BIG_JOURNAL="+dir)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a journal: %w\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil {
		return fmt.Errorf("make a journal: %w", err) // the test has another name by now, or asks for another variable
	}
	return nil
}
