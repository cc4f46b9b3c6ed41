package cmdexec

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/runner"
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

// lookPath finds the program that name stands for, seen from the task's directory.
func lookPath(name, dir string) (string, error) {
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		seen := name
		if dir != "" {
			seen = filepath.Join(dir, name)
		}
		_, err := exec.LookPath(seen)
		return name, err
	}
	path, err := search(name)
	if errors.Is(err, exec.ErrNotFound) && inPath(name) {
		return "", &exec.Error{Name: name, Err: fs.ErrPermission} // there, but not executable
	}
	return path, err
}

// defaultPath is where execvp looks when there is no PATH.
var defaultPath = []string{"/bin", "/usr/bin"}

func search(name string) (string, error) {
	if _, ok := os.LookupEnv("PATH"); !ok {
		for _, dir := range defaultPath {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(name)
}

// inPath reports whether a file of that name stands in a directory of PATH, executable or not.
func inPath(name string) bool {
	if strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// startFailure classifies the error of a command that could not be started.
func startFailure(name string, err error) runner.Outcome {
	o := runner.Outcome{Exit: runner.ExitInternal, Error: runner.ErrorStart, Message: "start " + name + ": " + cause(err)}
	if cut := (*stdinError)(nil); errors.As(err, &cut) {
		return cut.outcome()
	}
	path := &fs.PathError{}
	_ = errors.As(err, &path)
	switch {
	case path.Op == "chdir":
		o.Message = "enter " + path.Path + ": " + cause(err)
	case path.Op == "fork/exec" && errors.Is(err, fs.ErrNotExist): // the file itself was found before
		o.Exit, o.Error, o.Message = runner.ExitNotFound, runner.ErrorNotFound, name+": its interpreter is missing"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		o.Exit, o.Error, o.Message = runner.ExitNotFound, runner.ErrorNotFound, name+": command not found"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, exec.ErrDot), notExecutable(err):
		o.Exit, o.Error, o.Message = runner.ExitNotExecutable, runner.ErrorNotExecutable, name+": not executable: "+cause(err)
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
