// Package flags holds the groups of flags that several commands share, and the types of their values. A field's tags
// are all there is to a flag: its name, letter, default and help. What a flag does is decided where it is used.
package flags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/docker/go-units"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// StateFlag says where the journal is.
type StateFlag struct {
	State string `group:"Journal" placeholder:"DIR" help:"The journal's directory. Default $RETRY_STATE_DIR, $XDG_STATE_HOME/retry or ~/.local/state/retry."`
}

// JournalFlags say what a run does with the journal.
type JournalFlags struct {
	NoState      bool      `group:"Journal" help:"Keep no journal."`
	RequireState bool      `group:"Journal" help:"Run nothing where the journal cannot be written."`
	Retention    *Duration `group:"Journal" placeholder:"TIME" help:"Keep finished tasks this long; 0 = for ever. Default $RETRY_RETENTION, or 30d."`
}

// ConfigFlag says where the config file is.
type ConfigFlag struct {
	Config *string `group:"Policy" placeholder:"FILE" help:"Read named policies from FILE. Default $RETRY_CONFIG, $XDG_CONFIG_HOME/retry/config.toml or ~/.config/retry/config.toml; else /etc/retry/config.toml."`
}

// systemConfig is the file for users who have none of their own. It is not for Windows, where anybody may make a folder
// named etc.
const systemConfig = "/etc/retry/config.toml"

// Path returns the path of the config file, and whether the user named it. Neither a relative XDG_CONFIG_HOME nor the
// current directory leads to one: a checkout must not change how commands are run.
func (f *ConfigFlag) Path(getenv func(string) string) (path string, named bool) {
	if f.Config != nil {
		return *f.Config, true
	}
	if path := getenv("RETRY_CONFIG"); path != "" {
		return path, true
	}
	for _, home := range []struct{ variable, below string }{{"XDG_CONFIG_HOME", ""}, {"HOME", ".config"},
		{"APPDATA", ""}} {
		if dir := getenv(home.variable); filepath.IsAbs(dir) {
			own := filepath.Join(dir, home.below, "retry", "config.toml")
			return ownOrSystem(own, systemConfig), false
		}
	}
	return ownOrSystem("", systemConfig), false
}

// ownOrSystem returns the user's own file, even if it cannot be read; the system's only where that alone exists.
func ownOrSystem(own, system string) string {
	if own != "" {
		if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return own
		}
	}
	if _, err := os.Stat(system); err != nil || runtime.GOOS == "windows" {
		return own
	}
	return system
}

// NameFlags give a task a name, and say what to do where a task of the name is running.
type NameFlags struct {
	ID    *string `name:"id" group:"Name" placeholder:"KEY" help:"The task's name. Where an earlier run of this name and command was interrupted, this one continues it."`
	Fresh bool    `group:"Name" help:"Cancel an interrupted run of this name instead, whatever its command, and start anew."`
	Once  bool    `group:"Name" help:"Do nothing, with exit status 0, where a task of this name has succeeded before."`
	SurvivorFlags
	IfRunning string `enum:"fail,skip,wait" default:"fail" group:"Name" placeholder:"fail|skip|wait" help:"Where a task of this name is running: fail with 125 (default), do nothing with exit status 0, or wait for its end."`
}

// SurvivorFlags say what to do about what an interrupted attempt may have left running.
type SurvivorFlags struct {
	KillOrphans bool `group:"Running" help:"Stop what an interrupted attempt left running, instead of waiting for its end."`
	AssumeDead  bool `group:"Running" help:"Go on where nobody can see whether an interrupted attempt still runs, as in another container."`
}

// InputFlags say what a command goes on with whose stdin is lost.
type InputFlags struct {
	Stdin string `enum:"auto,rest,null" default:"auto" group:"Running" placeholder:"auto|rest|null" help:"auto: what the command had; a file is opened again, and what is lost is refused. rest: this command's own. null: nothing."`
}

// Mode returns what to use in place of what the command had; empty for that.
func (f *InputFlags) Mode() task.StdinMode {
	if mode := task.StdinMode(f.Stdin); mode != task.StdinAuto {
		return mode
	}
	return ""
}

// HookFlags are commands that run beside a task, the seed of its jitter, and what is not shown of it. The journal keeps
// them with the task.
type HookFlags struct {
	OnStart     string    `group:"Hooks" placeholder:"CMD" help:"A shell command to run before the first attempt."`
	OnRetry     string    `group:"Hooks" placeholder:"CMD" help:"One to run when an attempt is to be followed by another."`
	OnSuccess   string    `group:"Hooks" placeholder:"CMD" help:"One to run when the task has succeeded."`
	OnFailure   string    `group:"Hooks" placeholder:"CMD" help:"One to run when the task has failed in the end."`
	Ping        string    `group:"Hooks" placeholder:"URL" help:"Tell a monitor such as healthchecks.io when the run starts (URL/start), and how it ends: URL, or URL/EXIT with what was captured."`
	HookTimeout *Duration `group:"Hooks" placeholder:"TIME" help:"Stop a hook after this time. Default 30s."`
	Seed        *uint64   `group:"Running" placeholder:"N" help:"Make the jitter repeatable."`
	Mask        []Pattern `sep:"none" group:"Output" placeholder:"REGEX" help:"Show *** for what this matches in the command line and in what is kept of an attempt. Passwords and tokens of the usual flags, variables, headers and URLs are masked without it."`
}

// Options returns what a task keeps of the flags.
func (f *HookFlags) Options() (task.Options, error) {
	o := task.Options{OnStart: f.OnStart, OnRetry: f.OnRetry, OnSuccess: f.OnSuccess, OnFailure: f.OnFailure, Ping: f.Ping,
		Seed: f.Seed}
	if f.HookTimeout != nil {
		o.HookTimeout = time.Duration(*f.HookTimeout)
		if o.HookTimeout == 0 {
			return o, errors.New("--hook-timeout is 0, and a hook without an end would hold the task up" +
				"\nhint: give a time such as 5m, or leave it out for 30s")
		}
	}
	for i, pattern := range f.Mask {
		if i > 0 {
			o.Mask += "|"
		}
		o.Mask += "(?:" + string(pattern) + ")"
	}
	return o, nil
}

// Pattern is a flag's value that is a regular expression.
type Pattern string

// UnmarshalText reads the value of a flag.
func (p *Pattern) UnmarshalText(b []byte) error {
	_, err := regexp.Compile(string(b))
	*p = Pattern(b)
	return err
}

// EnvironmentFlags say which variables go into the journal.
type EnvironmentFlags struct {
	KeepEnv []string `group:"Journal" placeholder:"NAME" help:"Keep these variables in the journal, for a resume. All others are as the resume finds them."`
}

// Kept returns the variables to keep: NAME=value, or NAME for one that is not set.
func (f *EnvironmentFlags) Kept(environ []string) ([]string, error) {
	var kept []string
	for _, name := range f.KeepEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("--keep-env: invalid variable name %q"+
				"\nhint: give names alone, such as --keep-env HOME,LANG", name)
		}
		if value, set := LookUp(environ, name); set {
			name += "=" + value
		}
		kept = append(kept, name)
	}
	return kept, nil
}

// LookUp returns a variable's value, and whether it is set. Of several the last one counts, as for a child process.
func LookUp(environ []string, name string) (value string, set bool) {
	for _, kv := range slices.Backward(environ) {
		if rest, found := strings.CutPrefix(kv, name); found && strings.HasPrefix(rest, "=") {
			return rest[1:], true
		}
	}
	return "", false
}

// OutputFlags say what retry itself prints about a run.
type OutputFlags struct {
	Quiet     bool   `short:"q" group:"Output" help:"Print nothing; with --output failure only why it failed in the end."`
	Verbose   bool   `short:"v" group:"Output" help:"Print also when an attempt starts."`
	LogFormat string `enum:"text,json" default:"text" group:"Output" placeholder:"text|json" help:"Lines on stderr for people or for programs."`
	CI        string `enum:"auto,github,gitlab,none" default:"auto" group:"Output" placeholder:"auto|github|gitlab|none" help:"The service whose log gets a folded group for each attempt, and annotations. Auto asks the environment."`
}

// ReportFlags ask for a report at the end of a run.
type ReportFlags struct {
	Report string `group:"Output" placeholder:"FILE|-" help:"Write the task with its attempts as JSON when the run ends, however it ends."`
}

// StreamFlags say what becomes of a command's streams. The journal keeps them with the task.
type StreamFlags struct {
	Stdin       string `enum:"auto,replay,rest,null" default:"auto" group:"Streams" placeholder:"auto|replay|rest|null" help:"auto: retry's own, a file from the same place in each attempt; an attempt that has read from a pipe is the last. replay: keep it, and give every attempt the same bytes. rest: what the attempts before have left. null: nothing."`
	Output      string `enum:"stream,final,success,failure" default:"stream" group:"Streams" placeholder:"stream|final|success|failure" help:"stream: as it comes. The others hold an attempt's output. final: pass on the last attempt's; success: only if it succeeded; failure: only if the task failed."`
	OutputLimit Size   `default:"2GiB" group:"Streams" placeholder:"SIZE" help:"With --output final: pass an attempt's output on once it is larger, and do not try again. Default 2GiB; 0 = no limit."`
	Capture     string `enum:"none,stderr,both" default:"none" group:"Streams" placeholder:"none|stderr|both" help:"Keep the end of each attempt's output in the journal: 8 KiB."`
}

// Over returns a task's options with what the flags change. A default stays empty: the journal stores no options then.
func (f *StreamFlags) Over(o task.Options) task.Options {
	if mode := task.StdinMode(f.Stdin); mode != task.StdinAuto {
		o.Stdin = mode
	}
	if mode := task.OutputMode(f.Output); mode.Held() {
		o.Output = mode
	}
	if o.Output == task.OutputFinal {
		o.OutputLimit = int64(f.OutputLimit)
	}
	if mode := task.CaptureMode(f.Capture); mode != task.CaptureNone {
		o.Capture = mode
	}
	return o
}

// ProcessGroupFlags say in which process group the command runs.
type ProcessGroupFlags struct {
	Foreground bool `group:"Running" help:"Run the command in retry's own process group, as on a terminal."`
	Group      bool `group:"Running" help:"Run the command in a process group of its own, also on a terminal."`
}

// StopFlags say how a command is stopped.
type StopFlags struct {
	Signal Signal `group:"Running" placeholder:"NAME" help:"What an attempt gets first that takes too long, before KILL. Default TERM."`
}

// Signal is a flag's value that is a signal: INT or SIGINT, and kept as the latter. Empty is the default.
type Signal string

// UnmarshalText reads the value of a flag.
func (s *Signal) UnmarshalText(b []byte) error {
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(string(b)), "SIG")
	if !task.IsSignal(name) {
		return fmt.Errorf("invalid signal %q\nhint: a name such as INT, HUP, QUIT, USR1 or KILL", b)
	}
	*s = Signal(name)
	return nil
}

// PolicyFlags are the flags that make a policy. Each has its variable, RETRY_ and its name in capitals, and most are
// keys of the config file. An example is for its schema.
type PolicyFlags struct {
	Policy      *string   `short:"p" group:"Policy" placeholder:"NAME" example:"default" help:"Start from a named policy: retry policy list shows them."`
	Attempts    *Count    `short:"n" group:"Policy" placeholder:"N" example:"8" help:"All attempts, the first included; 0 = no limit. Default 5."`
	Retries     *Count    `group:"Policy" placeholder:"N" example:"4" help:"The same, without the first one."`
	Backoff     *string   `short:"b" group:"Policy" placeholder:"SPEC" example:"exp:2s..2m" help:"Delays: 5s (always the same), exp:1s..30s, exp:1s*1.5, linear:2s, fib:1s, poly:15s+n^4, list:1s,5s,1m, buckets:3, expr:15+n^4, or a preset. Default exp:1s..1m."`
	Jitter      *string   `short:"j" group:"Policy" placeholder:"SPEC" example:"30%" help:"phase (the default of a curve that grows), none, full, equal, decorrelated, 30%, add:5s, add:1s..5s, add:30s*n."`
	Timeout     *Duration `short:"t" group:"Policy" placeholder:"TIME" example:"30s" help:"Stop an attempt that takes longer: TERM to its process group (or --signal), then KILL."`
	KillAfter   *Duration `group:"Policy" placeholder:"TIME" example:"10s" help:"Between TERM and KILL. Default 5s."`
	Budget      *Duration `short:"B" group:"Policy" placeholder:"TIME" example:"30m" help:"For everything together, waits included."`
	Deadline    *Moment   `group:"Policy" placeholder:"WHEN" help:"A budget by the wall clock: 23:30, RFC 3339, or a time from now."`
	ResetAfter  *Duration `group:"Policy" placeholder:"TIME" example:"10m" help:"An attempt that ran this long starts the backoff anew."`
	Consecutive *Count    `group:"Policy" placeholder:"N" example:"3" help:"Succeed after so many successes in a row."`
	RetryOn     []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"1,75" help:"Retry these outcomes only: 1,75,100-120,SIGSEGV,signal,timeout,any, or an expression such as 'exit == 75'."`
	StopOn      []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"2" help:"Never retry these."`
	SuccessOn   []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"0,3" help:"These, and only these, are a success."`
}

// CheckConditions refuses conditions that were typed for a task and can never match its kind.
func (f *PolicyFlags) CheckConditions(kind task.Kind) error {
	for _, list := range []struct {
		flag  string
		texts []string
	}{{"retry-on", f.RetryOn}, {"stop-on", f.StopOn}, {"success-on", f.SuccessOn}} {
		for _, text := range list.texts {
			if err := task.CheckCondition(kind, text); err != nil {
				return fmt.Errorf("--%s: %w", list.flag, err)
			}
		}
	}
	return nil
}

// Duration is a flag's value such as 1h30m, 2d or 45 (seconds).
type Duration time.Duration

// UnmarshalText reads the value of a flag.
func (d *Duration) UnmarshalText(b []byte) error {
	value, err := text.ParseDuration(string(b))
	*d = Duration(value)
	return err
}

// Count is a flag's value that is a whole number of 0 or more.
type Count int

// MaxCount is larger than anybody needs, and small enough that sums do not overflow.
const MaxCount = 1_000_000_000

// UnmarshalText reads the value of a flag.
func (c *Count) UnmarshalText(b []byte) error {
	var n int
	if _, err := fmt.Sscanf(string(b)+"\n", "%d\n", &n); err != nil || n < 0 || n > MaxCount {
		err := fmt.Errorf("invalid number %q: want a whole number from 0 to %d", b, MaxCount)
		if _, notTime := text.ParseDuration(string(b)); notTime == nil { // as after watch -n
			return fmt.Errorf("%w\nhint: the time between attempts is -b %s", err, b)
		}
		return err
	}
	*c = Count(n)
	return nil
}

// Moment is a flag's value that is a time to come: RFC 3339, or 15:04 for the next time the clock shows that.
type Moment time.Time

// UnmarshalText reads the value of a flag.
func (m *Moment) UnmarshalText(b []byte) error {
	value, err := parseMoment(string(b), time.Now())
	*m = Moment(value)
	return err
}

func parseMoment(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if d, err := text.ParseDuration(s); err == nil && strings.Trim(s, "0123456789") != "" { // 12 may mean noon
		return now.Add(d).Round(0), nil // only the wall clock counts
	}
	clock, err := time.Parse("15:04", s)
	if err != nil {
		return time.Time{}, fmt.Errorf("invalid time %q"+
			"\nhint: write 23:30, 50m, or RFC 3339 like 2026-01-02T23:30:00+01:00", s)
	}
	if t := onDay(now, 0, clock); !t.Before(now) {
		return t, nil
	}
	return onDay(now, 1, clock), nil
}

// onDay returns the time of a clock so many days after now.
func onDay(now time.Time, days int, clock time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), 0, 0, now.Location())
}

// Since is a flag's value that is a time in the past.
type Since time.Time

// UnmarshalText reads the value of a flag.
func (m *Since) UnmarshalText(b []byte) error {
	value, err := parseSince(string(b), time.Now())
	*m = Since(value)
	return err
}

// parseSince reads how long ago, the last time that the clock showed 15:04, a day, or RFC 3339.
func parseSince(s string, now time.Time) (time.Time, error) {
	switch s {
	case "today":
		return onDay(now, 0, time.Time{}), nil
	case "yesterday":
		return onDay(now, -1, time.Time{}), nil
	}
	if clock, err := time.Parse("15:04", s); err == nil {
		if t := onDay(now, 0, clock); !t.After(now) {
			return t, nil
		}
		return onDay(now, -1, clock), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if ago, err := text.ParseDuration(strings.TrimSuffix(s, " ago")); err == nil {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %q"+
		"\nhint: write 2h or 3d for how long ago, yesterday, 15:04, 2026-01-31, "+
		"or RFC 3339 like 2026-01-31T15:04:00+01:00", s)
}

// Size is a flag's value that is a number of bytes: 2GiB, 512M, 4096.
type Size int64

// UnmarshalText reads the value of a flag.
func (s *Size) UnmarshalText(b []byte) error {
	n, err := units.RAMInBytes(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("invalid size %q\nhint: write it like 512M, 2GiB, or a number of bytes", b)
	}
	*s = Size(n)
	return nil
}

// String writes the size as a flag accepts it.
func (s Size) String() string {
	return units.BytesSize(float64(s))
}

// OrEmpty returns the value of a flag; empty where it was not given.
func OrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
