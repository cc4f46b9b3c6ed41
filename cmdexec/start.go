package cmdexec

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

const shell = "/bin/sh"

// checkDirectory returns an error if no process can be started in dir. The error of the start itself would blame the
// program.
func checkDirectory(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(dir + "/."); err != nil { // the dot needs the permission to enter
		return &fs.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}

// lookPath finds the program that name stands for in the PATH of its environment, as execvp does: relative names, and
// relative directories in PATH, start at dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		_, err := exec.LookPath(from(dir, name))
		return name, err
	}
	failure := error(&exec.Error{Name: name, Err: exec.ErrNotFound})
	if name == "" {
		return "", failure
	}
	directories := []string{"/bin", "/usr/bin"} // where execvp looks without a PATH
	for _, setting := range env {
		variable, path, _ := strings.Cut(setting, "=")
		if variable == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(variable, "PATH") {
			directories = filepath.SplitList(path)
		}
	}
	for _, d := range directories {
		path := filepath.Join(d, name)
		if !filepath.IsAbs(path) {
			path = "." + string(filepath.Separator) + path
		}
		_, err := exec.LookPath(from(dir, path))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if info, statErr := os.Stat(from(dir, path)); statErr == nil && info.Mode().IsRegular() {
			failure = &exec.Error{Name: name, Err: fs.ErrPermission}
		}
	}
	return "", failure
}

// from returns path as it is found from our own directory.
func from(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// startFailure returns the outcome of a command that could not be started.
func startFailure(name string, err error) task.Outcome {
	if incomplete := (*stdio.StdinError)(nil); errors.As(err, &incomplete) {
		return incomplete.Outcome()
	}
	o := task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: "start " + name + ": " + cause(err)}
	path := &fs.PathError{}
	_ = errors.As(err, &path)
	switch {
	case path.Op == "chdir":
		o.Message = "enter " + path.Path + ": " + cause(err)
	case path.Op == "fork/exec" && errors.Is(err, fs.ErrNotExist): // lookPath has found the file itself
		o.Exit, o.Error, o.Message = task.ExitNotFound, task.ErrorNotFound, name+": its interpreter is missing"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		o.Exit, o.Error, o.Message = task.ExitNotFound, task.ErrorNotFound, name+": command not found"
	case notExecutable(err):
		o.Exit, o.Error, o.Message = task.ExitNotExecutable, task.ErrorNotExecutable, name+": not executable: "+cause(err)
	}
	return o
}

// withoutStdin returns the outcome of an attempt that did not begin, since what the one before it has left running has
// read from stdin. The exit status is that of the one before.
func withoutStdin(before task.Outcome, err error) task.Outcome {
	return task.Outcome{Exit: before.ExitCode(), Error: task.ErrorStart, Message: err.Error(), StdinRead: true}
}

// notExecutable reports whether the file exists but cannot be executed, or not with these arguments.
func notExecutable(err error) bool {
	errs := []error{
		fs.ErrPermission, exec.ErrDot,
		syscall.E2BIG, syscall.EISDIR, syscall.ETXTBSY, syscall.ENOTDIR, syscall.ELOOP, syscall.ENOEXEC,
	}
	if runtime.GOOS == "windows" {
		errs = append(errs, syscall.Errno(193)) // ERROR_BAD_EXE_FORMAT
	}
	return slices.ContainsFunc(errs, func(known error) bool { return errors.Is(err, known) })
}

// cause is an error without the operation and the path in front of it.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// The variables that tell a command about its attempt.
const (
	EnvTaskID         = proc.EnvTaskID
	EnvAttempt        = proc.EnvAttempt
	EnvMaxAttempts    = "RETRY_MAX_ATTEMPTS" // 0 = no limit
	EnvIdempotencyKey = "RETRY_IDEMPOTENCY_KEY"
	EnvLastExit       = "RETRY_LAST_EXIT" // of the previous attempt; unset in the first
	EnvDeadline       = "RETRY_DEADLINE"  // RFC 3339; unset without a budget
	EnvStatus         = proc.EnvStatus
)

// attemptVariables are set by retry alone: the values of an outer retry are removed.
var attemptVariables = []string{
	EnvTaskID, EnvAttempt, EnvMaxAttempts, EnvIdempotencyKey, EnvLastExit, EnvDeadline, EnvStatus, proc.EnvOuterTasks,
}

// OuterTasks returns the ids of the tasks that this process is a part of.
func OuterTasks(getenv func(string) string) []string {
	ids := strings.FieldsFunc(getenv(EnvTaskID)+","+getenv(proc.EnvOuterTasks), func(r rune) bool { return r == ',' })
	for i, entry := range ids {
		ids[i], _, _ = strings.Cut(entry, ":")
	}
	return ids
}

// milliseconds is RFC 3339 with the precision of the journal, so that a resumed attempt gets the same deadline.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// inherited returns what all attempts have of retry's own environment, each variable once.
func inherited(own []string, dir string) []string {
	var id, attempt, outer string
	env := []string{} // not nil, for which Environ would return that of retry
	for _, setting := range own {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case EnvTaskID:
			id = value
		case EnvAttempt:
			attempt = value
		case proc.EnvOuterTasks:
			outer = value
		}
		if !slices.Contains(attemptVariables, name) {
			env = append(env, setting)
		}
	}
	if id != "" && attempt != "" {
		id += ":" + attempt
	}
	if tasks := strings.Trim(id+","+outer, ","); tasks != "" {
		env = append(env, proc.EnvOuterTasks+"="+tasks)
	}
	if container := proc.Container(); container != "" {
		env = append(env, proc.EnvContainer+"="+container)
	}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	return (&exec.Cmd{Env: env}).Environ() // which removes duplicates
}

// attemptEnvironment returns the variables that tell a command about its attempt.
func attemptEnvironment(t *task.Task, number int) []string {
	env := []string{
		EnvTaskID + "=" + t.ID,
		EnvAttempt + "=" + strconv.Itoa(number),
		EnvMaxAttempts + "=" + strconv.Itoa(t.MaxAttempts()),
		EnvIdempotencyKey + "=" + t.IdempotencyKey,
	}
	if t.Last.Number > 0 && !t.Last.Outcome.IsCrash() {
		env = append(env, EnvLastExit+"="+strconv.Itoa(t.Last.Outcome.ExitCode()))
	}
	if deadline, ok := t.Deadline(); ok {
		env = append(env, EnvDeadline+"="+deadline.UTC().Format(milliseconds))
	}
	return env
}
