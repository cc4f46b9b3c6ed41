//go:build crashpoints && unix

package conn

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// crashVariable says where to die: the name of a step, a colon, and how many times to pass it first.
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
	_ = os.Unsetenv(crashVariable) // the command must not inherit it
}

// Step kills this process like kill -9 if crashVariable names the step.
func Step(name string) {
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
