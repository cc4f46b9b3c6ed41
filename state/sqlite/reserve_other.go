//go:build !linux

package sqlite

import (
	"os"
)

func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
