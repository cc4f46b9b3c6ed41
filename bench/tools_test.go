//go:build unix

package main

import (
	"os"
	"os/exec"
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

func TestMissing(t *testing.T) {
	if said := (tools{debian: "/a", recur: "/b", curl: "/c"}).missing(); len(said) != 0 {
		t.Errorf("all are there, and missing says %q", said)
	}
	if said := (tools{debian: "/a", curl: "/c"}).missing(); !slices.Equal(said, []string{"There is no recur in the PATH: its rows are left out."}) {
		t.Errorf("missing = %q", said)
	}
}

// The programs of the floor do what they are timed for.
func TestFloor(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		exit int
		want string
	}{
		{"empty", nil, 0, ""},
		{"fork", []string{"echo", "a b"}, 0, "a b\n"},
		{"fork", []string{"false"}, 1, ""},
		{"loop", []string{"-n", "3", "--", "sh", "-c", "printf x; exit 1"}, 1, "xxx"},
		{"loop", []string{"-n", "3", "-d", "1ns", "--", "sh", "-c", `printf x >>` + filepath.Join(dir, "f") + `; [ "$(cat ` + filepath.Join(dir, "f") + `)" = xx ]`}, 0, ""},
	} {
		binary := filepath.Join(dir, test.name)
		if err := buildFloor(t.Context(), test.name, binary); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, test.args...)
		out, _ := cmd.Output()
		if string(out) != test.want || cmd.ProcessState.ExitCode() != test.exit {
			t.Errorf("%s %q: %q, %v", test.name, test.args, out, cmd.ProcessState)
		}
	}
}

func TestInstall(t *testing.T) {
	from := filepath.Join(script(t, "exit 3"), "retry")
	to := filepath.Join(t.TempDir(), "copy")
	if err := install(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(to)
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the copy is another program: %v", cmd.ProcessState)
	}
	if err := install(t.Context(), from+"x", to); err == nil {
		t.Error("what is not there was installed")
	}
}
