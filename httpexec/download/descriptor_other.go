//go:build !linux

package download

import (
	"os"
)

func descriptorOf(string) (int, error) { return -1, nil }

func Inherited(string) *os.File { return nil }
