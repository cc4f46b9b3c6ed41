// Package flags holds the groups of flags that several commands share, and the types of their values.
package flags

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/10f93571/retry/task"
)

// StateFlag says where the journal is; every subcommand has it.
type StateFlag struct {
	State string
}

// JournalFlags say what a run does with the journal.
type JournalFlags struct {
	NoState      bool
	RequireState bool

	Retention *Duration
}

// ConfigFlag says where the config file is.
type ConfigFlag struct {
	Config *string
}

// Path returns the path of the config file, and whether somebody named it. Neither a relative XDG_CONFIG_HOME nor the current
// directory leads to one: what a checkout brings along is not to change how commands are run.
func (f *ConfigFlag) Path(getenv func(string) string) (path string, named bool) {
	if f.Config != nil {
		return *f.Config, true
	}
	if path := getenv("RETRY_CONFIG"); path != "" {
		return path, true
	}
	for _, home := range []struct{ variable, below string }{{"XDG_CONFIG_HOME", ""}, {"HOME", ".config"}, {"APPDATA", ""}} {
		if dir := getenv(home.variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, home.below, "retry", "config.toml"), false
		}
	}
	return "", false
}

// NameFlags give a task a name, and say what to do where the name is taken.
type NameFlags struct {
	ID          *string `name:"id"`
	Fresh       bool
	Once        bool
	KillOrphans bool
	IfRunning   string `enum:"fail,skip,wait" default:"fail"`
}

// HookFlags are commands to run beside a task, and the seed of its jitter; they go into the journal with it, too.
type HookFlags struct {
	OnRetry   string
	OnSuccess string
	OnFailure string
	Seed      *uint64
}

func (f *HookFlags) Options() task.Options {
	return task.Options{OnRetry: f.OnRetry, OnSuccess: f.OnSuccess, OnFailure: f.OnFailure, Seed: f.Seed}
}

// EnvironmentFlags say what of the environment goes into the journal.
type EnvironmentFlags struct {
	KeepEnv []string
}

// Kept returns the variables to keep: NAME=value, or NAME for one that is not set.
func (f *EnvironmentFlags) Kept(environ []string) ([]string, error) {
	var kept []string
	for _, name := range f.KeepEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("--keep-env: %q is no name of a variable\nhint: give names alone, such as --keep-env HOME,LANG", name)
		}
		kept = append(kept, LookUp(environ, name))
	}
	return kept, nil
}

// LookUp returns NAME=value, the last one as for a child, or NAME.
func LookUp(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if strings.HasPrefix(kv, name+"=") {
			return kv
		}
	}
	return name
}

// OutputFlags say what retry itself prints about a run.
type OutputFlags struct {
	Quiet     bool   `short:"q"`
	Verbose   bool   `short:"v"`
	LogFormat string `enum:"text,json" default:"text"`
	CI        string `enum:"auto,github,gitlab,none" default:"auto"`
}

// ReportFlags ask for a report.
type ReportFlags struct {
	Report string
}

// StreamFlags say what becomes of a command's streams; they go into the journal with the task.
type StreamFlags struct {
	Stdin       string `enum:"auto,replay,null" default:"auto"`
	Output      string `enum:"stream,final,success,failure" default:"stream"`
	OutputLimit Size   `default:"2GiB"`
	Capture     string `enum:"none,stderr,both" default:"none"`
}

// Over puts what the flags say into a task's options. What they leave as it is stays empty.
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

// groupFlags say whose process group the command is in.
type ProcessGroupFlags struct {
	Foreground bool
	Group      bool
}
