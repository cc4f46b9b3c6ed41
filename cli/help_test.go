package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/syntax"
)

// retry --help fits on one screen, and what it says of flags is true.
func TestHelpOfRetry(t *testing.T) {
	p := newTestParser(t, "run", &runCommand{})
	text := p.Help(80, false)
	if n := strings.Count(text, "\n"); n > 40 {
		t.Errorf("got %d lines, want at most 40", n)
	}
	if strings.Count(text, "\n") != strings.Count(runUsage, "\n") {
		t.Errorf("got lines that are broken at 80 columns: %s", text)
	}
	for word := range strings.FieldsSeq(text) {
		name, isLong := strings.CutPrefix(strings.Trim(word, ",.:"), "--")
		name, _, _ = strings.Cut(name, "=")
		known := p.Flag(name) != nil
		for _, c := range commands {
			known = known || newTestParser(t, c.name, c.make()).Flag(name) != nil
		}
		if isLong && name != "" && !known {
			t.Errorf("no command has a flag --%s", name)
		}
	}
}

// No line of any help is wider than the screen, and --help-all has every flag.
func TestHelpFitsTheScreen(t *testing.T) {
	for _, c := range commands {
		p := newTestParser(t, c.name, c.make())
		for _, width := range []int{40, 60, 80, 110} {
			for _, all := range []bool{false, true} {
				for line := range strings.Lines(p.Help(width, all)) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("%s at %d columns: got %d in %q", c.name, width, n, line)
					}
				}
			}
		}
		text := p.Help(80, true)
		for _, f := range p.Model.Flags {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s: its help lacks --%s", c.name, f.Name)
			}
		}
	}
}

// What people type first who know another tool either works, as the flags in want, or is told what to write.
func TestHabits(t *testing.T) {
	tests := []struct {
		tool string
		line string // after retry, in words
		want string // the flags that it becomes, or a part of the error
	}{
		{tool: "Debian's retry", line: "--times=3 --delay=5 --until=0 x", want: "--attempts=3 --backoff=5 --success-on=0"},
		{tool: "Debian's retry", line: "-d 5 -w 75 x", want: "--retry-on LIST and --success-on LIST say"},
		{tool: "Debian's retry", line: "-u 0,3 x", want: "--retry-on LIST and --success-on LIST say"},
		{tool: "Debian's retry", line: "-t 3 -d 5 x", want: "-n 3 for the attempts"},
		{tool: "Debian's retry", line: "-d 1,2,5 x", want: "--backoff=1,2,5"}, // which is refused with a hint: list:1,2,5
		{tool: "recur", line: "-a 3 --forever x", want: "-a and --forever both set --attempts"},
		{tool: "recur", line: "-d 5s -m 1m x", want: "-b exp:MIN..MAX"},
		{tool: "recur", line: "-b 2s --max-delay 1m x", want: "-b and --max-delay both set --backoff"},
		{tool: "recur", line: "-IO -f x", want: "-n 0 tries for ever"},
		{tool: "recur", line: "-IO -V x", want: "--stdin=replay --output=success --version"},
		{tool: "recur", line: "-F x", want: "-b fib"},
		{tool: "joshdk/retry", line: "-attempts=3 -sleep=5s -task-time 15s -quiet x",
			want: "--attempts=3 --backoff=5s --timeout=15s --quiet"},
		{tool: "joshdk/retry", line: "-attempts 3 x", want: "--attempts=3"},
		{tool: "joshdk/retry", line: "-max-time=2m x", want: "-B TIME for everything"},
		{tool: "joshdk/retry", line: "-invert x", want: "--success-on any"},
		{tool: "joshdk/retry", line: "-consecutive=3 x", want: "--consecutive=3"},
		{tool: "kadwanev/retry", line: "--tries=4 --sleep=2 x", want: "--attempts=4 --backoff=2"},
		{tool: "kadwanev/retry", line: "-s 2 x", want: "-b TIME waits"},
		{tool: "kadwanev/retry", line: "--min=1 x", want: "-b exp:MIN..MAX"},
		{tool: "kadwanev/retry", line: "-x 60 x", want: "-b exp:MIN..MAX"},
		{tool: "kadwanev/retry", line: "-f cleanup x", want: "--on-failure CMD"},
		{tool: "sgaunet/retry", line: "-m 5 -c make", want: "-n N for all attempts"},
		{tool: "sgaunet/retry", line: "-version", want: "--version"},
		{tool: "nick-fields/retry", line: "--timeout_minutes 5 --max_attempts 3 --retry_wait_seconds 10 --command make",
			want: "--timeout=5m --attempts=3 --backoff=10 --shell=make"},
		{tool: "nick-fields/retry", line: "--timeout_seconds 9 --retry_on_exit_code 75 --on_retry_command c x",
			want: "--timeout=9 --retry-on=75 --on-retry=c"},
		{tool: "nick-fields/retry", line: "--new_command_on_retry c x", want: "RETRY_ATTEMPT"},
		{tool: "nick-fields/retry", line: "--continue_on_error true x", want: "|| true"},
		{tool: "tenacity", line: "--stop-after-attempt 3 --wait-fixed 2 x", want: "--attempts=3 --backoff=2"},
		{tool: "tenacity", line: "--wait_exponential 2 x", want: "-b exp:FIRST..MAX"},
		{tool: "curl", line: "--retry 3 --retry-delay 2 x", want: "--retries=3 --backoff=2"},
		{tool: "curl", line: "--retry-max-time 60 x", want: "-n 0 -B TIME"},
		{tool: "curl", line: "--retry-all-errors x", want: "leave it out"},
		{tool: "curl", line: "-H a:b x", want: "retry http takes the flags of curl"},
		{tool: "wget", line: "--tries=3 --waitretry=5 x", want: "-b linear:1s..MAX"},
		{tool: "timeout", line: "-k 5 --foreground x", want: "--kill-after=5 --foreground"},
		{tool: "timeout", line: "-s INT x", want: "--signal NAME"},
		{tool: "timeout", line: "--preserve-status x", want: "leave it out"},
		{tool: "watch", line: "--interval 2 x", want: "--backoff=2"},
		{tool: "parallel", line: "--retries 3 --timeout 5 --delay 1 x", want: "--retries=3 --timeout=5 --backoff=1"},
		{tool: "parallel", line: "--jobs 3 x", want: "parallel -j 4 retry"},
		{tool: "parallel", line: "--joblog f x", want: "retry status lists all runs"},
		{tool: "a cron wrapper", line: "--lock x", want: "--id NAME --if-running skip"},
		{tool: "a cron wrapper", line: "--mailto me x", want: "-q --output failure"},
		{tool: "a loop", line: "--every 5 --forever x", want: "--backoff=5 --attempts=0"},
		{tool: "a loop", line: "--for 5m x", want: "-n 0 -B TIME"},
		{tool: "others", line: "--name n --silent --max-retries 2 x", want: "--id=n --quiet --retries=2"},
		{tool: "others", line: "--exponential x", want: "-b exp"},
		{tool: "others", line: "--initial-delay 1 x", want: "-b exp:FIRST..MAX"},
		{tool: "others", line: "--delay 2 --max-delay 30 x", want: "-b exp:2s..30s has a first wait and a longest one"},
		{tool: "others", line: "--no-jitter --delay= x", want: "--jitter=none --backoff="},
		{tool: "a typo", line: "--attempst 3 x", want: "unknown flag --attempst, did you mean --attempts?"},
		{tool: "a typo", line: "-atempts 3 x", want: "--attempts=tempts"},
		{tool: "a typo", line: "--slumber 3 x", want: "unknown flag --slumber\nhint: retry --help"},
	}
	for _, tt := range tests {
		p := newTestParser(t, "run", &runCommand{})
		line, err := splitLine(strings.Fields(tt.line), func() (*syntax.Parser, error) { return p, nil })
		if err == nil {
			err = p.CheckTimes()
		}
		got := strings.Join(line.flags, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want) || strings.Count(got, "\nhint: ") != 1) {
			t.Errorf("%s: %s: got %s, want %s", tt.tool, tt.line, got, tt.want)
		}
	}
}

// Each row leads to a flag that run has, and none hides one of its own.
func TestHabitsFitTheFlags(t *testing.T) {
	p := newTestParser(t, "run", &runCommand{})
	for _, name := range flags.HabitNames() {
		as, hint := flags.Habit("run", name)
		target, _, _ := strings.Cut(as, "=")
		if (as == "") == (hint == "") || as != "" && p.Flag(target) == nil {
			t.Errorf("%s: got %q, %q, want a flag of run or a hint", name, as, hint)
		}
		if p.Flag(name) != nil {
			t.Errorf("%s: got a habit for a flag that there is", name)
		}
	}
	names := flags.HabitNames()
	slices.Sort(names)
	if compact := slices.Compact(slices.Clone(names)); len(compact) != len(names) {
		t.Errorf("got a name twice in %q", names)
	}
}

func TestMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := []struct{ word, want string }{
		{word: "10s", want: "retry -b 10s -- COMMAND"},
		{word: "3", want: "retry -n 3 -- COMMAND"},
		{word: "a | b", want: "retry -c 'a | b'"},
		{word: "ls -la", want: "retry -c 'ls -la'"},
		{word: "FOO=1", want: "NAME=VALUE retry -- COMMAND"},
		{word: "cd", want: "cd belongs to the shell"},
		{word: "source", want: "source belongs to the shell"},
		{word: "until", want: "retry is the loop"},
		{word: "statu", want: "did you mean retry status?"},
		{word: "help", want: "did you mean retry --help?"},
		{word: "list", want: "did you mean retry status?"},
		{word: "enqueue", want: "did you mean retry add?"},
		{word: "server", want: "did you mean retry serve?"},
		{word: "GET", want: "did you mean retry http URL?"},
		{word: "-n", want: "flags go before the --"},
		{word: "db:5432", want: "retry wait db:5432"},
		{word: "npx", want: ""},
		{word: "./nosuch", want: ""},
	}
	for _, tt := range tests {
		got := (&runCommand{Command: []string{tt.word}}).meant()
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
}
