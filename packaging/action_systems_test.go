package packaging_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// stub puts a script into a directory that goes before all others in the PATH it returns.
func stub(t *testing.T, name, script string) (path string) {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return "PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// The installer asks for the archive that .goreleaser.yaml makes for a system.
func TestInstallerChoosesTheArchive(t *testing.T) {
	need(t, "curl")
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		systems, known := map[string]string{"SHA256SUMS": "linux_amd64.tar.gz linux_arm64.tar.gz linux_armv7.tar.gz " +
			"linux_riscv64.tar.gz windows_amd64.zip", "SHA256SUMS.darwin": "darwin_amd64.tar.gz darwin_arm64.tar.gz"}[name]
		if !known {
			asked = name
			http.NotFound(w, r)
		}
		for _, system := range strings.Fields(systems) {
			_, _ = io.WriteString(w, sumOf(system)+"  retry_1.2.3_"+system+"\n")
		}
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct{ system, machine, archive string }{
		{"Linux", "x86_64", "retry_1.2.3_linux_amd64.tar.gz"},
		{"Linux", "aarch64", "retry_1.2.3_linux_arm64.tar.gz"},
		{"Linux", "armv7l", "retry_1.2.3_linux_armv7.tar.gz"},
		{"Linux", "riscv64", "retry_1.2.3_linux_riscv64.tar.gz"},
		{"Darwin", "arm64", "retry_1.2.3_darwin_arm64.tar.gz"},
		{"Darwin", "x86_64", "retry_1.2.3_darwin_amd64.tar.gz"},
		{"MINGW64_NT-10.0-26100", "x86_64", "retry_1.2.3_windows_amd64.zip"},
		{"Linux", "i686", ""},
		{"FreeBSD", "amd64", ""},
	} {
		asked = ""
		path := stub(t, "uname", "case $1 in -s) echo "+test.system+";; *) echo "+test.machine+";; esac")
		got := execute(t, ".", []string{path, "INSTALL_FROM=" + server.URL}, "sh", "action/install.sh", t.TempDir())
		if asked != test.archive || got.status != 1 {
			t.Errorf("%s on %s: got status %d, %s and %q, want 1 and %q", test.system, test.machine, got.status, got.stderr,
				asked, test.archive)
		}
	}
}

// On Windows, bash has paths of its own; the PATH of later steps needs those of the system.
func TestActionGivesWindowsItsPaths(t *testing.T) {
	j := newJob(t)
	retry := need(t, "retry")
	j.environment = append(j.environment, stub(t, "cygpath", `case $1 in -w) echo "C:$2";; *) echo "${2#C:}";; esac`))
	got, outputs := j.run(own(t, map[string]string{"path": "C:" + retry, "command": "true"}))
	if got.status != 0 || outputs["attempts"] != "1" {
		t.Errorf("got status %d, outputs %v and %s, want 0 and one attempt", got.status, outputs, got.stdout)
	}
	if got, want := testkit.Contents(t, j.pathFile), "C:"+filepath.Dir(retry)+"\n"; got != want {
		t.Errorf("got path %q, want %q", got, want)
	}
}

// macOS has bash 3.2, which fails at what later versions know.
func TestActionNeedsNoNewBash(t *testing.T) {
	later := regexp.MustCompile(`\$\{\w+(\^|,,|@[A-Z])|mapfile|readarray|declare -[An]|local -n|&>>|\|&|wait -n|\[-\d+\]`)
	for _, file := range []string{"setup.sh", "run.sh"} {
		if found := later.Find(read(t, "action/"+file)); found != nil {
			t.Errorf("%s has %q, which bash 3.2 does not know", file, found)
		}
	}
}
