//go:build crashpoints && unix

package sqlite

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// crashVariable says where to die: the name of a step, a colon, and how many times to live through it.
const crashVariable = "RETRY_CRASH_AT"

var crash struct {
	sync.Mutex
	name string
	left int
}

func init() {
	name, times, _ := strings.Cut(os.Getenv(crashVariable), ":")
	crash.name = name
	crash.left, _ = strconv.Atoi(times)
	_ = os.Unsetenv(crashVariable) // it is not for the command
}

// step kills this process, as kill -9 does, where that was asked for.
func step(name string) {
	crash.Lock()
	defer crash.Unlock()
	if name != crash.name {
		return
	}
	if crash.left--; crash.left < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment
	}
}
