//go:build !linux

package httpexec

import "os"

func descriptorOf(string) (int, error) { return -1, nil }

func inherited(string) *os.File { return nil }
