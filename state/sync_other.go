//go:build !linux

package state

import "os"

func syncData(file *os.File) error { return file.Sync() }
