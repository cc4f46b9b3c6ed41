package httpexec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/internal/files"
)

// destination is the file that a reply's body is for.
type destination struct {
	path    string      // behind all links
	through bool        // it is written to: a pipe, a device, what another process has open. Any other is replaced at once
	mode    fs.FileMode // of the file that is there; 0 for none
}

// CheckOutput says why a reply cannot be written to a file, as far as that is known before there is one.
func CheckOutput(path string) error {
	_, err := destinationOf(path)
	return outputError(path, err)
}

// outputError says what is wrong with -o. Exit code: curl's for a failed write.
func outputError(path string, err error) error {
	if err == nil {
		return nil
	}
	if detail := (*fs.PathError)(nil); errors.As(err, &detail) && detail.Path == path {
		err = detail.Err
	}
	return &localError{"write the reply to " + path, err, exitWrite}
}

func destinationOf(path string) (destination, error) {
	if strings.HasSuffix(path, "/") {
		return destination{}, errors.New("it is a directory\nhint: add the name of a file")
	}
	path, err := files.Follow(path)
	if err != nil {
		return destination{}, err
	}
	if _, err := descriptorOf(path); err != nil {
		return destination{}, err
	}
	d := destination{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, checkDirectory(filepath.Dir(path))
	case err != nil:
		return destination{}, err
	case info.IsDir():
		return destination{}, errors.New("it is a directory\nhint: add the name of a file")
	}
	d.mode = info.Mode()
	d.through = !d.mode.IsRegular() || files.IsDescriptor(path)
	if d.mode.IsRegular() {
		err = checkWritable(path)
	}
	return d, err
}

func checkDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s\nhint: make it first: mkdir -p %s", dir, dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	}
	return nil
}

// checkWritable has a file that its owner made read-only stay as it is: renaming asks for no permission on what it replaces.
func checkWritable(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err == nil { // else it is a program that runs, or on its way elsewhere
		_ = file.Close()
	}
	return nil
}
