//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// script writes an executable shell script named retry into a new folder.
func script(t *testing.T, body string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "retry"), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestFindDebian(t *testing.T) {
	another := script(t, "echo 'usage: retry --attempts N'")
	theirs := script(t, "echo '  -u criteria, --until=criteria'")
	for _, test := range []struct {
		name    string
		folders []string
		want    string
	}{
		{"nothing", []string{t.TempDir()}, ""},
		{"another retry", []string{another}, ""},
		{"behind another", []string{t.TempDir(), another, theirs}, filepath.Join(theirs, "retry")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := findDebian(t.Context(), test.folders); got != test.want {
				t.Errorf("findDebian = %q, want %q", got, test.want)
			}
		})
	}
}

func TestPlanLeavesDebianOut(t *testing.T) {
	for debianRetry, rows := range map[string]int{"": 3, "/there/retry": 4} {
		groups, err := plan(options{runs: 1, longRuns: 1}, "/ours/retry", debianRetry, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			if len(g.commands) != rows {
				t.Errorf("%s with Debian's at %q: %d rows, want %d", g.title, debianRetry, len(g.commands), rows)
			}
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
	if !slices.Contains(env, "RETRY_STATE_DIR=/fresh") {
		t.Errorf("no state directory in %q", env)
	}
}
