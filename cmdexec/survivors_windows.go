package cmdexec

import (
	"os"

	"github.com/10f93571/retry/task"
)

// Survivors finds nothing: the job object of a killed retry takes its processes with it.
type Survivors struct{ Kill bool }

// Unwanted implements runner.Survivors.
func (s Survivors) Unwanted() bool { return s.Kill }

// Find implements runner.Survivors.
func (Survivors) Find(*task.Task, task.Attempt) string { return "" }

// Signal implements runner.Survivors.
func (Survivors) Signal(*task.Task, task.Attempt, os.Signal) {}
