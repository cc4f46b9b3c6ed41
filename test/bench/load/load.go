// Package load puts the same work on systems that carry HTTP tasks, and measures them at the target of the requests:
// how many attempts a second come, how late, and what a killed worker leaves undone. bench measures retry with it, and
// the module test/bench/rivals other systems beside it.
package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// System is one that carries tasks: a store, and a worker in a process of its own.
type System interface {
	// Name is how the system is called in tables.
	Name() string
	// Handicaps says what the system does less or more than the others in a row of the table.
	Handicaps(row string) string
	// Reset leaves an empty store and no work going on. Only the rows about durable creates ask for a store that has a
	// task on disk before it acknowledges it: the others run with what the system has as its usual setting.
	Reset(ctx context.Context, durable bool) error
	// Fill creates many tasks by the fastest way that the system offers. Those of another process may begin at once.
	Fill(ctx context.Context, tasks []Task) error
	// Add creates one task and returns when the system has acknowledged it. Many callers add at once.
	Add(ctx context.Context, task Task) error
	// Work starts a worker, or lets the one that is there begin.
	Work(ctx context.Context) error
	// Hold lets tasks that are created from now on wait for the next Work, and leaves those that the store has.
	Hold() error
	// Kill ends the worker's process as kill -9 does, and returns after it has ended.
	Kill() error
	// Processes are the ids of the worker's process and of the server that has the store; 0 where there is none.
	Processes() (worker, server int)
	// StoreBytes is the size of the store, and where that is.
	StoreBytes(ctx context.Context) (size int64, where string, err error)
	// Close ends all processes of the system.
	Close() error
}

// Task is a POST of Body to URL.
type Task struct {
	URL      string
	Due      time.Time // in whole milliseconds; the zero time is now
	Attempts int       // at most; the delay between two is RetryDelay. 0 is the system's own policy
}

// RetryDelay is the time between two attempts of a task that bounds its attempts.
const RetryDelay = 100 * time.Millisecond

// Body is what every request carries, 256 bytes.
var Body = string(bytes.Repeat([]byte("0123456789abcdef"), 16))

// PrivateMemory is the memory of a process that is not pages of a file, in bytes. Only Linux tells it.
func PrivateMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kib * 1024, nil
}
