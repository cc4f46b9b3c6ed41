package spool

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// throughSocket returns what is written to a socket that sends each write as one packet.
func throughSocket(t *testing.T, write func(io.Writer)) []byte {
	t.Helper()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	read, to := os.NewFile(uintptr(ends[0]), "read"), os.NewFile(uintptr(ends[1]), "write")
	t.Cleanup(func() { _ = read.Close() })
	go func() {
		write(to)
		_ = to.Close()
	}()
	var got []byte
	for packet := make([]byte, 1<<20); ; {
		n, err := read.Read(packet)
		if err != nil {
			return got
		}
		got = append(got, packet[:n]...)
	}
}

// A socket refuses a packet that is larger than what it can hold, by default some 200 KiB.
func TestWriteToASocketOfPackets(t *testing.T) {
	content := bytes.Repeat(longText(), 2)
	inMemory := New(MemoryLimit, nil)
	_, err := inMemory.Write(content)
	testkit.Must(t, err)
	for name, s := range map[string]*Spool{"memory": inMemory, "file": inAFile(t, content)} {
		got := throughSocket(t, func(w io.Writer) {
			if n, err := s.WriteTo(w); n != int64(len(content)) || err != nil {
				t.Errorf("%s: got %d, %v, want %d", name, n, err, len(content))
			}
		})
		if !bytes.Equal(got, content) {
			t.Errorf("%s: got %d bytes, want the %d that were written", name, len(got), len(content))
		}
	}
}
