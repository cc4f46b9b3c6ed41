//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// nasty is what would do something to a terminal, or to who reads it, in one text. No argument can hold a NUL.
var nasty = strings.Join([]string{
	"\x1b[2J", "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x1b\\", "\x1bP1$r\x1b\\", "\x07", "\b\b\b", "\rover", "\n\nforged", "\t", "\v\f\x0e\x7f", // C0
	"\u009b31m", "\u009d0;x\u009c", "\u0085", "\x9b31m", "\x9d0;x\x9c", // C1 as characters, and raw
	"\u202eevil\u202c", "\u2066x\u2069", "\u061c", "\u200b\u200e\ufeff\u00ad", "\u2028\u2029", "\U000e0041\U000e0001", "\ue000\U000f0000\ufffe", // unseen
	"\xff\xfe", "\xc0\xaf", "\xc1\x9b", "\xe0\x80\x9b", "\xf0\x80\x80\x9b", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\xf0\x9f", // no UTF-8
}, "|")

// hostile is a journal that a hostile command has left behind, and the directory that it ran in.
type hostile struct {
	*testing.T
	binary, journal, dir string
}

// run runs retry and returns what it wrote.
func (h *hostile) run(args ...string) (stdout, stderr string) {
	h.Helper()
	var out, err bytes.Buffer
	cmd := exec.Command(h.binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, &out, &err
	cmd.Env = append(os.Environ(), "RETRY_STATE_DIR="+h.journal, "GITHUB_ACTIONS=", "GITLAB_CI=")
	_ = cmd.Run() // much of this is to fail
	return out.String(), err.String()
}

// fill makes a task that holds the text wherever a task can hold one; some of that no command line brings in.
func (h *hostile) fill() *task.Task {
	h.Helper()
	j, err := sqlite.Open(h.Context(), h.journal)
	testkit.Must(h, err)
	defer func() { testkit.Must(h, j.Close()) }()
	id, err := uuid.NewV7()
	testkit.Must(h, err)
	text := nasty + "\x00"
	policy := task.DefaultPolicy()
	policy.Name = nasty
	t := &task.Task{
		ID: id.String(), Name: nasty, Kind: task.KindCommand, Command: []string{nasty, "-" + nasty}, Directory: "/" + nasty, Policy: policy,
		Environment: []string{nasty + "=secret", "EMPTY" + nasty}, IdempotencyKey: nasty, CreatedAt: time.Now(), Status: task.Pending,
		Options: task.Options{OnRetry: nasty, OnSuccess: nasty, OnFailure: nasty, Capture: task.CaptureBoth},
	}
	testkit.Must(h, j.Claim(h.Context(), t, time.Now()))
	t.AttemptCount, t.Status = 1, task.InFlight
	a := task.Attempt{
		Number: 1, StartedAt: time.Now(), Outcome: task.Outcome{Exit: 126, Error: task.ErrorStart, Message: text, Stdout: text, Stderr: text + text},
		Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible},
	}
	t.ApplyDecision(a, time.Now())
	testkit.Must(h, j.Record(h.Context(), t, a))
	return t
}

// Whatever a command brings along, nothing that retry writes is more than a terminal just draws.
func TestNothingRawReachesATerminal(t *testing.T) {
	h := &hostile{T: t, binary: buildForTerminals(t), journal: filepath.Join(t.TempDir(), "state"), dir: t.TempDir()}
	if dir := filepath.Join(h.dir, nasty); os.Mkdir(dir, 0o700) == nil { // not every file system takes such a name
		h.dir = dir
	}
	id, report := h.fill().ID, filepath.Join(t.TempDir(), "report")
	// run holds the output back, which is the command's own and passes as it is.
	run := func(flags ...string) []string {
		command := []string{"sh", "-c", `printf '%s\0' "$1"; printf '%s\0' "$1$1" >&2; exit 3`, nasty, nasty}
		hooks := []string{"-n", "2", "-b", "constant:0", "--output", "success", "--capture", "both", "--on-retry", ": '" + nasty + "'", "--on-failure", ": '" + nasty + "'"}
		return append(append(append(hooks, flags...), "--"), command...)
	}
	tests := []struct {
		name string
		args []string
		says string // a sign that the text is in it
	}{
		{"a run", run("--report", report), "gave up"},
		{"a talkative run", run("-v"), "attempt 2/2 starts"},
		{"a run for programs", run("-v", "--log-format", "json"), `"attempt":2`},
		{"a run in GitHub's log", run("--ci", "github"), "::group::"},
		{"a report on stdout", run("-q", "--report", "-"), `\u001b`},
		{"a command that there is not", []string{"-n", "1", "--", nasty}, "not found"},
		{"the same for programs", []string{"-n", "1", "--log-format", "json", "--", nasty}, `\u001b`},
		{"the same in GitHub's log", []string{"-n", "1", "--ci", "github", "--", nasty}, "not found"},
		{"status", []string{"status"}, `\x1b[2J`},
		{"status --json", []string{"status", "--json"}, `\u001b`},
		{"status of a task", []string{"status", id}, `\U000e0041`},
		{"its JSON", []string{"status", id, "--json"}, `\u001b`},
		{"by its name", []string{"status", nasty}, `\u202eevil`},
		{"logs", []string{"logs", id}, `\xff\xfe`},
		{"logs of an attempt", []string{"logs", id, "--attempt", "1"}, `\u009b31m`},
		{"stats", []string{"stats"}, `\x1b[2J`},
		{"stats --json", []string{"stats", "--json"}, `\u001b`},
		{"metrics", []string{"metrics"}, "# EOF"},
		{"doctor", []string{"doctor"}, ""},
		{"a task that there is not", []string{"status", "x" + nasty}, "no such task"},
		{"none to resume", []string{"resume", "x" + nasty}, "no such task"},
		{"none to cancel", []string{"cancel", "x" + nasty}, "no such task"},
		{"one that has ended", []string{"cancel", nasty}, "finished"},
		{"a status that there is not", []string{"status", "--status", nasty}, "invalid status"},
		{"a time that there is not", []string{"status", "--since", nasty}, "invalid time"},
		{"a number that is none", []string{"logs", id, "--attempt", nasty}, "invalid number"},
		{"a flag that there is not", []string{"--" + nasty, "x"}, "hint"},
		{"a flag of status", []string{"status", "--" + nasty}, "hint"},
		{"a backoff that is none", []string{"-b", nasty, "x"}, "hint"},
		{"a policy that there is not", []string{"-p", nasty, "x"}, "unknown policy"},
		{"a report that cannot be", []string{"--report", nasty + "/" + nasty, "true"}, "--report"},
		{"a journal that cannot be", []string{"status", "--state", "/dev/null/" + nasty}, "hint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr := h.run(tt.args...)
			if !strings.Contains(stdout+stderr, tt.says) {
				t.Errorf("%s is not in it: %q %q", tt.says, stdout, stderr)
			}
			checkDrawn(t, stdout)
			checkDrawn(t, stderr)
			if strings.HasSuffix(strings.Join(tt.args, " "), "--json") && !json.Valid([]byte(stdout)) {
				t.Errorf("no JSON: %s", stdout)
			}
		})
	}
	content, err := os.ReadFile(report)
	testkit.Must(t, err)
	checkDrawn(t, string(content))
}

// checkDrawn fails the test where a text is more than lines of characters that can be seen.
func checkDrawn(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%U is shown raw: %q", r, text)
		}
	}
}

// Only who asks for the bytes gets them, and all of them.
func TestRawLogs(t *testing.T) {
	h := &hostile{T: t, binary: buildForTerminals(t), journal: filepath.Join(t.TempDir(), "state"), dir: t.TempDir()}
	stdout, stderr := h.run("logs", h.fill().ID, "--raw")
	if text := nasty + "\x00"; stdout != text || stderr != text+text {
		t.Errorf("got %q and %q", stdout, stderr)
	}
}
