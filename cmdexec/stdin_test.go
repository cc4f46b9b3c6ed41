//go:build unix

package cmdexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
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
			stdin := &stdio.InheritedStdin{File: file}
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
	"socket":   socketOf(unix.SOCK_STREAM),
	"datagram": socketOf(unix.SOCK_SEQPACKET),
}

func socketOf(kind int) func(*testing.T) (read, write *os.File) {
	return func(t *testing.T) (read, write *os.File) {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		testkit.Must(t, err)
		return os.NewFile(uintptr(pair[0]), "read"), os.NewFile(uintptr(pair[1]), "write")
	}
}

// inherit is a stdin whose end comes with the test's.
func inherit(t *testing.T, file *os.File) *stdio.InheritedStdin {
	stdin := &stdio.InheritedStdin{File: file}
	t.Cleanup(stdin.Release)
	return stdin
}

// The writer of a socket can shut its side down, and go on to read.
func TestHalfClosedSocket(t *testing.T) {
	for _, there := range []int{0, 10} {
		read, write := openStream["socket"](t)
		writeZeros(t, write, there)
		testkit.Must(t, unix.Shutdown(int(write.Fd()), unix.SHUT_WR))
		stdin := inherit(t, read)
		for range 3 {
			if err := openAndClose(t, stdin, func() {}); err != nil {
				t.Errorf("%d unread bytes: got %v, want no error", there, err)
			}
		}
		_, _ = read.Close(), write.Close()
	}
}

// What an attempt read from a stream is gone: no other attempt can have the same.
func TestReadFromAStream(t *testing.T) {
	tests := []struct {
		name  string
		there int  // bytes before the attempt
		ended bool // there is no writer any more
		came  int  // bytes that come before it reads
		read  int  // by the attempt
		more  int  // bytes that come after it has read
		ends  bool // the writer ends meanwhile
		want  bool // that it was read
		maybe bool // of a pipe of zeros, in which what came later looks like what came first
	}{
		{name: "some", there: 10, read: 1, want: true},
		{name: "all", there: 10, read: 10, want: true},
		{name: "all of what had ended", there: 10, ended: true, read: 10, want: true},
		{name: "some of what had ended", there: 10, ended: true, read: 9, want: true},
		{name: "some of a full one", there: pipeCapacity, ended: true, read: 1, want: true},
		{name: "a full one, filled again", there: pipeCapacity, read: 4096, more: 4096, want: true},
		{name: "some, and as much came", there: 10, read: 5, more: 5, want: true},
		{name: "some, and more came", there: 10, read: 5, more: 7, want: true},
		{name: "some, more came, and it ended", there: 10, read: 5, more: 7, ends: true, want: true},
		{name: "all that came", came: 10, read: 10, want: true},
		{name: "all that came, and it ended", came: 10, read: 10, ends: true, want: true},
		{name: "some of what came", came: 10, read: 5, want: true},
		{name: "nothing, and none came"},
		{name: "nothing", there: 10},
		{name: "nothing, and more came", there: 10, more: 5, maybe: true},
		{name: "nothing of what ended", there: 10, ends: true},
		{name: "nothing of what ended empty", ends: true},
		{name: "nothing of what had ended", there: 10, ended: true},
		{name: "nothing of what had ended full", there: pipeCapacity, ended: true},
		{name: "nothing of what had ended empty", ended: true},
	}
	for _, tt := range tests {
		for _, kind := range []string{"pipe", "socket", "pipe of zeros"} {
			t.Run(tt.name+" "+kind, func(t *testing.T) {
				if runtime.GOOS != "linux" {
					t.Skip("the system does not show what is read")
				}
				kind, ofZeros := strings.CutSuffix(kind, " of zeros")
				read, write := openStream[kind](t)
				defer func() { _, _ = read.Close(), write.Close() }()
				written := 0
				send := func(n int) {
					if ofZeros {
						writeZeros(t, write, n)
					} else if n > 0 {
						_, err := write.Write(bytesOf(written, n))
						testkit.Must(t, err)
					}
					written += n
				}
				send(tt.there)
				if tt.ended {
					testkit.Must(t, write.Close())
				}
				stdin := inherit(t, read)
				for range 2 { // an attempt that reads nothing changes nothing
					if err := openAndClose(t, stdin, func() {}); err != nil {
						t.Errorf("before it was read: got %v, want no error", err)
					}
				}
				err := openAndClose(t, stdin, func() {
					send(tt.came)
					_, err := io.ReadFull(read, make([]byte, tt.read))
					testkit.Must(t, err)
					send(tt.more)
					if tt.ends {
						testkit.Must(t, write.Close())
					}
				})
				if got, want := errors.Is(err, stdio.ErrRead), tt.want || tt.maybe && ofZeros; got != want {
					t.Errorf("got %v, want that it was read: %v", err, want)
				}
			})
		}
	}
}

// bytesOf returns bytes of which no short part is repeated soon.
func bytesOf(offset, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte((offset + i) % 251)
	}
	return text
}

func writeZeros(t *testing.T, to io.Writer, n int) {
	t.Helper()
	if n > 0 {
		_, err := to.Write(make([]byte, n))
		testkit.Must(t, err)
	}
}

// openAndClose does what an attempt does with its stdin.
func openAndClose(t *testing.T, stdin stdio.Stdin, attempt func()) error {
	t.Helper()
	in, err := stdin.Open()
	testkit.Must(t, err)
	in.Started()
	attempt()
	return in.Close()
}

// The attempt that reads is told from those that do not, and --stdin rest lets them all read.
func TestAnAttemptThatReads(t *testing.T) {
	for _, rest := range []bool{false, true} {
		r := script(t, "exit")
		_, err := io.WriteString(r.stdin, fourLines)
		testkit.Must(t, err)
		testkit.Must(t, r.stdin.Close())
		stdin := r.executor.Stdin.(*stdio.InheritedStdin)
		stdin.Rest = rest
		for i, code := range []string{"exit", copyOneLine, "exit", copyOneLine} {
			next := script(t, code).withStdin(stdin)
			next.number = i + 1
			if got, want := next.start().end().StdinRead, code != "exit" && !rest; got != want {
				t.Errorf("rest %v, attempt %d: got that it has read: %v, want %v", rest, i+1, got, want)
			}
		}
	}
}

func TestNotAStream(t *testing.T) {
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
			stdin := &stdio.InheritedStdin{File: file}
			for range 3 {
				if err := openAndClose(t, stdin, func() {}); err != nil {
					t.Errorf("got %v, want no error", err)
				}
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
