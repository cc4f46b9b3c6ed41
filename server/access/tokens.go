package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Tokens are those of a file. It is read again when it has changed, so that a line that is removed ends its token at
// once. Many goroutines may use it.
type Tokens struct {
	file string
	warn func(error)
	same func(a, b []byte) int // constant in time

	mu     sync.Mutex
	seen   fs.FileInfo // of the content that was read, nil where the file was not there
	byID   map[string]entry
	broken string // what was last warned of
}

// OpenTokens reads a token file. warn gets what is wrong with the file when it is read again; it must not block.
func OpenTokens(file string, warn func(error)) (*Tokens, error) {
	t := &Tokens{file: file, warn: warn, same: subtle.ConstantTimeCompare}
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return t, nil
}

// Find returns whose token it is. An unknown ID takes the same steps as a known one with a wrong secret.
func (t *Tokens) Find(token string) (Identity, bool) {
	hash := sha256.Sum256([]byte(token))
	e, known := t.entry(tokenID(token)) // the ID is not secret; of an unknown one the hash is all zeros
	equal := t.same(hash[:], e.hash[:])
	if !known || equal != 1 {
		return Identity{}, false
	}
	return Identity{Name: e.name, Scope: e.scope, token: e.id}, true
}

// entry returns what is kept of a token now.
func (t *Tokens) entry(id string) (entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	e, known := t.byID[id]
	return e, known
}

// refresh reads the file again if it has changed, and says what is wrong with it once.
func (t *Tokens) refresh() {
	info, err := os.Stat(t.file)
	if err == nil && t.seen != nil && unchanged(info, t.seen) {
		return
	}
	if err = t.read(); err != nil && info != nil && t.seen != nil && !sameContent(info, t.seen) {
		t.byID = nil // or one that was removed would hold
	}
	if err == nil {
		t.broken = ""
	} else if err.Error() != t.broken {
		t.broken = err.Error()
		t.warn(fmt.Errorf("read tokens: %w", err))
	}
}

// read reads the file. Of a file with wrong lines the right ones hold. Where it is gone no token holds, and
// where it has changed and cannot be read. Where its mode alone was changed, those hold that were read before.
func (t *Tokens) read() error {
	f, err := os.Open(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		t.seen, t.byID = nil, nil
		return fmt.Errorf("%w\nhint: retry token add NAME --scope write --token-file %s makes it", err, t.file)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content, err := readTokens(f)
	if err != nil {
		return err
	}
	entries, err := parseTokens(content)
	byID := make(map[string]entry, len(entries))
	for _, e := range entries {
		byID[e.id] = e
	}
	t.seen, t.byID = info, byID
	if err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return nil
}
