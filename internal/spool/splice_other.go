//go:build !linux

package spool

import (
	"errors"
	"os"
)

func toPipe(*os.File, int64, *os.File, int64) (int, error) { return 0, errors.ErrUnsupported }
