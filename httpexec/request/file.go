package request

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/internal/files"
)

// FileBody is a file of a request, which must not change after the task was made.
type FileBody struct {
	*os.File
	part Part
}

// OpenFile opens the file of a part. It refuses a file that has changed since Stamp.
func OpenFile(part Part) (*FileBody, error) {
	if info, err := os.Stat(part.File); err == nil && info.Mode()&os.ModeNamedPipe != 0 { // opening one would wait
		return nil, changed(part)
	}
	file, err := os.Open(part.File)
	if err != nil {
		return nil, err
	}
	f := &FileBody{file, part}
	if err := f.Same(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Size implements Body.
func (f *FileBody) Size() int64 { return f.part.Size }

// Same returns an error if the file has changed. It looks at the open file, not at one that has replaced it since.
func (f *FileBody) Same() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now := f.part
	now.stamp(info)
	if now.Size != f.part.Size || !now.Time.Equal(f.part.Time) || f.part.Inode != 0 && now.Inode != f.part.Inode {
		return changed(f.part)
	}
	return nil
}

func changed(part Part) error {
	return fmt.Errorf("%s has changed since the task was made"+
		"\nhint: start anew, or give it on stdin, which is kept", part.File)
}

// StreamError says that a part of a body can be read only once: a pipe, a terminal, a process substitution, an open
// file of this process; or that nobody knows its size, as of a file in /proc. A caller may read it to its end and send
// that as stdin.
type StreamError struct{ Part int }

func (e *StreamError) Error() string {
	return "it is no regular file, and can be read only once\nhint: give it on stdin, and nothing else"
}

// Stamp notes the size, the time of change and the inode of each file of a body. It returns a *StreamError for the first
// that is one.
func Stamp(r *Request) error {
	for i := range r.Body {
		part := &r.Body[i]
		if part.File == "" || part.File == StdinFile {
			continue
		}
		err := stamp(part)
		if stream := (*StreamError)(nil); errors.As(err, &stream) {
			stream.Part = i
		}
		if err != nil {
			return fmt.Errorf("the request's body: %w", err)
		}
	}
	return nil
}

func stamp(part *Part) error {
	info, err := os.Stat(part.File)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "read", Path: part.File, Err: errors.New("it is a directory")}
	case !info.Mode().IsRegular(), files.IsDescriptor(part.File):
		return &fs.PathError{Op: "read", Path: part.File, Err: &StreamError{}}
	}
	file, err := os.Open(part.File) // a file that cannot be read is an error before anything is sent
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if n, _ := file.Read(make([]byte, 1)); n > 0 && info.Size() == 0 {
		return &fs.PathError{Op: "read", Path: part.File, Err: &StreamError{}}
	}
	part.stamp(info)
	return nil
}

// stamp notes what tells a file from another one: archives and deployments give many files one time of change.
func (p *Part) stamp(info fs.FileInfo) {
	p.Size, p.Time, p.Inode = info.Size(), info.ModTime().UTC(), files.Inode(info)
}

// FormHead returns the header of a part of a form, as curl writes it.
func FormHead(boundary string, part Part) string {
	var b strings.Builder
	disposition := "form-data"
	if boundary == part.Group {
		disposition = "attachment"
	}
	b.WriteString("--" + boundary + "\r\nContent-Disposition: " + disposition)
	if part.Name != "" && boundary != part.Group {
		b.WriteString(`; name="` + quoteName(part.Name) + `"`)
	}
	if part.FileName != "" {
		b.WriteString(`; filename="` + quoteName(part.FileName) + `"`)
	}
	if part.Type != "" {
		b.WriteString("\r\nContent-Type: " + part.Type)
	}
	return b.String() + "\r\n\r\n"
}

// quoteName follows the multipart/form-data encoding of the HTML standard.
func quoteName(name string) string {
	return strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name)
}

// mediaTypes are those that curl knows.
var mediaTypes = map[string]string{
	".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
	".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf", ".xml": "application/xml",
}

// FormType returns the media type that curl gives a part of a form for which the user named none; empty for none.
func FormType(part *Part) string {
	known := func(name string) string { return mediaTypes[strings.ToLower(filepath.Ext(name))] }
	kind := cmp.Or(known(part.FileName), known(part.File))
	switch {
	case part.FileName == "" && kind == "text/plain":
		return "" // the type of a part that names none
	case part.FileName != "" && kind == "" && part.File != "" && part.File != StdinFile:
		return "application/octet-stream"
	}
	return kind
}
