package cmdexec

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

// fits is what an enlarged pipe holds beside the first line.
const fits = 1<<20 - 8<<10

// playEnlarge makes its stdout as large as every process may, and writes a line and as much as fits.
func playEnlarge() error {
	if _, err := unix.FcntlInt(1, unix.F_SETPIPE_SZ, 1<<20); err != nil {
		return err
	}
	fmt.Println(os.Getpid())
	_, err := io.WriteString(os.Stdout, strings.Repeat("x", fits))
	return err
}

// A command can make its pipe larger than pipes are, and end when it has filled it.
func TestLastWordsInALargePipe(t *testing.T) {
	r := newRig(t, role("enlarge")...)
	r.executor.Output.Capture = task.CaptureBoth
	r.start().endAndReap()
	checkText(t, "passed on", r.rest(), strings.Repeat("x", fits))
}
