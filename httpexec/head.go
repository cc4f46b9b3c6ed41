package httpexec

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// recorder remembers what a server sends, until it is asked.
type recorder struct {
	mutex sync.Mutex
	off   bool
	bytes []byte
}

// hear takes in what was read.
func (r *recorder) hear(p []byte) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.off {
		r.bytes = append(r.bytes, p...)
	}
}

// head returns the headers that came, those of interim replies too, and ends the recording. Nil: none was heard.
func (r *recorder) head() []byte {
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.off = true
	return headers1(r.bytes)
}

// headers1 cuts the body off what came over HTTP/1: everything after the first header that is not an interim one.
func headers1(text []byte) []byte {
	interim, line := false, 0
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return nil
		}
		content := bytes.TrimRight(text[at:at+n], "\r")
		at += n + 1
		switch {
		case line == 0:
			interim = isInterim(content)
		case len(content) == 0 && !interim:
			return text[:at:at]
		}
		line++
		if len(content) == 0 {
			line = 0
		}
	}
}

// isInterim knows the status lines of 1xx, less 101, after which HTTP is over.
func isInterim(line []byte) bool {
	_, status, _ := bytes.Cut(line, []byte(" "))
	return len(status) >= 3 && status[0] == '1' && string(status[:3]) != "101"
}

// shownHead writes a header where the bytes of it are unknown: HTTP/2 has none that could be shown. It looks like curl's.
func shownHead(response *http.Response) []byte {
	var b bytes.Buffer
	name := strings.ToLower
	if response.ProtoMajor == 2 {
		fmt.Fprintf(&b, "HTTP/2 %d \r\n", response.StatusCode)
	} else {
		fmt.Fprintf(&b, "%s %s\r\n", response.Proto, response.Status)
		name = func(canonical string) string { return canonical }
	}
	header := response.Header
	if response.ContentLength >= 0 && header.Get("Content-Length") == "" && !response.Uncompressed {
		header = header.Clone()
		header.Set("Content-Length", fmt.Sprint(response.ContentLength))
	}
	names := make([]string, 0, len(header))
	for canonical := range header {
		names = append(names, canonical)
	}
	slices.Sort(names)
	for _, canonical := range names {
		for _, value := range header[canonical] {
			fmt.Fprintf(&b, "%s: %s\r\n", name(canonical), value)
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
