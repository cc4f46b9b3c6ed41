//go:build unix

package cmdexec

import (
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
)

// A file that is rewritten while all of it is read is a mixture: the attempt reads it as it would without retry, but no
// other one does.
func TestReplayOfAFileThatIsRewritten(t *testing.T) {
	file := fileWith(t, strings.Repeat(fourLines, 1<<16))
	var complete completeCalls
	stdin := stdio.Replay(stdio.NewReader(file), onDisk(t), complete.call)
	checkAttempt(t, stdin, "head -c 1 >/dev/null; touch -t 200001010000 '"+file.Name()+"'; cat >/dev/null", "")
	if _, err := stdin.Open(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v, want that the file has changed", err)
	}
	complete.check(t, stdin, 0)
}

// A terminal that was closed reports an end, which is not the end of what somebody sends through it.
func TestReplayOfATerminalThatWasClosed(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	var complete completeCalls
	stdin := stdio.Replay(stdio.NewReader(terminal), onDisk(t), complete.call)
	testkit.Must(t, master.Close())
	r := script(t, "cat").withStdin(stdin)
	r.run()
	r.check(incompleteStdin("read stdin: the terminal on stdin was closed"))
	complete.check(t, stdin, 0)
}
