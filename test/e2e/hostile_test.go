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

// nasty holds every kind of text that could change a terminal or mislead its reader. No argument can hold a NUL.
var nasty = strings.Join([]string{
	"\x1b[2J", "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x1b\\", "\x1bP1$r\x1b\\", "\x07", "\b\b\b", "\rover", "\n\nforged", "\t", "\v\f\x0e\x7f", // C0
	"\u009b31m", "\u009d0;x\u009c", "\u0085", "\x9b31m", "\x9d0;x\x9c", // C1 as characters, and raw
	"\u202eevil\u202c", "\u2066x\u2069", "\u061c", "\u200b\u200e\ufeff\u00ad", "\u2028\u2029", "\U000e0041\U000e0001", "\ue000\U000f0000\ufffe", // unseen
	"\xff\xfe", "\xc0\xaf", "\xc1\x9b", "\xe0\x80\x9b", "\xf0\x80\x80\x9b", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\xf0\x9f", // no UTF-8
}, "|")

// hostile is a journal with a task of a hostile command, and the directory that it ran in.
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

// fill makes a task that holds the text wherever a task can hold one, also where no command line can put it.
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
		ID: id.String(), Name: nasty, Kind: task.KindCommand, Command: []string{nasty, "-" + nasty},
		Directory: "/" + nasty, Policy: policy,
		Environment: []string{nasty + "=secret", "EMPTY" + nasty}, IdempotencyKey: nasty, CreatedAt: time.Now(),
		Status:  task.Pending,
		Options: task.Options{OnStart: nasty, OnRetry: nasty, OnSuccess: nasty, OnFailure: nasty, Capture: task.CaptureBoth},
	}
	testkit.Must(h, j.Claim(h.Context(), t, time.Now()))
	t.AttemptCount, t.Status = 1, task.InFlight
	a := task.Attempt{
		Number: 1, StartedAt: time.Now(),
		Outcome:  task.Outcome{Exit: 126, Error: task.ErrorStart, Message: text, Stdout: text, Stderr: text + text},
		Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible},
	}
	t.ApplyDecision(a, time.Now())
	testkit.Must(h, j.Record(h.Context(), t, a))
	return t
}

// Whatever a command contains or prints, retry writes only printable characters and newlines.
func TestNothingRawReachesATerminal(t *testing.T) {
	h := &hostile{T: t, binary: buildForTerminals(t), journal: filepath.Join(t.TempDir(), "state"), dir: t.TempDir()}
	if dir := filepath.Join(h.dir, nasty); os.Mkdir(dir, 0o700) == nil { // not every file system takes such a name
		h.dir = dir
	}
	id, report := h.fill().ID, filepath.Join(t.TempDir(), "report")
	// run holds the output back, which is the command's own and passes as it is.
	run := func(flags ...string) []string {
		command := []string{"sh", "-c", `printf '%s\0' "$1"; printf '%s\0' "$1$1" >&2; exit 3`, nasty, nasty}
		hooks := []string{"-n", "2", "-b", "constant:0", "--output", "success", "--capture", "both", "--on-retry",
			": '" + nasty + "'", "--on-failure", ": '" + nasty + "'"}
		return append(append(append(hooks, flags...), "--"), command...)
	}
	tests := []struct {
		name     string
		args     []string
		contains string // a part of the output
	}{
		{name: "a run", args: run("--report", report), contains: "gave up"},
		{name: "a talkative run", args: run("-v"), contains: "attempt 2/2 starts"},
		{name: "a run for programs", args: run("-v", "--log-format", "json"), contains: `"attempt":2`},
		{name: "a run in GitHub's log", args: run("--ci", "github"), contains: "::group::"},
		{name: "a report on stdout", args: run("-q", "--report", "-"), contains: `\u001b`},
		{name: "a command that there is not", args: []string{"-n", "1", "--", nasty}, contains: "not found"},
		{
			name: "the same for programs", args: []string{"-n", "1", "--log-format", "json", "--", nasty},
			contains: `\u001b`,
		},
		{
			name: "the same in GitHub's log", args: []string{"-n", "1", "--ci", "github", "--", nasty},
			contains: "not found",
		},
		{name: "status", args: []string{"status"}, contains: `\x1b[2J`},
		{name: "status --json", args: []string{"status", "--json"}, contains: `\u001b`},
		{name: "status of a task", args: []string{"status", id}, contains: `\U000e0041`},
		{name: "its JSON", args: []string{"status", id, "--json"}, contains: `\u001b`},
		{name: "by its name", args: []string{"status", nasty}, contains: `\u202eevil`},
		{name: "logs", args: []string{"logs", id}, contains: `\xff\xfe`},
		{name: "logs of an attempt", args: []string{"logs", id, "--attempt", "1"}, contains: `\u009b31m`},
		{name: "stats", args: []string{"stats"}, contains: `\x1b[2J`},
		{name: "stats --json", args: []string{"stats", "--json"}, contains: `\u001b`},
		{name: "metrics", args: []string{"metrics"}, contains: "# EOF"},
		{name: "doctor", args: []string{"doctor"}},
		{name: "a task that there is not", args: []string{"status", "x" + nasty}, contains: "no such task"},
		{name: "none to resume", args: []string{"resume", "x" + nasty}, contains: "no such task"},
		{name: "none to cancel", args: []string{"cancel", "x" + nasty}, contains: "no such task"},
		{name: "one that has ended", args: []string{"cancel", nasty}, contains: "finished"},
		{name: "a status that there is not", args: []string{"status", "--status", nasty}, contains: "invalid status"},
		{name: "a time that there is not", args: []string{"status", "--since", nasty}, contains: "invalid time"},
		{name: "a number that is none", args: []string{"logs", id, "--attempt", nasty}, contains: "invalid number"},
		{name: "a flag that there is not", args: []string{"--" + nasty, "x"}, contains: "hint"},
		{name: "a flag of status", args: []string{"status", "--" + nasty}, contains: "hint"},
		{name: "a backoff that is none", args: []string{"-b", nasty, "x"}, contains: "hint"},
		{name: "a policy that there is not", args: []string{"-p", nasty, "x"}, contains: "unknown policy"},
		{
			name: "a report that cannot be", args: []string{"--report", nasty + "/" + nasty, "true"},
			contains: "--report",
		},
		{name: "a journal that cannot be", args: []string{"status", "--state", "/dev/null/" + nasty}, contains: "hint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr := h.run(tt.args...)
			if !strings.Contains(stdout+stderr, tt.contains) {
				t.Errorf("got %q and %q, want %q in it", stdout, stderr, tt.contains)
			}
			checkPrintable(t, stdout)
			checkPrintable(t, stderr)
			if strings.HasSuffix(strings.Join(tt.args, " "), "--json") && !json.Valid([]byte(stdout)) {
				t.Errorf("got %s, want JSON", stdout)
			}
		})
	}
	content, err := os.ReadFile(report)
	testkit.Must(t, err)
	checkPrintable(t, string(content))
}

// checkPrintable fails the test where a text has other characters than printable ones and newlines.
func checkPrintable(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("got %q, want UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("got %q with a raw %U, want it escaped", text, r)
		}
	}
}

// With --raw, logs writes the bytes as they are, and all of them.
func TestRawLogs(t *testing.T) {
	h := &hostile{T: t, binary: buildForTerminals(t), journal: filepath.Join(t.TempDir(), "state"), dir: t.TempDir()}
	stdout, stderr := h.run("logs", h.fill().ID, "--raw")
	if text := nasty + "\x00"; stdout != text || stderr != text+text {
		t.Errorf("got %q and %q", stdout, stderr)
	}
}
