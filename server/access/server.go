package access

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// The bounds of a connection. A client that is slower costs its connection, and nobody else's.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
)

// NewServer returns a server with all timeouts set.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ConnContext: ConnContext,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}

// Patient gives a handler as long as it needs, for events and for blobs: the timeouts of the server then hold for each
// read of the body and for each write, no longer for all of them together.
func Patient(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	control := http.NewResponseController(w)
	body := &patientBody{ReadCloser: r.Body, control: control}
	if r.Body = body; r.ContentLength == 0 {
		body.forget()
	} else {
		body.hurry()
	}
	_ = control.SetWriteDeadline(time.Time{}) // a writer of a test has no deadlines
	return &patientWriter{ResponseWriter: w, control: control}
}

type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	b.hurry()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.forget()
	}
	return n, err
}

// hurry bounds the next read, or that of the server, which reads what the handler leaves.
func (b *patientBody) hurry() { _ = b.control.SetReadDeadline(time.Now().Add(readTimeout)) }

// forget lets the server wait for the end of the connection as long as the handler runs.
func (b *patientBody) forget() { _ = b.control.SetReadDeadline(time.Time{}) }

type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *patientWriter) Flush() { _ = w.FlushError() }

// FlushError sends what was written, for http.ResponseController.
func (w *patientWriter) FlushError() error {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
