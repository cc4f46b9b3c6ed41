package crash

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childVariable turns the test binary into the command of a task. Its value is the directory of the log.
const childVariable = "RETRY_CRASH_CHILD"

// The arguments of a child.
const (
	argReads = "reads" // its stdin, to the end; the sum of it follows
	argNamed = "named" // the task has the name that follows; TERM is ignored, so that who is cancelled still takes his time
	argSlow  = "slow"  // works longer, so that it outlives its retry where it can
)

// event is a line of the log of a child.
type event struct {
	Kind     string // start, end or overlap
	Task     string
	Attempt  int
	Key      string
	Max      int
	Deadline string
	Pid      int
	At       time.Time
	Exit     int    // of an end
	Stdin    string // of an end: the sum of what it read
	Detail   string // of an overlap
}

// The kinds of event.
const (
	eventStart   = "start"
	eventEnd     = "end"
	eventOverlap = "overlap"
)

const logName = "children.log"

// exitOf returns the exit status of each attempt, so that the journal can be checked.
func exitOf(tk string, attempt int) int {
	switch sha256.Sum256(fmt.Append(nil, tk, " ", attempt))[0] % 8 {
	case 0, 1, 2:
		return 0
	case 3:
		return exitStop
	}
	return 1
}

// exitStop is the exit status that the wrappers do not retry.
const exitStop = 3

// child is the command: it logs that it starts, holds the task's lock, works for a moment, and logs how it ends.
func child(dir string, args []string) int {
	e := event{
		Kind: eventStart, Task: os.Getenv("RETRY_TASK_ID"), Key: os.Getenv("RETRY_IDEMPOTENCY_KEY"),
		Deadline: os.Getenv("RETRY_DEADLINE"), Pid: os.Getpid(), At: time.Now(),
	}
	e.Attempt, _ = strconv.Atoi(os.Getenv("RETRY_ATTEMPT"))
	e.Max, _ = strconv.Atoi(os.Getenv("RETRY_MAX_ATTEMPTS"))
	e.log(dir)
	e.exclude(dir, "task."+e.Task)
	if at := slices.Index(args, argNamed); at >= 0 {
		signal.Ignore(syscall.SIGTERM)
		e.exclude(dir, "name."+args[at+1])
	}
	work := rand.N(8 * time.Millisecond)
	if slices.Contains(args, argReads) {
		read, _ := io.ReadAll(os.Stdin)
		e.Stdin = sum(read)
		work += time.Duration(rand.N(2)) * 120 * time.Millisecond // only then is what was read marked as complete
	}
	fmt.Printf("attempt %d\n", e.Attempt)
	if slices.Contains(args, argSlow) {
		work += rand.N(60 * time.Millisecond)
	}
	time.Sleep(work)
	e.Kind, e.Exit, e.At = eventEnd, exitOf(e.Task, e.Attempt), time.Now()
	e.log(dir)
	return e.Exit
}

// exclude logs an overlap where another child holds the lock.
func (e event) exclude(dir, lock string) {
	if other := takeLock(filepath.Join(dir, "lock."+lock)); other != "" {
		e.Kind, e.Detail = eventOverlap, other+" with the "+lock
		e.log(dir)
	}
}

func sum(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// log appends the event with a single write, so that lines of two children never mix.
func (e event) log(dir string) {
	line, err := json.Marshal(e)
	if err == nil {
		err = appendLine(filepath.Join(dir, logName), line)
	}
	if err != nil {
		panic(err)
	}
}

func appendLine(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// takeLock takes the lock of a task, or of a name, which the process keeps to its end. It returns another living holder
// of the lock. A process that was killed, and still holds the lock for a moment, does not count.
func takeLock(path string) (other string) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		panic(err)
	}
	alive := 0
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return ""
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			panic(err)
		}
		if pid := lockHolder(fd); pid > 0 && !dying(pid) {
			// Between the signal and its exit, a process shows neither state: look again.
			if alive++; alive == 5 {
				return "process " + strconv.Itoa(pid)
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// lockHolder returns the process that holds a flock on the file; 0 where none does.
func lockHolder(fd int) int {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		panic(err)
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 00:2a:1234 0 EOF
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "FLOCK" && strings.HasSuffix(f[5], inode) {
			pid, _ := strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}

// dying reports whether a process will not run again: it has ended, is exiting, or SIGKILL is pending.
func dying(pid int) bool {
	const leaving = 0x4 // PF_EXITING of linux/sched.h
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if flags, _ := strconv.Atoi(fields[6]); flags&leaving != 0 {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if name == "SigPnd" || name == "ShdPnd" {
			if pending, _ := strconv.ParseUint(value, 16, 64); pending&(1<<(syscall.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}
