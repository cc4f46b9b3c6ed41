package dynamic

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// encodeStruct encodes an object: a map of names to values.
func encodeStruct(v value, depth int) (b []byte, err error) {
	if v.shape != object {
		return nil, mismatch(object, v)
	}
	for i, name := range v.names {
		content, err := encodeValue(v.items[i], depth+1)
		if err != nil {
			return nil, at(name, err)
		}
		b = AppendString(b, 1, AppendString(AppendString([]byte(nil), 1, name), 2, content))
	}
	return b, nil
}

func encodeList(v value, depth int) (b []byte, err error) {
	if v.shape != array {
		return nil, mismatch(array, v)
	}
	for i, item := range v.items {
		content, err := encodeValue(item, depth+1)
		if err != nil {
			return nil, at("["+strconv.Itoa(i)+"]", err)
		}
		b = AppendString(b, 1, content)
	}
	return b, nil
}

// encodeValue encodes any JSON.
func encodeValue(v value, depth int) (b []byte, err error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	var content []byte
	switch v.shape {
	case null:
		return appendVarint(nil, 1, 0), nil
	case truth:
		bit := uint64(0)
		if v.text == "true" {
			bit = 1
		}
		return appendVarint(nil, 4, bit), nil
	case quoted:
		return AppendString(b, 3, v.text), nil
	case number:
		x, err := float(v, 64)
		return binary.LittleEndian.AppendUint64(appendTag(nil, 2, wireFixed64), math.Float64bits(x)), err
	case array:
		content, err = encodeList(v, depth+1)
		return AppendString(b, 6, content), err
	}
	content, err = encodeStruct(v, depth+1)
	return AppendString(b, 5, content), err
}

func decodeStruct(b *bytes.Buffer, message []byte, depth int) error {
	values := map[string][]byte{}
	var names []string
	err := Each(message, func(number int32, entry []byte, _ uint64) error {
		if number != 1 {
			return nil
		}
		name, content := "", []byte(nil)
		err := Each(entry, func(number int32, bytes []byte, _ uint64) error {
			switch number {
			case 1:
				name = string(bytes)
			case 2:
				content = append(content, bytes...)
			}
			return nil
		})
		if _, known := values[name]; !known {
			names = append(names, name)
		}
		values[name] = content
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		writeText(b, name)
		b.WriteByte(':')
		if err := decodeValue(b, values[name], depth+1); err != nil {
			return at(name, err)
		}
	}
	b.WriteByte('}')
	return nil
}

func decodeList(b *bytes.Buffer, message []byte, depth int) error {
	b.WriteByte('[')
	i := 0
	err := Each(message, func(number int32, content []byte, _ uint64) error {
		if number != 1 {
			return nil
		}
		if i++; i > 1 {
			b.WriteByte(',')
		}
		return decodeValue(b, content, depth+1)
	})
	b.WriteByte(']')
	return err
}

// decodeValue writes any JSON. The last of the value's fields counts.
func decodeValue(b *bytes.Buffer, message []byte, depth int) error {
	if depth >= maxDepth {
		return errTooDeep
	}
	all, err := records(message)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r record) bool { return r.number > 6 })
	if len(all) == 0 {
		b.WriteString("null")
		return nil
	}
	last := all[len(all)-1]
	switch {
	case last.number == 2 && last.wire == wireFixed64:
		writeFloat(b, math.Float64frombits(last.value), 64)
	case last.number == 3 && last.wire == wireBytes:
		writeText(b, string(last.bytes))
	case last.number == 4:
		b.WriteString(strconv.FormatBool(last.value != 0))
	case last.number == 5 || last.number == 6:
		var content []byte
		for _, r := range all {
			if r.number == last.number {
				content = append(content, r.bytes...)
			}
		}
		if last.number == 5 {
			return decodeStruct(b, content, depth+1)
		}
		return decodeList(b, content, depth+1)
	default:
		b.WriteString("null")
	}
	return nil
}
