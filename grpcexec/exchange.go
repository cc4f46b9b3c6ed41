package grpcexec

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// code is a status of gRPC.
type code int

// The statuses that this package tells apart.
const (
	codeOK                code = 0
	codeCancelled         code = 1
	codeUnknown           code = 2
	codeDeadlineExceeded  code = 4
	codeNotFound          code = 5
	codePermissionDenied  code = 7
	codeResourceExhausted code = 8
	codeUnimplemented     code = 12
	codeInternal          code = 13
	codeUnavailable       code = 14
	codeDataLoss          code = 15
	codeUnauthenticated   code = 16
)

func (c code) String() string { return task.StatusNames()[c] }

// reply is what a server answered to a call.
type reply struct {
	code     code
	text     string // of the status, for people; may be empty
	http     int    // the HTTP status that the code was made from; 0 where the server sent a grpc-status
	metadata http.Header
	message  []byte // nil without one
	broken   bool   // the code is ours: the server has sent none, or OK without the one message of a unary call
}

// breaks gives a reply that is no whole one its code.
func (r *reply) breaks(c code, text string) { r.code, r.text, r.broken = c, text, true }

// errTooLarge says that a reply is larger than is read. The call took effect.
var errTooLarge = errors.New("the reply is too large")

// exchange sends one call on a connection, and reads the reply. The request is never sent again unseen: that is done by
// the connection pool of net/http, which a ClientConn does not use. An error says that there was no reply.
func exchange(ctx context.Context, c *connection, path string, header http.Header, message []byte,
	most int) (*reply, error) {
	frame := make([]byte, 5, 5+len(message))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(message)))
	frame = append(frame, message...)
	scheme := "http"
	if c.place.secure {
		scheme = "https"
	}
	header = header.Clone()
	header.Set("Te", "trailers")
	header.Set("Content-Type", "application/grpc")
	if deadline, ok := ctx.Deadline(); ok {
		header.Set("Grpc-Timeout", timeoutHeader(time.Until(deadline)))
	}
	request := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: scheme, Host: c.place.address, Path: path}, Header: header,
		Body: io.NopCloser(bytes.NewReader(frame)), ContentLength: int64(len(frame)),
	}).WithContext(ctx)
	response, err := c.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return readReply(response, most)
}

func readReply(response *http.Response, most int) (*reply, error) {
	r := &reply{metadata: response.Header}
	kind := response.Header.Get("Content-Type")
	isGRPC := kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+") ||
		strings.HasPrefix(kind, "application/grpc;")
	only, err := onlyTrailers(response)
	switch {
	case err != nil:
		return nil, err
	case only:
		if r.setStatus(response.Header); r.code == codeOK {
			r.breaks(codeInternal, noMessage(0))
		}
		return r, nil
	case response.StatusCode != http.StatusOK || !isGRPC:
		r.code, r.http = codeOf(response.StatusCode), response.StatusCode
		r.text = strings.TrimSpace(fmt.Sprintf("the reply is not gRPC, but HTTP status %d %s", response.StatusCode,
			http.StatusText(response.StatusCode)))
		if !isGRPC && kind != "" {
			r.text += " with " + text.Shorten(kind, 100)
		}
		return r, nil
	}
	messages, wrong := readMessages(response, most)
	if wrong == nil || errors.Is(wrong, errMessage) {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, int64(most)))
	} else if !errors.Is(wrong, errTooLarge) {
		return nil, wrong
	}
	r.metadata = response.Header.Clone()
	for name, values := range response.Trailer {
		r.metadata[name] = append(r.metadata[name], values...)
	}
	if response.Trailer.Get("Grpc-Status") == "" && wrong == nil {
		r.breaks(codeUnknown, "the reply ended without a status")
		return r, nil
	}
	r.setStatus(response.Trailer)
	switch {
	case r.code != codeOK:
	case errors.Is(wrong, errTooLarge):
		return r, wrong
	case wrong != nil:
		r.breaks(codeInternal, wrong.Error())
	case len(messages) != 1:
		r.breaks(codeInternal, noMessage(len(messages)))
	default:
		r.message = messages[0]
	}
	return r, nil
}

func noMessage(n int) string {
	return fmt.Sprintf("the reply has %d messages, and a unary call gets one", n)
}

// onlyTrailers reports whether a reply consists of trailers, which come as its header then: it has a status, and nothing
// follows. Else the status of the header says nothing.
func onlyTrailers(response *http.Response) (bool, error) {
	if response.Header.Get("Grpc-Status") == "" {
		return false, nil
	}
	first := make([]byte, 1)
	switch n, err := response.Body.Read(first); {
	case n == 0 && errors.Is(err, io.EOF):
		return response.Trailer.Get("Grpc-Status") == "", nil
	case n == 0 && err != nil:
		return false, err
	default:
		rest := io.MultiReader(bytes.NewReader(first[:n]), response.Body)
		response.Body = struct {
			io.Reader
			io.Closer
		}{rest, response.Body}
	}
	return false, nil
}

// setStatus reads the status of a call. One that gRPC does not know is UNKNOWN.
func (r *reply) setStatus(from http.Header) {
	given := from.Get("Grpc-Status")
	n, err := strconv.ParseUint(given, 10, 31)
	r.code, r.text = code(n), percentDecoded(from.Get("Grpc-Message"))
	if err != nil && given != "" || int(n) >= len(task.StatusNames()) {
		r.code = codeUnknown
		r.text = strings.TrimSuffix("status "+text.Shorten(given, 20)+", "+r.text, ", ")
	}
}

// codeOf is the code for a reply without one: the table of gRPC's "HTTP to gRPC Status Code Mapping".
func codeOf(status int) code {
	switch status {
	case http.StatusBadRequest:
		return codeInternal
	case http.StatusUnauthorized:
		return codeUnauthenticated
	case http.StatusForbidden:
		return codePermissionDenied
	case http.StatusNotFound:
		return codeUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codeUnavailable
	}
	return codeUnknown
}

// errMessage says that the messages of a reply cannot be read, though it is whole.
var errMessage = errors.New("its message cannot be read")

// readMessages reads the messages of a reply: two at most, as a unary call gets one.
func readMessages(response *http.Response, most int) (messages [][]byte, err error) {
	for len(messages) < 2 {
		var head [5]byte
		if _, err := io.ReadFull(response.Body, head[:]); errors.Is(err, io.EOF) {
			return messages, nil
		} else if err != nil {
			return nil, err
		}
		size := binary.BigEndian.Uint32(head[1:])
		if uint64(size) > uint64(most) {
			return nil, fmt.Errorf("%w: it has %s, and %s are read", errTooLarge, text.Size(int64(size)), text.Size(int64(most)))
		}
		var content bytes.Buffer // grows with what comes, not with what is announced
		if _, err := io.CopyN(&content, response.Body, int64(size)); errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		message := content.Bytes()
		if head[0] != 0 {
			if message, err = unpack(message, response.Header.Get("Grpc-Encoding"), most); err != nil {
				return nil, err
			}
		}
		messages = append(messages, slices.Concat([]byte{}, message))
	}
	return messages, nil
}

// unpack decompresses a message. gzip is understood although it is not asked for: some servers always send it.
func unpack(message []byte, encoding string, most int) ([]byte, error) {
	if encoding != "gzip" {
		return nil, fmt.Errorf("%w: it is compressed as %q, and was not asked to be", errMessage, text.Shorten(encoding, 20))
	}
	reader, err := gzip.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("%w: gzip: %w", errMessage, err)
	}
	content, err := io.ReadAll(io.LimitReader(reader, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: gzip: %w", errMessage, err)
	case len(content) > most:
		return nil, fmt.Errorf("%w: unpacked it has more than %s", errTooLarge, text.Size(int64(most)))
	}
	return content, nil
}
