package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	retryDelay    = time.Second // before the only other try of a batch
	maxRetryDelay = 5 * time.Second
	maxReply      = 64 << 10 // bytes of a reply that are read
)

// deliver sends a batch, and once more if that may help.
func (e *Exporter) deliver(ctx context.Context, spans []span) {
	text, err := e.encode(spans)
	rejected := uint64(0)
	if err == nil {
		rejected, err = e.post(ctx, text)
	}
	var again *retryableError
	if errors.As(err, &again) {
		wait := time.NewTimer(again.delay)
		select {
		case <-wait.C:
		case <-e.stop: // there is no time to wait
		}
		wait.Stop()
		rejected, err = e.post(ctx, text)
	}
	if err != nil {
		rejected = uint64(len(spans))
	} else if rejected > 0 {
		err = fmt.Errorf("the collector rejected %d spans", rejected)
	}
	e.config.Dropped.Add(min(rejected, uint64(len(spans))))
	if err != nil && !e.failing && ctx.Err() == nil {
		e.config.OnError(fmt.Errorf("send spans: %w", err))
	}
	e.failing = err != nil
}

// retryableError is a failure after which the same request may succeed.
type retryableError struct {
	cause error
	delay time.Duration
}

func (e *retryableError) Error() string { return e.cause.Error() }
func (e *retryableError) Unwrap() error { return e.cause }

// post sends a request, and returns how many spans the collector rejected.
func (e *Exporter) post(ctx context.Context, text []byte) (rejected uint64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.Endpoint, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	for name, values := range e.config.Headers {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "retry/"+e.config.Version)
	reply, err := e.client.Do(request)
	if err != nil {
		return 0, &retryableError{err, retryDelay}
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	switch {
	case reply.StatusCode/100 == 2:
		return rejectedSpans(body), nil // whether its end could be read or not
	case retryableStatus(reply.StatusCode):
		return 0, &retryableError{fmt.Errorf("the collector replied %s", reply.Status), retryAfter(reply.Header)}
	case err != nil:
		return 0, fmt.Errorf("the collector replied %s: %w", reply.Status, err)
	}
	return 0, fmt.Errorf("the collector replied %s", reply.Status)
}

// retryableStatus reports whether OTLP allows to send a request again.
func retryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return retryDelay
	}
	return time.Duration(min(seconds, int(maxRetryDelay/time.Second))) * time.Second
}

// rejectedSpans reads how many spans a success left out. A reply that cannot be read says nothing of any.
func rejectedSpans(body []byte) uint64 {
	var reply struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a string, by the rules of protojson, or a number
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(bytes.Trim(reply.PartialSuccess.RejectedSpans, `"`)), 10, 63)
	if err != nil {
		return 0
	}
	return n
}
