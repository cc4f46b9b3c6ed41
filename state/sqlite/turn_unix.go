//go:build unix

package sqlite

import (
	"context"

	"golang.org/x/sys/unix"
)

// turnLock is the byte of whose turn it is to write, between those of the tasks and those of the names.
const turnLock = 1 << 61

// turn waits in line until it is this process's turn to write, or the context ends: the kernel serves those who wait in their order,
// which looking again and again at SQLite's lock does not. It is a courtesy among us: SQLite's lock is what counts. Call done after
// the write.
func (o *owners) turn(ctx context.Context) (done func()) {
	if owned, err := o.acquire(turnLock); owned || err != nil {
		return o.endTurn
	}
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		_, _ = o.flock(unix.F_SETLKW, unix.F_WRLCK, turnLock)
	}()
	select {
	case <-granted:
		return o.endTurn
	case <-ctx.Done():
		go func() { // nobody can be taken out of the line
			<-granted
			o.endTurn()
		}()
		return func() {}
	}
}

func (o *owners) endTurn() {
	_ = o.release(turnLock)
}
