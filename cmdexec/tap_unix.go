//go:build unix

package cmdexec

import "syscall"

// largestPipe is what a pipe holds at most, unless root has raised that: a process can make its own larger.
const largestPipe = 1 << 20

// drain takes what is in the pipe without waiting for more. What the process wrote before it ended is there and fits the pipe.
func (t *tap) drain(buffer []byte) {
	raw, err := t.read.SyscallConn()
	if err != nil {
		return
	}
	for left := largestPipe; left > 0; {
		n := 0
		err := raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), buffer[:min(left, len(buffer))]) })
		if n <= 0 || err != nil || !t.take(buffer[:n]) {
			return
		}
		left -= n
	}
}
