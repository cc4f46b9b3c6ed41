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

// lookPath finds the program that name stands for, seen from the task's directory.
func lookPath(name, dir string) (string, error) {
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		_, err := exec.LookPath(filepath.Join(dir, name))
		return name, err
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) && inPath(name) {
		return "", &exec.Error{Name: name, Err: fs.ErrPermission} // there, but not executable
	}
	return path, err
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
func startFailure(err error) runner.Outcome {
	o := runner.Outcome{Exit: runner.ExitInternal, Error: runner.ErrorStart, Message: err.Error()}
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && path.Op == "chdir":
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		o.Exit, o.Error = runner.ExitNotFound, runner.ErrorNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, exec.ErrDot), notExecutable(err):
		o.Exit, o.Error = runner.ExitNotExecutable, runner.ErrorNotExecutable
	}
	return o
}
