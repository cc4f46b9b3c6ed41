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

// tools are the programs that are compared, "" for what is not there.
type tools struct {
	retry             string // of this checkout, built as a release is
	before            string // another retry, to compare with
	debian, recur     string // other programs that repeat a command
	curl              string
	empty, fork, loop string // of bench/floor
	yes, no           string // true and false
}

// gatherTools builds ours into a folder and finds the others'.
func gatherTools(ctx context.Context, dir, before string) (tools, error) {
	t := tools{retry: filepath.Join(dir, "retry"), recur: find("recur"), curl: find("curl")}
	if before != "" {
		t.before = filepath.Join(dir, "before")
		if err := install(ctx, before, t.before); err != nil {
			return t, err
		}
	}
	t.debian = findDebian(ctx, filepath.SplitList(os.Getenv("PATH")))
	if err := build(ctx, t.retry); err != nil {
		return t, err
	}
	for name, path := range map[string]*string{"empty": &t.empty, "fork": &t.fork, "loop": &t.loop} {
		*path = filepath.Join(dir, name)
		if err := buildFloor(ctx, name, *path); err != nil {
			return t, err
		}
	}
	if t.yes, t.no = find("true"), find("false"); t.yes == "" || t.no == "" {
		return t, fmt.Errorf("find a command to wrap: there is no true or no false")
	}
	return t, nil
}

// find is a program's path, "" where it is not there.
func find(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// missing says whose rows are left out.
func (t tools) missing() (said []string) {
	for _, of := range []struct{ path, hint string }{
		{t.debian, "Debian's retry is not installed: its rows are left out."},
		{t.recur, "There is no recur in the PATH: its rows are left out."},
		{t.curl, "There is no curl: no request is compared with its."},
	} {
		if of.path == "" {
			said = append(said, of.hint)
		}
	}
	return said
}

// build compiles the checkout's retry as a release is.
func build(ctx context.Context, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	script := filepath.Join(strings.TrimSpace(string(root)), ".ci", "release")
	if said, err := exec.CommandContext(ctx, "bash", script, binary+".linked").CombinedOutput(); err != nil {
		return fmt.Errorf("build retry: %w\n%s", err, said)
	}
	return install(ctx, binary+".linked", binary)
}

// buildFloor compiles a program of bench/floor: static and stripped, as a release of retry is.
func buildFloor(ctx context.Context, name, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary+".linked", "github.com/10f93571/retry/bench/floor/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build floor/%s: %w\n%s", name, err, said)
	}
	return install(ctx, binary+".linked", binary)
}

// install copies a program, as is done with every program that people run. What the linker has just written lies in the page cache in large
// pieces, which are mapped whole: fewer page faults, and 7 MiB more in memory, than of a program that was copied or read from the disk.
func install(ctx context.Context, from, to string) error {
	if said, err := exec.CommandContext(ctx, "cp", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("install %s: %w\n%s", to, err, said)
	}
	return nil
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
