package cmdexec

import (
	"os"

	"github.com/10f93571/retry/runner"
)

// Survivors finds nothing: the job object of a killed retry takes its processes with it.
type Survivors struct{ Kill bool }

// Unwanted implements runner.Survivors.
func (s Survivors) Unwanted() bool { return s.Kill }

// Find implements runner.Survivors.
func (Survivors) Find(*runner.Task, runner.Attempt) string { return "" }

// Signal implements runner.Survivors.
func (Survivors) Signal(*runner.Task, runner.Attempt, os.Signal) {}
