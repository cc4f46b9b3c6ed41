//go:build !linux

package state

import "os"

// writeOut leaves everything to the sync.
func writeOut(*os.File, func() bool) bool { return true }
