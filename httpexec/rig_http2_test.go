package httpexec

import (
	"encoding/binary"
	"io"
)

// The frames of HTTP/2 that the tests need, RFC 9113.
const (
	frameData      = 0
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	frameGoAway    = 7
	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4

	codeNone          = 0
	codeInternal      = 2
	codeRefusedStream = 7
	codeEnhanceCalm   = 11

	status200 = "\x88" // of HPACK's static table
	status500 = "\x8e"
)

// http2 runs do for each request of an HTTP/2 connection, until it says that it is over or the client has gone.
func http2(do func(c *wire, stream uint32) (over bool)) script {
	return func(c *wire) {
		preface := make([]byte, 24)
		if _, err := io.ReadFull(c.reader, preface); err != nil {
			c.server.Errorf("the preface of HTTP/2: %q, %v", preface, err)
			return
		}
		c.frame(frameSettings, 0, 0, "")
		acked, waiting := false, uint32(0) // the client writes no more once both are there
		for {
			kind, flags, stream, err := c.readFrame()
			switch {
			case err != nil:
				return
			case kind == frameSettings && flags&flagAck == 0:
				c.frame(frameSettings, flagAck, 0, "")
			case kind == frameSettings:
				acked = true
			case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
				c.note("HTTP/2")
				waiting = stream
			}
			if acked && waiting != 0 {
				stream, waiting = waiting, 0
				if do(c, stream) {
					return
				}
			}
		}
	}
}

func (c *wire) readFrame() (kind, flags byte, stream uint32, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(c.reader, head); err != nil {
		return 0, 0, 0, err
	}
	length := binary.BigEndian.Uint32(append([]byte{0}, head[:3]...))
	_, err = io.CopyN(io.Discard, c.reader, int64(length))
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & 0x7fffffff, err
}

func (c *wire) frame(kind, flags byte, stream uint32, payload string) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	head = binary.BigEndian.AppendUint32(append(head, kind, flags), stream)
	_, _ = c.Write(append(head, payload...))
}

// number is one of 32 bits in a frame.
func number32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func (c *wire) resetStream(stream, code uint32) { c.frame(frameReset, 0, stream, number32(code)) }

// goAway says that last is the last stream that is served.
func (c *wire) goAway(last, code uint32) { c.frame(frameGoAway, 0, 0, number32(last)+number32(code)) }
