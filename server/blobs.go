package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/server/problem"
)

// blobHash returns the hash that a path names.
func (s *Server) blobHash(r *http.Request) (string, error) {
	hash := r.PathValue("sha256")
	switch {
	case s.Blobs == nil:
		return "", problem.NotFound("this server keeps no blobs")
	case !request.IsBlob(hash):
		return "", problem.BadRequest("invalid name of a blob %q\nhint: it is the SHA-256 of the content, 64 digits in"+
			" lower case", text.Shorten(hash, 80))
	}
	return hash, nil
}

// putBlob is PUT /blobs/{sha256}.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request) error {
	hash, err := s.blobHash(r)
	if err != nil {
		return err
	}
	if r.ContentLength > s.Limits.Blob {
		return problem.TooLarge("the body has %d bytes, more than %d", r.ContentLength, s.Limits.Blob)
	}
	w = access.Patient(w, r)
	body := &sentBody{Reader: r.Body}
	size, isNew, err := s.Blobs.Put(r.Context(), hash, body, s.Limits.Blob)
	var mismatch *blobs.MismatchError
	var tooLarge *blobs.TooLargeError
	switch {
	case errors.As(err, &mismatch):
		return problem.Unprocessable("%v", mismatch)
	case errors.As(err, &tooLarge):
		return problem.TooLarge("%v", tooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.TooSlow()
	case body.broken:
		return problem.BadRequest("the body broke off, or is not sent as its headers say")
	case err != nil:
		return err
	}
	s.written()
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
		w.Header().Set("Location", "/blobs/"+hash)
	}
	return reply(w, status, struct {
		BodyRef string `json:"bodyRef"`
		Size    int64  `json:"size"`
	}{"sha256:" + hash, size})
}

// sentBody notes whether the body of a request could be read to its end: else that is the client's mistake, such as a
// wrong length of a chunk, and the store is sound.
type sentBody struct {
	io.Reader
	broken bool
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.broken = err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// getBlob is GET and HEAD /blobs/{sha256}. A browser must not take it for a page.
func (s *Server) getBlob(w http.ResponseWriter, r *http.Request) error {
	hash, err := s.blobHash(r)
	if err != nil {
		return err
	}
	content, size, err := s.Blobs.Open(hash)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.NotFound("there is no blob %s", hash)
	}
	if err != nil {
		return fmt.Errorf("open a blob: %w", err)
	}
	defer func() { _ = content.Close() }()
	header := w.Header()
	header.Set("ETag", `"`+hash+`"`)
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", "attachment")
	header.Set("Content-Security-Policy", "sandbox")
	if matches(r.Header.Get("If-None-Match"), `"`+hash+`"`) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = io.Copy(access.Patient(w, r), content) // the client may be gone
	return nil
}
