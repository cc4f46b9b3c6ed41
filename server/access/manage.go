package access

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/10f93571/retry/internal/files"
)

// Listed is what a token file shows of a token.
type Listed struct {
	Name  string
	Scope Scope
	ID    string // the part of the token between rtk_ and the secret
}

// List returns the tokens of a file in their order; none where there is no file. Of a file with wrong lines it returns
// the right ones, and the errors.
func List(file string) ([]Listed, error) {
	_, entries, err := load(file)
	list := make([]Listed, len(entries))
	for i, e := range entries {
		list[i] = Listed{e.name, e.scope, e.id}
	}
	return list, err
}

func load(file string) (content []byte, entries []entry, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if content, err = readTokens(f); err != nil {
		return nil, nil, err
	}
	if entries, err = parseTokens(content); err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return content, entries, err
}

// ErrNoToken says that a file has no token of a name.
var ErrNoToken = errors.New("no such token")

// Remove takes the tokens of a name out of a file. Comments and wrong lines stay. The file is replaced whole, so that a
// server never reads half of it.
func Remove(file, name string) error {
	content, _, err := load(file)
	if content == nil && err != nil {
		return err
	}
	var kept bytes.Buffer
	found := false
	for line := range strings.Lines(string(content)) {
		if e, wrong := parseToken(strings.TrimSpace(line)); wrong == nil && e.name == name {
			found = true
			continue
		}
		kept.WriteString(line)
	}
	if !found {
		return fmt.Errorf("%s: %w: %q\nhint: retry token list shows them", file, ErrNoToken, name)
	}
	path, err := files.Target(file)
	if err != nil {
		return err
	}
	return files.Replace(path, kept.Bytes())
}
