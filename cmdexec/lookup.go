package cmdexec

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/task"
)

// checkDir returns the error of entering a directory: that of starting a process there would blame the program.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(dir + "/."); err != nil { // the dot needs the right to enter
		return &fs.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}

// find remembers where an attempt before found the command, as shells do. It looks anew where that is no longer there.
func (e *Executor) find(name string) (path string, err error) {
	if name == e.found.name {
		if _, err := exec.LookPath(e.found.path); err == nil {
			return e.found.path, nil
		}
	}
	if path, err = lookPath(name, e.Dir); err == nil && filepath.IsAbs(path) {
		e.found.name, e.found.path = name, path
	}
	return path, err
}

// lookPath finds the program that name stands for, seen from the task's directory.
func lookPath(name, dir string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		seen := name
		if dir != "" && !filepath.IsAbs(name) {
			seen = filepath.Join(dir, name)
		}
		_, err := exec.LookPath(seen)
		return name, err
	}
	return search(name, dir)
}

// defaultPath is where execvp looks when there is no PATH.
var defaultPath = []string{"/bin", "/usr/bin"}

// search looks a name up as execvp does: also in directories that PATH names relatively, seen from the task's directory.
func search(name, dir string) (string, error) {
	found := error(&exec.Error{Name: name, Err: exec.ErrNotFound})
	if name == "" {
		return "", found
	}
	for _, d := range searchPath() {
		path := filepath.Join(d, name)
		if !filepath.IsAbs(path) {
			path = "." + string(filepath.Separator) + path
		}
		seen := path
		if dir != "" && !filepath.IsAbs(path) {
			seen = filepath.Join(dir, path)
		}
		_, err := exec.LookPath(seen)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if info, statErr := os.Stat(seen); statErr == nil && info.Mode().IsRegular() {
			found = &exec.Error{Name: name, Err: fs.ErrPermission} // there, but not executable
		}
	}
	return "", found
}

func searchPath() []string {
	path, ok := os.LookupEnv("PATH")
	if !ok {
		return defaultPath
	}
	return filepath.SplitList(path)
}

// startFailure classifies the error of a command that could not be started.
func startFailure(name string, err error) task.Outcome {
	o := task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: "start " + name + ": " + cause(err)}
	if cut := (*stdinError)(nil); errors.As(err, &cut) {
		return cut.outcome()
	}
	path := &fs.PathError{}
	_ = errors.As(err, &path)
	switch {
	case path.Op == "chdir":
		o.Message = "enter " + path.Path + ": " + cause(err)
	case path.Op == "fork/exec" && errors.Is(err, fs.ErrNotExist): // the file itself was found before
		o.Exit, o.Error, o.Message = task.ExitNotFound, task.ErrorNotFound, name+": its interpreter is missing"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		o.Exit, o.Error, o.Message = task.ExitNotFound, task.ErrorNotFound, name+": command not found"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, exec.ErrDot), notExecutable(err):
		o.Exit, o.Error, o.Message = task.ExitNotExecutable, task.ErrorNotExecutable, name+": not executable: "+cause(err)
	}
	return o
}

// cause is an error without the operation and the path in front of it.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
