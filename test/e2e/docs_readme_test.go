//go:build unix

package e2e

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// The calls of the API in the README give the answers that stand below them, but for ids and waits.
func TestREADMEWalksThroughTheAPI(t *testing.T) {
	testkit.Slow(t, "it starts a server")
	if os.Getenv("TEST_CURL") != "required" {
		requirePrograms(t, "bash", "curl", "jq")
	}
	const begins = "    retry: takes calls without a token from the user 1000 and root alone\n"
	_, walk, found := strings.Cut(readPage(t, "README.md"), begins)
	walk, _, ended := strings.Cut(walk, "\n\n")
	if !found || !ended {
		t.Fatal("got no walk in the README, want one")
	}
	calls, want := transcriptOf(walk)
	if n := strings.Count(calls, "curl "); n < 5 {
		t.Errorf("got %d calls, want one of each kind", n)
	}
	// A person is slower than the retry.
	settled := "\nuntil curl -s $api/retry-tasks/$task | jq -e '.status == \"SUCCEEDED\"' >/dev/null; do :; done\n"
	calls = strings.Replace(calls, "echo $task\n", "echo $task\n"+settled, 1)
	calls = strings.NewReplacer("http://127.0.0.1:7470", serveForWalk(t), "http://127.0.0.1:8777", failsOnce(t)).Replace(calls)

	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", calls)
	said, err := shell.CombinedOutput()
	if got := withoutChance(string(said)); err != nil || got != withoutChance(want) {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, got, withoutChance(want))
	}
}

// transcriptOf returns what is typed in an indented block, and what is answered.
func transcriptOf(block string) (typed, answered string) {
	for line := range strings.SplitSeq(block, "\n") {
		line = strings.TrimPrefix(line, "    ")
		command, prompted := strings.CutPrefix(line, "$ ")
		if prompted || strings.HasPrefix(line, "    ") { // what goes on is indented further
			typed += command + "\n"
		} else {
			answered += line + "\n"
		}
	}
	return typed, answered
}

var chance = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|"retry",\d+`)

func withoutChance(text string) string { return chance.ReplaceAllString(text, "…") }

// serveForWalk starts a server, and returns its address.
func serveForWalk(t *testing.T) string {
	t.Helper()
	server := newSandbox(t).command("serve", "--listen", "127.0.0.1:0", "--allow-target", "127.0.0.1")
	stderr, err := server.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	_, address, found := strings.Cut(lines.Text(), "serves ")
	if !found {
		t.Fatalf("got %q, want an address", lines.Text())
	}
	go func() {
		for lines.Scan() { // so that the server never waits for a reader
		}
	}()
	return address
}

// failsOnce is a target that refuses its first request.
func failsOnce(t *testing.T) string {
	t.Helper()
	var requests atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(target.Close)
	return target.URL
}
