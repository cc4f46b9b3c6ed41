package otlp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// The flag of a traceparent that says that somebody records the trace.
const flagSampled = 1

// parent is what a traceparent header says.
type parent struct {
	trace [16]byte
	span  [8]byte // zero where there is no caller
	flags byte
}

// parseParent reads a traceparent header as W3C's Trace Context has it, later versions included.
func parseParent(header string) (p parent, ok bool) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(header) < length || strings.ToLower(header) != header {
		return parent{}, false
	}
	var version, flags [1]byte
	at := 0
	for _, part := range [][]byte{version[:], p.trace[:], p.span[:], flags[:]} {
		end := at + 2*len(part)
		if _, err := hex.Decode(part, []byte(header[at:end])); err != nil {
			return parent{}, false
		}
		if end < len(header) && header[end] != '-' {
			return parent{}, false
		}
		at = end + 1
	}
	if version[0] == 0xff || version[0] == 0 && len(header) != length || p.trace == [16]byte{} || p.span == [8]byte{} {
		return parent{}, false
	}
	p.flags = flags[0]
	return p, true
}

// parentOf is the caller of a task. Without one the task's id is its trace: every worker that makes an attempt has it.
func parentOf(caller, taskID string) (p parent, called bool) {
	if p, called = parseParent(caller); called {
		return p, true
	}
	id, err := hex.DecodeString(strings.ReplaceAll(taskID, "-", ""))
	if err != nil || len(id) != len(p.trace) || [16]byte(id) == [16]byte{} { // not a UUID
		sum := sha256.Sum256([]byte(taskID))
		id = sum[:len(p.trace)]
	}
	p.trace, p.flags = [16]byte(id), flagSampled
	return p, false
}

// SpanID is the id of the span of an attempt: the same in the header that the attempt sends and in the span that is
// exported, whoever does either. The task itself has attempt 0; after it was requeued behind attempt n, it has -n.
func SpanID(taskID string, attempt int) [8]byte {
	sum := sha256.Sum256([]byte("retry span " + taskID + " " + strconv.Itoa(attempt)))
	id := [8]byte(sum[:8])
	if id == [8]byte{} { // which would be no span
		id[0] = 1
	}
	return id
}

func (p *parent) header(span [8]byte) string {
	return "00-" + hex.EncodeToString(p.trace[:]) + "-" + hex.EncodeToString(span[:]) + "-" +
		hex.EncodeToString([]byte{p.flags & 3}) // sampled and random: no other flag is known
}

// TraceParent is the header that an attempt sends, with what the sampler decides. Where no spans are exported, only a
// task that has a caller has one.
func (e *Exporter) TraceParent(caller, taskID string, attempt int) string {
	if e == nil && caller == "" {
		return ""
	}
	p, called := parentOf(caller, taskID)
	switch {
	case e == nil && !called:
		return ""
	case e != nil && e.config.Sampler.samples(&p, called):
		p.flags |= flagSampled
	case e != nil:
		p.flags &^= flagSampled
	}
	return p.header(SpanID(taskID, attempt))
}

// Sampler decides which traces are exported.
type Sampler struct {
	Parent bool    // follow the caller, where there is one
	Ratio  float64 // of the other traces
}

// samples decides by the last seven bytes of the trace's id, which are random in a UUIDv7, too, and which others of the
// trace decide by.
func (s Sampler) samples(p *parent, called bool) bool {
	if s.Parent && called {
		return p.flags&flagSampled != 0
	}
	const bits = 56
	random := binary.BigEndian.Uint64(p.trace[8:]) & (1<<bits - 1)
	return float64(random) < s.Ratio*(1<<bits)
}
