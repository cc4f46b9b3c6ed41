//go:build !linux

package conn

import "os"

// SyncData waits until the disk holds a file.
func SyncData(f *os.File) error { return f.Sync() }
