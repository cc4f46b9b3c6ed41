//go:build unix

package lock

import (
	"context"

	"golang.org/x/sys/unix"
)

// queueLock is the lock that writers queue for, between those of the tasks and those of the names.
const queueLock = 1 << 61

// Queue waits until this process is the first of those that want to write, or until the context ends. The kernel serves waiting processes
// in their order, which polling SQLite's lock does not. The queue only makes the order fair: SQLite's own lock protects the database. Call
// done after the write.
func (o *Owners) Queue(ctx context.Context) (done func()) {
	if owned, err := o.Acquire(queueLock); owned || err != nil {
		return o.leaveQueue
	}
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		_, _ = o.flock(unix.F_SETLKW, unix.F_WRLCK, queueLock)
	}()
	select {
	case <-granted:
		return o.leaveQueue
	case <-ctx.Done():
		go func() { // the kernel offers no way to leave its queue
			<-granted
			o.leaveQueue()
		}()
		return func() {}
	}
}

func (o *Owners) leaveQueue() {
	_ = o.Release(queueLock)
}
