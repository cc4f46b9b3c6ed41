//go:build !cgo

package state

// CheckDriver fails: without cgo the SQLite driver is an empty shell that would fail at the first query only.
func CheckDriver() error { return ErrNoCgo }

func isBusy(error) bool { return false }
