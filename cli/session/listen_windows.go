package session

import (
	"syscall"
)

var forwarded = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

var inheritable []syscall.Signal
