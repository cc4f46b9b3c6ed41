package httpexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// TestBodies compares pieces one after another with one text.
func TestBodies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, model := &bodies{}, []byte(nil)
		for _, piece := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 9)).Draw(t, "pieces") {
			whole.add(bytes.NewReader(piece))
			model = append(model, piece...)
		}
		if whole.size != int64(len(model)) {
			t.Fatalf("got %d bytes, want %d", whole.size, len(model))
		}
		for range 2 { // every attempt reads it from the start
			got, err := io.ReadAll(iotest.OneByteReader(whole.reader()))
			if err != nil || !bytes.Equal(got, model) {
				t.Fatalf("got %q, %v, want %q", got, err, model)
			}
		}
	})
}

// contentOf returns the body that a request sends.
func contentOf(t *testing.T, e *Executor, r *request.Request) (string, error) {
	t.Helper()
	body, err := e.body(r)
	if err != nil {
		return "", err
	}
	defer body.close()
	text, err := io.ReadAll(body.reader())
	testkit.Must(t, err)
	return string(text), nil
}

func TestBodyOfParts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, []byte("a\r\n\x00b \xff&\n"), 0o600))
	tests := []struct {
		name     string
		boundary string
		parts    []request.Part
		want     string
	}{
		{"nothing", "", []request.Part{{}}, ""},
		{"texts", "", []request.Part{{Text: []byte("a=b")}, {Text: []byte("&")}, {Text: []byte("c\n")}}, "a=b&c\n"},
		{"a file", "", []request.Part{{Text: []byte("x")}, {File: file}}, "xa\r\n\x00b \xff&\n"},
		{"stripped", "", []request.Part{{File: file, Strip: true}}, "ab \xff&"},
		{"encoded", "", []request.Part{{File: file, Encode: true}}, "a%0D%0A%00b+%FF%26%0A"},
		{"both", "", []request.Part{{File: file, Encode: true, Strip: true}}, "ab+%FF%26"},
		{"stdin", "", []request.Part{{File: request.StdinFile}, {File: request.StdinFile, Strip: true}}, "in\nin"},
		{"a form", "B", []request.Part{{Name: "a\"\r\n", Text: []byte("b")},
			{File: request.StdinFile, FileName: "f", Type: "t/x"}},
			"--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0A\"\r\n\r\nb\r\n" +
				"--B\r\nContent-Disposition: form-data; filename=\"f\"\r\nContent-Type: t/x\r\n\r\nin\n\r\n--B--\r\n"},
	}
	for _, tt := range tests {
		r := &request.Request{Body: tt.parts, Boundary: tt.boundary}
		testkit.Must(t, request.Stamp(r))
		e := &Executor{Stdin: data("in\n")}
		for range 2 { // attempts
			if got, err := contentOf(t, e, r); err != nil || got != tt.want {
				t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
			}
		}
	}
}

// A part is transformed once: later changes of its file do not matter. The text is larger than what stays in memory.
func TestTransformOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	text := strings.Repeat("a\nb ", 1<<20)
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	r := &request.Request{Body: []request.Part{{File: file, Strip: true, Encode: true}}}
	testkit.Must(t, request.Stamp(r))
	e := &Executor{Temporary: func() (*os.File, error) { return spool.Temporary(t.TempDir()) }}
	for range 2 {
		if got, err := contentOf(t, e, r); err != nil || got != strings.Repeat("ab+", 1<<20) {
			t.Errorf("got %d bytes, %v, want %d", len(got), err, 3<<20)
		}
		testkit.Must(t, os.WriteFile(file, nil, 0o600))
	}
	e.Close(&task.Task{})
	if _, err := contentOf(t, e, r); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v, want an error about a file that has changed", err)
	}
}

func TestBodyThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	testkit.Must(t, os.WriteFile(large, make([]byte, 2<<20), 0o600))
	changed := time.Unix(1e9, 0)
	testkit.Must(t, os.Chtimes(large, changed, changed))
	tests := []struct {
		part request.Part
		says string
	}{
		{request.Part{File: filepath.Join(dir, "none"), Time: time.Unix(1, 0)}, "no such file"},
		{request.Part{File: request.StdinFile}, "no longer there\nhint: start anew"},
		{request.Part{File: large, Size: 1, Time: time.Unix(1, 0)}, "has changed since the task was made\nhint: "},
		{request.Part{File: large, Size: 2 << 20, Time: changed, Encode: true}, "no space left"},
	}
	for _, tt := range tests {
		e := &Executor{Temporary: func() (*os.File, error) { return nil, syscall.ENOSPC }}
		_, err := contentOf(t, e, &request.Request{Body: []request.Part{tt.part}})
		if local := (*localError)(nil); !errors.As(err, &local) || local.exit != exitRead ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: got %v, want %q", tt.part, err, tt.says)
		}
	}
}

func TestStamp(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.Must(t, os.WriteFile(file, []byte("content"), 0o600))
	changed := time.Date(2024, 2, 29, 12, 0, 0, 123456789, time.UTC)
	testkit.Must(t, os.Chtimes(file, changed, changed))
	info, err := os.Stat(file)
	testkit.Must(t, err)
	r := &request.Request{Body: []request.Part{{Text: []byte("x")}, {File: request.StdinFile}, {File: file}}}
	testkit.Must(t, request.Stamp(r))
	if p := r.Body[2]; p.Size != 7 || !p.Time.Equal(info.ModTime()) || !r.Body[1].Time.IsZero() {
		t.Errorf("got %+v, want size 7 and time %v", r.Body, info.ModTime())
	}
	for path, says := range map[string]string{filepath.Join(dir, "none"): "no such file", dir: "it is a directory"} {
		if err := request.Stamp(&request.Request{Body: []request.Part{{File: path}}}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", path, err, says)
		}
	}
	stream := (*request.StreamError)(nil)
	err = request.Stamp(&request.Request{Body: []request.Part{{File: file}, {File: os.DevNull}}})
	if !errors.As(err, &stream) || stream.Part != 1 || !strings.Contains(err.Error(), "hint: give it on stdin") {
		t.Errorf("a device: got %v, want a StreamError for part 1", err)
	}
}

func TestFormType(t *testing.T) {
	tests := []struct{ file, name, want string }{
		{"a.PNG", "a.PNG", "image/png"}, {"a.txt", "a.txt", "text/plain"}, {"a.bin", "a.bin", "application/octet-stream"},
		{"a.html", "a.gif", "image/gif"}, {"a.html", "other", "text/html"}, {"a.html", "", "text/html"}, {"a.txt", "", ""},
		{"a.bin", "", ""}, {"", "a.bin", ""}, {"", "a.gif", "image/gif"}, // the last two are text with a name
		{"a.jpeg", "b", "image/jpeg"}, {"a.svg", "b", "image/svg+xml"}, {"a.pdf", "b", "application/pdf"},
		{"a.xml", "b", "application/xml"},
	}
	for _, tt := range tests {
		if got := request.FormType(&request.Part{File: tt.file, FileName: tt.name}); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt, got, tt.want)
		}
	}
}
