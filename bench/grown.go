package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// grown times retry with a journal of a million attempts next to an empty one, which stands for the bare command here.
func grown(ctx context.Context, o options, retry, dir string) (group, error) {
	empty, million := filepath.Join(dir, "empty"), filepath.Join(dir, "million")
	if err := fill(ctx, million); err != nil {
		return group{}, err
	}
	return group{title: "A journal of 1,000,000 attempts, compared with an empty one", warmups: 5, runs: o.runs, commands: []command{
		{label: "retry -- true, empty", role: bare, argv: []string{retry, "--", "true"}, state: empty},
		{label: "retry -- true, a million", argv: []string{retry, "--", "true"}, state: million},
		{label: "retry status, a million", argv: []string{retry, "status"}, state: million},
	}}, nil
}

// fill makes the journal. Only the package that keeps journals can: one of its tests does.
func fill(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestMakeABigJournal$", "github.com/10f93571/retry/state")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "RETRY_BIG_JOURNAL="+dir)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a journal: %w\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil {
		return fmt.Errorf("make a journal: %w", err) // the test has another name by now, or asks for another variable
	}
	return nil
}
