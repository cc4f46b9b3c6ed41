package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// tokenPrefix begins each token, so that scanners for secrets find it.
const tokenPrefix = "rtk_"

// entry is a line of a token file: what is kept of a token.
type entry struct {
	name  string
	scope Scope
	id    string
	hash  [sha256.Size]byte // of the whole token
}

// tokenID returns the ID of rtk_ID_SECRET. The secret may have underscores, the ID has none.
func tokenID(token string) string {
	rest, found := strings.CutPrefix(token, tokenPrefix)
	id, _, more := strings.Cut(rest, "_")
	if !found || !more {
		return ""
	}
	return id
}

// Add makes a token, and appends what is kept of it to a file: the name of its owner, its scope, its ID and its
// SHA-256. It makes the file where there is none. The token itself is not kept: it can be shown only this time.
func Add(file, name string, scope Scope) (token string, err error) {
	if !isTokenName(name) {
		return "", fmt.Errorf("invalid token name %q\nhint: use up to 64 letters, digits, dots, dashes and underscores", name)
	}
	if scope < Read || scope > Admin {
		return "", fmt.Errorf("invalid scope %d", scope)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			token = ""
		}
	}()
	content, err := readTokens(f)
	if err != nil {
		return "", err
	}
	entries, err := parseTokens(content)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	for _, e := range entries {
		if e.name == name {
			return "", fmt.Errorf("%s has a token named %q\nhint: choose another name, or end that one: retry token rm %[2]s", file, name)
		}
	}
	token, e := makeToken(name, scope)
	line := fmt.Sprintf("%s %s %s %x\n", e.name, e.scope, e.id, e.hash)
	if len(content) > 0 && content[len(content)-1] != '\n' {
		line = "\n" + line
	}
	return token, appendLine(f, line)
}

// appendLine writes a line with one call, so that lines added at the same time stand one after the other, and takes
// back half a line.
func appendLine(f *os.File, line string) error {
	before, err := f.Stat()
	if err != nil {
		return err
	}
	if n, err := f.WriteString(line); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(before.Size()))
		}
		return err
	}
	return f.Sync()
}

func makeToken(name string, scope Scope) (string, entry) {
	var id [5]byte
	var secret [32]byte
	_, _ = rand.Read(id[:]) // never fails
	_, _ = rand.Read(secret[:])
	e := entry{name: name, scope: scope, id: hex.EncodeToString(id[:])}
	token := tokenPrefix + e.id + "_" + base64.RawURLEncoding.EncodeToString(secret[:])
	e.hash = sha256.Sum256([]byte(token))
	return token, e
}

func isTokenName(name string) bool {
	return len(name) <= 64 && strings.Trim(name, "-._") != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
	})
}

// maxTokenFile bounds what is read of a token file: about 10,000 tokens.
const maxTokenFile = 1 << 20

// readTokens reads an open token file, unless others than its owner could read or change it.
func readTokens(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read tokens", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err := checkPrivate(f.Name(), info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if len(content) > maxTokenFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", f.Name(), maxTokenFile)
	}
	return content, err
}

// parseTokens reads lines of "name scopes id sha256". Empty lines and those that begin with # say nothing. The entries
// of the right lines come with the errors of the wrong ones.
func parseTokens(content []byte) (entries []entry, err error) {
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		e, wrong := parseToken(line)
		if wrong == nil && seen[e.id] {
			wrong = fmt.Errorf("the id %s is there twice", e.id)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("line %d: %w", number, wrong))
			continue
		}
		seen[e.id] = true
		entries = append(entries, e)
	}
	return entries, err
}

func parseToken(line string) (e entry, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return e, fmt.Errorf("want name, scopes, id and SHA-256, got %d words", len(fields))
	}
	if e.name = fields[0]; !isTokenName(e.name) {
		return e, fmt.Errorf("invalid token name %q", e.name)
	}
	if e.scope, err = ParseScope(fields[1]); err != nil {
		return e, err
	}
	if e.id = fields[2]; !isTokenName(e.id) || strings.Contains(e.id, "_") {
		return e, fmt.Errorf("invalid token id %q", e.id)
	}
	hash, err := hex.DecodeString(fields[3])
	if err != nil || len(hash) != len(e.hash) {
		return e, errors.New("the SHA-256 has not 64 hexadecimal digits")
	}
	copy(e.hash[:], hash)
	return e, nil
}
