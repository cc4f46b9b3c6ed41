// Package download writes the reply of a request to a file, and reads the headers with which a cut download is resumed.
package download

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/spool"
)

// Destination is the file that a reply's body is written to.
type Destination struct {
	Path       string
	InPlace    bool        // the reply is written to what is there: a link, a pipe, stdout. Any other file is replaced
	Descriptor int         // 1 or 2: it is stdout or stderr
	Mode       fs.FileMode // of the file that is there; 0 for none
}

// standard holds the names of stdout and stderr.
var standard = map[string]int{
	"/dev/stdout": 1, "/dev/fd/1": 1, "/proc/self/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2, "/proc/self/fd/2": 2,
}

// DestinationOf looks at the file that a user named. It returns why a reply cannot be written there.
func DestinationOf(path string) (Destination, error) {
	if strings.HasSuffix(path, "/") {
		return Destination{}, errors.New("it is a directory\nhint: add the name of a file")
	}
	open, link := files.IsDescriptor(path), files.IsLink(path)
	d := Destination{Path: path, Descriptor: standard[path], InPlace: link}
	info, err := os.Stat(path)
	switch {
	case open && d.Descriptor == 0 && (err != nil || isOwn(path)):
		return Destination{}, errors.New("there is no open file of this number")
	case errors.Is(err, fs.ErrNotExist):
		return d, checkDirectory(filepath.Dir(path))
	case err != nil:
		return Destination{}, err
	case info.IsDir():
		return Destination{}, errors.New("it is a directory\nhint: add the name of a file")
	}
	d.Mode = info.Mode()
	d.InPlace = !d.Mode.IsRegular() || open || link
	if d.Mode.IsRegular() {
		err = checkWritable(path, link)
	}
	return d, err
}

// isOwn reports whether a path leads to a file that retry itself has opened, above all the journal. Unlike files that
// it inherited, these are closed for the programs that it starts.
func isOwn(path string) bool {
	info, _ := os.ReadFile("/proc/self/fdinfo/" + filepath.Base(path)) // Linux alone has it
	_, rest, _ := strings.Cut(string(info), "flags:")
	text, _, _ := strings.Cut(rest, "\n")
	flags, _ := strconv.ParseInt(strings.TrimSpace(text), 8, 64)
	return flags&syscall.O_CLOEXEC != 0
}

func checkDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s\nhint: make it first: mkdir -p %s", dir, dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	return nil
}

// checkWritable refuses a file that its owner made read-only: a rename needs no permission on the file that it
// replaces.
func checkWritable(path string, opened bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		return file.Close()
	}
	if opened || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // a program that runs cannot be opened, and can be replaced
}

// Open opens a destination that is not replaced. A named pipe waits for its reader.
func (d *Destination) Open() (*os.File, error) {
	if files.IsLink(d.Path) && (d.Mode == 0 || d.Mode.IsRegular()) && !files.IsDescriptor(d.Path) {
		return os.OpenFile(d.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	}
	return os.OpenFile(d.Path, os.O_WRONLY|os.O_APPEND, 0) // another process may write to it
}

// PartFile is the file beside a Destination that replaces it once the download is complete.
type PartFile struct {
	Destination
	id   string // of the task
	name string
	Body *spool.Spool
}

// NewPartFile makes the file. Where left says what an earlier run of the task has left, it opens that. Any other part
// file of the task is removed: a crash of the machine may have damaged it.
func NewPartFile(d Destination, id string, left *State) (*PartFile, error) {
	p := &PartFile{Destination: d, id: id, name: PartFileName(d.Path, id, "")}
	if left != nil {
		p.name = PartFileName(d.Path, id, left.Version())
	}
	mode := os.FileMode(0o666)
	if d.Mode != 0 {
		mode = d.Mode.Perm()
	}
	flags := os.O_RDWR
	if info, err := os.Lstat(p.name); left == nil || err != nil || !info.Mode().IsRegular() {
		_ = os.Remove(p.name)
		flags |= os.O_CREATE | os.O_EXCL // a symbolic link is not followed
	}
	file, err := os.OpenFile(p.name, flags, mode)
	if err != nil {
		return nil, err
	}
	if d.Mode != 0 {
		err = file.Chmod(mode) // whatever the umask says
	}
	if err == nil {
		p.Body, err = spool.Of(file)
	}
	if err != nil {
		_, _ = file.Close(), os.Remove(p.name)
		return nil, err
	}
	return p, nil
}

// RemoveOthers removes what earlier runs of the task have left under the names of other versions.
func (p *PartFile) RemoveOthers() {
	dir, own := filepath.Split(p.name)
	start := strings.TrimSuffix(filepath.Base(PartFileName(p.Path, p.id, "")), partSuffix)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if name := e.Name(); name != own && strings.HasPrefix(name, start) && strings.HasSuffix(name, partSuffix) {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}

const partSuffix = ".part"

// PartFileName returns a name that is the same after a resume, and differs from that of any other task and of any other
// version of the body: what the journal says of one does not fit another, also where it could not be written.
func PartFileName(path, id, version string) string {
	const longest = 255 - len("..12345678-12345678"+partSuffix) // of a name
	dir, base := filepath.Split(path)
	name := "." + base[:min(len(base), longest)] + "." + id[max(0, len(id)-8):]
	if version != "" {
		name += fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(version)))
	}
	return filepath.Join(dir, name+partSuffix)
}

// Begin empties the file for another version of the body: see State.Version.
func (p *PartFile) Begin(version string) error {
	err := p.Body.Truncate()
	if name := PartFileName(p.Path, p.id, version); err == nil && name != p.name {
		if err = os.Rename(p.name, name); err == nil {
			p.name = name
		}
	}
	return err
}

// Install replaces the destination with the file. It is synced to the disk where the outcome in the journal is, too:
// elsewhere, a download that is lost in a power cut can be repeated.
func (p *PartFile) Install(synced bool) error {
	var err error
	if synced {
		err = p.Body.Sync()
	}
	if err = cmp.Or(err, p.Body.Close()); err == nil {
		err = os.Rename(p.name, p.Path)
	}
	if err != nil {
		_ = os.Remove(p.name)
		return err
	}
	if synced {
		_ = files.SyncDir(filepath.Dir(p.Path)) // which some file systems refuse, and Windows
	}
	return nil
}

// Drop removes the file. p may be nil.
func (p *PartFile) Drop() {
	if p == nil {
		return
	}
	_, _ = p.Body.Close(), os.Remove(p.name)
}

// State says what a part file holds. The journal keeps it with the attempt in flight, so that a resume can go on.
type State struct {
	Validator string `json:"validator"`
	Source    string `json:"source"`             // see SourceOf
	Encoding  string `json:"encoding,omitempty"` // see EncodingOf
	Total     int64  `json:"total"`              // the size of the whole body; -1 = unknown
	Boot      string `json:"boot"`               // of the machine: what was not synced is lost with it
}

// StateOf reads what the journal kept; nil where there is nothing that this boot of the machine can go on from.
func StateOf(stored, boot string) *State {
	s := &State{}
	if json.Unmarshal([]byte(stored), s) != nil || s.Validator == "" || s.Source == "" || boot == "" || s.Boot != boot {
		return nil
	}
	return s
}

// Version tells the body from any other, also from one of another URL or encoding with the same validator. Empty:
// nothing does.
func (s *State) Version() string {
	if s.Validator == "" {
		return ""
	}
	return s.Source + " " + s.Validator + " " + s.Encoding
}

// SourceOf returns a hash of the URL that a body comes from. The query may hold secrets, and other users may read the
// name of a part file. The user and the fragment of a URL do not belong to what a server is asked for.
func SourceOf(u *url.URL) string {
	asked := *u
	asked.User, asked.Fragment, asked.RawFragment = nil, "", ""
	return fmt.Sprintf("%x", sha256.Sum256([]byte(asked.String())))
}

// EncodingOf returns how a body is encoded, such as "gzip"; empty: not at all.
func EncodingOf(header http.Header) string {
	return strings.ToLower(strings.Join(header.Values("Content-Encoding"), ","))
}

// String is how the journal keeps it.
func (s *State) String() string {
	text, _ := json.Marshal(s) // which cannot fail for strings and numbers
	return string(text)
}

// ContentRange is the header Content-Range: RFC 9110, section 14.4.
type ContentRange struct {
	First, Last int64 // both included; 0 and -1 where the range cannot be satisfied
	Total       int64 // -1 = unknown
}

// ParseContentRange reads "bytes 0-9/20", "bytes 0-9/*" and "bytes */20".
func ParseContentRange(text string) (ContentRange, bool) {
	unit, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	part, size, ok := strings.Cut(strings.TrimSpace(rest), "/")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return ContentRange{}, false
	}
	r := ContentRange{First: 0, Last: -1, Total: -1}
	if size != "*" {
		if r.Total, ok = digits(size); !ok {
			return ContentRange{}, false
		}
	}
	if part == "*" {
		return r, r.Total >= 0
	}
	first, last, _ := strings.Cut(part, "-")
	var ok2 bool
	r.First, ok = digits(first)
	r.Last, ok2 = digits(last)
	return r, ok && ok2 && r.First <= r.Last && (r.Total < 0 || r.Last < r.Total)
}

// PartOf reads what a reply says of the part that it holds. Several parts in one body are not read.
func PartOf(header http.Header) (ContentRange, bool) {
	if hasSeveral(header) {
		return ContentRange{}, false
	}
	return ParseContentRange(header.Get("Content-Range"))
}

func hasSeveral(header http.Header) bool {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), multipart)
}

// CountsOther reports whether the range of a reply counts something other than bytes: "items 0-9/50", or "0-9/50",
// which PostgREST sends.
func CountsOther(header http.Header) bool {
	unit, _, _ := strings.Cut(header.Get("Content-Range"), " ")
	return unit != "" && !strings.EqualFold(unit, "bytes") && !hasSeveral(header)
}

// multipart is the media type of a body with several parts, which have their ranges inside: RFC 9110, section 14.6.
const multipart = "multipart/byteranges"

// digits reads digits and nothing else.
func digits(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

// RangeError says that a server's reply to a request for the rest of a body cannot be used, or is not the whole rest.
type RangeError string

func (e RangeError) Error() string { return string(e) }

// minAge is how much older than the reply a file must be. The date of a newer file may stay the same when it changes
// again.
const minAge = time.Minute

// ValidatorOf returns a value for the header If-Range: RFC 9110, sections 13.1.5 and 8.8.2.2. Empty: there is none.
func ValidatorOf(header http.Header) string {
	if tag := header.Get("Etag"); tag != "" {
		if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' { // a weak one
			return ""
		}
		return tag
	}
	modified, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	sent, err := http.ParseTime(header.Get("Date"))
	if err != nil || sent.Sub(modified) < minAge {
		return ""
	}
	return header.Get("Last-Modified")
}
