// Package source knows what the engine of the page is made from. Only its generator and its test need it.
package source

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	Module          *struct{ Path, Version string }
}

// Digest sums up what the engine in a directory is made from: the text of every file of ours, and the version of every module of
// others. The Go release is not in it.
func Digest(dir string) (string, error) {
	packages, err := dependencies(dir)
	if err != nil {
		return "", fmt.Errorf("list what the engine is made from: %w", err)
	}
	sum := sha256.New()
	for _, p := range packages {
		switch {
		case p.Standard:
		case p.Module.Version != "":
			_, _ = fmt.Fprintf(sum, "%s %s\n", p.ImportPath, p.Module.Version)
		default:
			if err := p.add(sum); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// add adds the files of a package of ours; git may have given their lines other ends.
func (p listed) add(w io.Writer) error {
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s %s\n%s\n", p.ImportPath, name, strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	return nil
}

func dependencies(dir string) (all []listed, err error) {
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Module", "./engine")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %s", err, failed.Stderr)
	} else if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}
