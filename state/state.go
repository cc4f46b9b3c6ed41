// Package state says what a store of tasks is: what it is asked, what it answers, and how it fails. state/sqlite is one.
package state

import (
	"time"

	"github.com/10f93571/retry/task"
)

// StoredPolicy is a named policy as the journal holds it.
type StoredPolicy struct {
	task.Policy
	UpdatedAt time.Time
	Damage    error // what of it cannot be read; then only its name is known
}

// Output is the captured end of what an attempt wrote.
type Output struct {
	Attempt        int
	Stdout, Stderr string // the same where both streams were one file
}

// Filter says which tasks a list holds. Its zero value lets all of them pass.
type Filter struct {
	Statuses []task.Status // any of these
	Since    time.Time     // made at this time or later
	Name     string        // of this name; empty for any
	Limit    int           // no more than the newest so many; 0 is no limit
}

// Retention says which finished tasks may go, and how many rows at once. A success that --once remembers never goes.
type Retention struct {
	Before   time.Time     // they finished before this time; zero is at any time
	Statuses []task.Status // they have one of these; empty is every finished one
	Rows     int           // a step removes no more rows of all tables together
}

// Prunable is what Prune would remove in all.
type Prunable struct {
	Tasks          int
	Oldest, Newest time.Time // when the first and the last of them finished
}

// Size is how much room the journal takes on the disk, in bytes.
type Size struct {
	Database, WAL int64
}

// Total is the room of all files together.
func (s Size) Total() int64 { return s.Database + s.WAL }
