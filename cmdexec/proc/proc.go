// Package proc runs a process as a shell would: in a process group of its own or in ours, with the signals and the
// terminal that we were started with. It stops a whole group, and finds processes that an earlier attempt has left
// running.
package proc

import (
	"os"
	"sync/atomic"
)

// The variables by which the processes of a task are found.
const (
	EnvTaskID     = "RETRY_TASK_ID"
	EnvAttempt    = "RETRY_ATTEMPT"
	EnvStatus     = "RETRY_STATUS"      // of the task; set for hooks only
	EnvOuterTasks = "RETRY_OUTER_TASKS" // those that a nested retry runs in, as ID:ATTEMPT, separated by commas
	EnvContainer  = "RETRY_CONTAINER"   // the Container in which it runs
)

var container atomic.Value

// SetContainer notes in which container this process runs, and ends: an id of the retry that is PID 1 there.
func SetContainer(id string) { container.Store(id) }

// Container returns that id; empty where nobody knows one.
func Container() string {
	id, _ := container.Load().(string)
	return id
}

// Command describes a process to start.
type Command struct {
	Path                  string
	Argv                  []string
	Env                   []string
	Dir                   string // empty for our own directory
	Stdin, Stdout, Stderr *os.File

	Started func(target int) // called at once, with what kill(2) takes for all of the process; may be nil

	TaskID      string      // the value of EnvTaskID in Env
	Attempt     int         // its number; 0 for a hook
	Guarded     bool        // a Guard kills it if retry is killed, and nobody may do that before the guard
	SharedGroup bool        // the process stays in our process group, as it must on a terminal
	OnTerminal  func() bool // whether the terminal now sends its signals to our group; nil means never

	// Starting gets a token just before the process is started, and a better one just after, since retry may be killed
	// at any time; nil for nobody.
	Starting func(token string)
}

func nothing() {}

// Survivors finds what an attempt left running when its retry was killed or stopped. It implements runner.Survivors.
type Survivors struct {
	Kill bool // stop them instead of waiting for their end
}

// Unwanted implements runner.Survivors.
func (s Survivors) Unwanted() bool { return s.Kill }
