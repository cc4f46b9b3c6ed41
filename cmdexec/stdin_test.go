//go:build unix

package cmdexec

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

const fourLines = "one\ntwo\nthree\nfour\n"

// copyOneLine is a script that reads one line and no more: the shell reads byte by byte.
const copyOneLine = `read -r x; echo "$x"`

func fileWith(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	file, err := os.Open(path)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func expectText(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(r, got)
	testkit.Must(t, err)
	if string(got) != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// checkAttempt runs an attempt that writes what it reads, and compares that.
func checkAttempt(t *testing.T, stdin stdio.Stdin, code, want string) {
	t.Helper()
	got, o := script(t, code).withStdin(stdin).run()
	if got != want || o.ExitCode() != 0 {
		t.Errorf("%q: got %q, %+v; want %q", code, got, o, want)
	}
}

func TestFileIsReadAgainFromTheSamePlace(t *testing.T) {
	tests := map[string]func(*testing.T, *os.File){
		"there":   func(*testing.T, *os.File) {},
		"removed": func(t *testing.T, file *os.File) { testkit.Must(t, os.Remove(file.Name())) },
		"has grown": func(t *testing.T, file *os.File) {
			more, err := os.OpenFile(file.Name(), os.O_WRONLY|os.O_APPEND, 0)
			testkit.Must(t, err)
			_, err = more.WriteString("five\n")
			testkit.Must(t, err)
			testkit.Must(t, more.Close())
		},
	}
	for name, meanwhile := range tests {
		t.Run(name, func(t *testing.T) {
			file := fileWith(t, fourLines)
			expectText(t, file, "one\n") // retry does not always get the start of a file
			stdin := &stdio.InheritedStdin{File: file, Consumed: func() { t.Error("Consumed was called for a file") }}
			checkAttempt(t, stdin, copyOneLine, "two\n")
			meanwhile(t, file)
			rest, err := io.ReadAll(io.NewSectionReader(file, 4, 1000))
			testkit.Must(t, err)
			checkAttempt(t, stdin, "cat", string(rest))
			checkAttempt(t, stdin, copyOneLine, "two\n")
			checkAttempt(t, stdin, "exec <&-", "")
			checkAttempt(t, stdin, "cat", string(rest))
		})
	}
}

// An attempt that could not be started is the first one too.
func TestFileAfterAFailedStart(t *testing.T) {
	stdin := &stdio.InheritedStdin{File: fileWith(t, fourLines)}
	newRig(t, "/no/such/command").withStdin(stdin).start().end()
	checkAttempt(t, stdin, copyOneLine, "one\n")
	checkAttempt(t, stdin, copyOneLine, "one\n")
}

// openStream opens the kinds of streams that a stdin can be.
var openStream = map[string]func(*testing.T) (read, write *os.File){
	"pipe": func(t *testing.T) (read, write *os.File) {
		read, write, err := os.Pipe()
		testkit.Must(t, err)
		return read, write
	},
	"socket": func(t *testing.T) (read, write *os.File) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		testkit.Must(t, err)
		return os.NewFile(uintptr(pair[0]), "read"), os.NewFile(uintptr(pair[1]), "write")
	},
}

// The writer of a socket can shut its side down, and go on to read.
func TestConsumedOfAHalfClosedSocket(t *testing.T) {
	for _, there := range []int{0, 10} {
		read, write := openStream["socket"](t)
		writeZeros(t, write, there)
		testkit.Must(t, unix.Shutdown(int(write.Fd()), unix.SHUT_WR))
		stdin := &stdio.InheritedStdin{File: read, Consumed: func() {
			t.Errorf("Consumed was called with %d unread bytes", there)
		}}
		for range 3 {
			openAndClose(t, stdin)
		}
		_, _ = read.Close(), write.Close()
	}
}

func TestConsumed(t *testing.T) {
	tests := []struct {
		name  string
		there int  // bytes before the first attempt
		ended bool // there is no writer any more
		read  int  // by the first attempt
		more  int  // came while it ran
		want  int  // times that Consumed is called
	}{
		{name: "some was read", there: 10, read: 1, want: 1},
		{name: "all was read", there: 10, read: 10, want: 1},
		{name: "all was read of what had ended", there: 10, ended: true, read: 10, want: 1},
		{name: "some was read of what had ended", there: 10, ended: true, read: 9, want: 1},
		{name: "a full one was read", there: pipeCapacity, ended: true, read: 1, want: 1},
		{name: "a full one was read and filled again", there: pipeCapacity, read: 4096, more: 4096, want: 1},
		{name: "it came and was read", want: 1},          // looks the same as one where nothing came
		{name: "more came", there: 10, more: 5, want: 1}, // looks the same as one where some was read
		{name: "nothing was read", there: 10},
		{name: "nothing was read of what had ended", there: 10, ended: true},
		{name: "nothing was read of what had ended full", there: pipeCapacity, ended: true},
		{name: "it had ended and was empty", ended: true},
	}
	for _, tt := range tests {
		for kind, open := range openStream {
			t.Run(tt.name+" "+kind, func(t *testing.T) {
				read, write := open(t)
				defer func() { _, _ = read.Close(), write.Close() }()
				writeZeros(t, write, tt.there)
				if tt.ended {
					testkit.Must(t, write.Close())
				}
				calls := 0
				stdin := &stdio.InheritedStdin{File: read, Consumed: func() { calls++ }}
				openAndClose(t, stdin)
				if calls != 0 {
					t.Error("Consumed was called for the first attempt")
				}
				expectText(t, read, string(make([]byte, tt.read)))
				writeZeros(t, write, tt.more)
				for range 3 {
					openAndClose(t, stdin)
				}
				if calls != tt.want {
					t.Errorf("calls of Consumed: got %d, want %d", calls, tt.want)
				}
			})
		}
	}
}

func writeZeros(t *testing.T, to io.Writer, n int) {
	t.Helper()
	if n > 0 {
		_, err := to.Write(make([]byte, n))
		testkit.Must(t, err)
	}
}

// openAndClose does what an attempt does with its stdin.
func openAndClose(t *testing.T, stdin stdio.Stdin) {
	t.Helper()
	in, err := stdin.Open()
	testkit.Must(t, err)
	in.Started()
	testkit.Must(t, in.Close())
}

// The first attempt does not read, the second one does. Consumed is called with the third.
func TestConsumedByALaterAttempt(t *testing.T) {
	r := script(t, "exit")
	_, err := io.WriteString(r.stdin, fourLines)
	testkit.Must(t, err)
	testkit.Must(t, r.stdin.Close())
	stdin := r.executor.Stdin.(*stdio.InheritedStdin)
	calls := 0
	stdin.Consumed = func() { calls++ }
	for i, want := range []int{0, 0, 1, 1} {
		code := []string{"exit", copyOneLine, "exit", copyOneLine}[i]
		next := script(t, code).withStdin(stdin)
		next.number = i + 1
		next.start().check(task.Outcome{})
		if calls != want {
			t.Errorf("calls of Consumed with attempt %d: got %d, want %d", i+1, calls, want)
		}
	}
}

// Consumed may be nil.
func TestConsumedOfNobody(t *testing.T) {
	r := script(t, "exit")
	for range 3 {
		openAndClose(t, r.executor.Stdin)
	}
}

func TestNotConsumed(t *testing.T) {
	tests := map[string]func(*testing.T) *os.File{
		"terminal": func(t *testing.T) *os.File {
			master, terminal, err := pty.Open()
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = master.Close() })
			return terminal
		},
		"/dev/null": func(t *testing.T) *os.File {
			null, err := os.Open(os.DevNull)
			testkit.Must(t, err)
			return null
		},
		"closed": func(t *testing.T) *os.File {
			read, write, err := os.Pipe()
			testkit.Must(t, err)
			testkit.Must(t, write.Close())
			testkit.Must(t, read.Close())
			return read
		},
		"file": func(t *testing.T) *os.File { return fileWith(t, fourLines) },
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			file := open(t)
			t.Cleanup(func() { _ = file.Close() })
			stdin := &stdio.InheritedStdin{File: file, Consumed: func() { t.Error("Consumed was called") }}
			for range 3 {
				openAndClose(t, stdin)
			}
			checkAttempt(t, stdin, "exit", "")
		})
	}
}

func TestNullStdin(t *testing.T) {
	for range 2 {
		checkAttempt(t, stdio.NullStdin{}, "cat; echo end", "end\n")
	}
}

// The second attempt gets what the first has not read of a stream.
func TestStreamIsShared(t *testing.T) {
	r := script(t, copyOneLine)
	_, err := io.WriteString(r.stdin, fourLines)
	testkit.Must(t, err)
	testkit.Must(t, r.stdin.Close())
	stdin := r.executor.Stdin
	checkAttempt(t, stdin, copyOneLine, "one\n")
	checkAttempt(t, stdin, copyOneLine, "two\n")
	checkAttempt(t, stdin, "cat", "three\nfour\n")
}

// The bytes of a file arrive unchanged.
func TestFileOfAnyBytes(t *testing.T) {
	var all bytes.Buffer
	for i := range 1 << 16 {
		all.WriteByte(byte(i ^ i>>8))
	}
	stdin := &stdio.InheritedStdin{File: fileWith(t, all.String())}
	for range 2 {
		checkAttempt(t, stdin, "cat", all.String())
	}
}
