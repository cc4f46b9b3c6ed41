package lock

import (
	"github.com/10f93571/retry/state"
)

// FileSystem is what the system tells of a file system.
type FileSystem struct {
	Name     string // of a remote one
	Remote   bool   // it is on another machine
	FUSE     bool   // a program serves it, which may reach over a network
	ReadOnly bool
	NoInodes bool   // no file can be made, whatever is free
	Free     uint64 // bytes
}

// Statfs returns what the system tells of the file system that the path is on.
func Statfs(path string) (FileSystem, error) { return statfs(path) }

// statfs is replaced by tests: none can mount a network file system.
var statfs = systemStatfs

// Check refuses a network file system; path is on it. SQLite's WAL needs memory that all processes share, which two
// machines do not.
func (s FileSystem) Check(path string) error {
	if !s.Remote {
		return nil
	}
	return state.NewFault(state.ErrNetwork, "use a directory on a local disk, with --state or RETRY_STATE_DIR",
		"%s is on a network file system (%s), where SQLite cannot share a journal", path, s.Name)
}

// ReadOnlyHint says what to do about a directory that cannot be written: SQLite does not tell a read-only file system
// from read-only files.
func ReadOnlyHint(dir string) string {
	if system, err := statfs(dir); err == nil && !system.ReadOnly {
		return "chmod u+w " + dir + " and what is in it, or use another directory with --state"
	}
	return "mount the file system of " + dir + " writable, or use another directory with --state"
}
