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
	"syscall"
	"time"
)

// childVariable turns the test binary into the command of a task. Its value is the directory of the log.
const childVariable = "RETRY_CRASH_CHILD"

// What the arguments of a child ask for.
const (
	argReads = "reads" // its stdin, to the end; the sum of it follows
	argNamed = "named" // the task has the name that follows; TERM is ignored, so that who is cancelled still takes his time
	argSlow  = "slow"  // works longer, so that it outlives its retry where it can
)

// event is a line of the log: what a child says of itself.
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

// exitOf is the rule by which every attempt ends, so that what the journal says of it can be checked.
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

// child is the command's life: it says that it starts, holds the task's lock, works a moment, and says how it ends.
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
	if slices.Contains(args, argReads) {
		read, _ := io.ReadAll(os.Stdin)
		e.Stdin = sum(read)
	}
	fmt.Printf("attempt %d\n", e.Attempt)
	work := rand.N(8 * time.Millisecond)
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

// log appends the event with one write, which no other's can come between.
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
