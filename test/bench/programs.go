package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the copies that are compared: retry, before, loop, true, debian, curl. A missing program has no path.
type programs map[string]string

// gather builds retry and the loop, finds the others, and copies all of them at once. How the page cache holds a file
// changes a program's start by 7 to 25 %. It depends on who wrote the file and when: a linker writes larger pieces than
// cp.
func gather(ctx context.Context, dir, before string) (programs, error) {
	build := exec.CommandContext(ctx, "sh", "-c", `set -e
cd "$(go list -m -f '{{.Dir}}')"
mkdir "$1/built" "$1/programs"
bash .ci/release "$1/built/retry"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/built/loop" ./test/bench/loop`, "sh", dir)
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, said)
	}
	found := programs{"retry": dir + "/built/retry", "loop": dir + "/built/loop", "before": before}
	found["debian"] = findDebian(ctx, filepath.SplitList(os.Getenv("PATH")))
	found["true"], _ = exec.LookPath("true")
	found["curl"], _ = exec.LookPath("curl")
	for name, from := range found {
		if from == "" {
			continue
		}
		found[name] = dir + "/programs/" + name
		if said, err := exec.CommandContext(ctx, "cp", "--", from, found[name]).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("copy %s: %w\n%s", name, err, said)
		}
	}
	return found, nil
}

// findDebian is the first retry in the folders that is Debian's by its help, or "".
func findDebian(ctx context.Context, folders []string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, "retry")
		help, _ := exec.CommandContext(ctx, path, "--help").CombinedOutput()
		if strings.Contains(string(help), "--until") {
			return path
		}
	}
	return ""
}

// fillJournal makes a journal of a million attempts. Only the package that keeps journals can: one of its tests does.
func fillJournal(ctx context.Context, dir string) error {
	const module = "github.com/10f93571/retry"
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestMakeABigJournal$", module+"/state/...")
	cmd.Env = append(os.Environ(), "RETRY_BIG_JOURNAL="+dir)
	said, err := cmd.CombinedOutput()
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "journal.db"))
	}
	if err != nil {
		return fmt.Errorf("make a journal with TestMakeABigJournal: %w\n%s", err, said)
	}
	return nil
}
