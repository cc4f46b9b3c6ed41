// Package dynamic turns JSON into messages of Protocol Buffers and back, for types that are known at run time only, by
// the descriptors that a server's reflection gives. The mapping is that of protobuf.dev/programming-guides/json.
//
// google.golang.org/protobuf does the same, and adds 260 kB to what each start of the program allocates: the tests
// compare this package with it.
package dynamic

import (
	"encoding/binary"
	"errors"
)

// The wire types.
const (
	wireVarint     = 0
	wireFixed64    = 1
	wireBytes      = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireFixed32    = 5
)

// maxDepth is how deep messages may be nested, as in the C++ and Java libraries.
const maxDepth = 100

var (
	errMalformed = errors.New("it is no message of Protocol Buffers")
	errTooDeep   = errors.New("it is nested more than 100 levels deep")
)

// record is one field of a message as it is on the wire.
type record struct {
	number int32
	wire   byte
	value  uint64 // of a varint, or of a fixed one
	bytes  []byte // of a length-delimited field, or of a group
}

// cut returns the first field of a message, and what follows it.
func cut(b []byte) (r record, rest []byte, err error) {
	r, rest, err = cutWithin(b, maxDepth)
	if err == nil && r.wire == wireEndGroup {
		err = errMalformed
	}
	return r, rest, err
}

func cutWithin(b []byte, depth int) (r record, rest []byte, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
		return r, nil, errMalformed
	}
	r.number, r.wire, b = int32(tag>>3), byte(tag&7), b[n:]
	switch r.wire {
	case wireVarint:
		if r.value, n = binary.Uvarint(b); n <= 0 {
			return r, nil, errMalformed
		}
		return r, b[n:], nil
	case wireFixed64:
		if len(b) < 8 {
			return r, nil, errMalformed
		}
		r.value = binary.LittleEndian.Uint64(b)
		return r, b[8:], nil
	case wireFixed32:
		if len(b) < 4 {
			return r, nil, errMalformed
		}
		r.value = uint64(binary.LittleEndian.Uint32(b))
		return r, b[4:], nil
	case wireBytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return r, nil, errMalformed
		}
		r.bytes = b[n : n+int(size)]
		return r, b[n+int(size):], nil
	case wireStartGroup:
		r.bytes, rest, err = cutGroup(b, r.number, depth)
		return r, rest, err
	case wireEndGroup:
		return r, b, nil
	}
	return r, nil, errMalformed
}

// cutGroup returns what stands before the end of a group, and what follows that.
func cutGroup(b []byte, number int32, depth int) (content, rest []byte, err error) {
	if depth == 0 {
		return nil, nil, errTooDeep
	}
	for rest = b; ; {
		inner, after, err := cutWithin(rest, depth-1)
		switch {
		case err != nil:
			return nil, nil, err
		case inner.wire == wireEndGroup && inner.number != number:
			return nil, nil, errMalformed
		case inner.wire == wireEndGroup:
			return b[:len(b)-len(rest)], after, nil
		}
		rest = after
	}
}

// records returns all fields of a message.
func records(b []byte) ([]record, error) {
	var all []record
	for len(b) > 0 {
		r, rest, err := cut(b)
		if err != nil {
			return nil, err
		}
		all, b = append(all, r), rest
	}
	return all, nil
}

func appendTag(b []byte, number int32, wire byte) []byte {
	return binary.AppendUvarint(b, uint64(number)<<3|uint64(wire))
}

func appendBytes[T string | []byte](b []byte, content T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

// AppendString appends a field that holds a text or bytes to a message.
func AppendString[T string | []byte](b []byte, number int32, content T) []byte {
	return appendBytes(appendTag(b, number, wireBytes), content)
}

func appendVarint(b []byte, number int32, value uint64) []byte {
	return binary.AppendUvarint(appendTag(b, number, wireVarint), value)
}

// Each calls do with the number and the content of each field of a message that holds bytes, a text or a message, and
// with the number and the value of each varint.
func Each(b []byte, do func(number int32, content []byte, value uint64) error) error {
	for len(b) > 0 {
		r, rest, err := cut(b)
		if err == nil {
			err = do(r.number, r.bytes, r.value)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}
