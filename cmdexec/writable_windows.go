package cmdexec

import (
	"os"
	"time"
)

// Writable is true: the system does not tell.
func Writable(*os.File, time.Duration) bool { return true }
