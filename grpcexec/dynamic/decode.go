package dynamic

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Decode returns a message as JSON on one line. Fields that its type does not have are left out.
func (m *Message) Decode(message []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := m.decode(&b, message, 0); err != nil {
		return nil, fmt.Errorf("read the reply as %s: %w", m.name, err)
	}
	return b.Bytes(), nil
}

func (m *Message) decode(b *bytes.Buffer, message []byte, depth int) error {
	switch {
	case m == nil:
		return fmt.Errorf("the server does not describe its type")
	case depth == maxDepth:
		return errTooDeep
	}
	if is, err := m.decodeWellKnown(b, message, depth); is {
		return err
	}
	got, err := m.collect(message)
	if err != nil {
		return err
	}
	b.WriteByte('{')
	first := true
	for _, f := range m.fields {
		if len(got[f]) == 0 {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeText(b, f.jsonName)
		b.WriteByte(':')
		if err := f.decode(b, got[f], depth); err != nil {
			return at(f.jsonName, err)
		}
	}
	b.WriteByte('}')
	return nil
}

// collect sorts what is on the wire by field. Of a oneof the last one counts.
func (m *Message) collect(message []byte) (map[*field][]record, error) {
	all, err := records(message)
	if err != nil {
		return nil, err
	}
	byNumber := make(map[int32]*field, len(m.fields))
	for _, f := range m.fields {
		byNumber[f.number] = f
	}
	got := map[*field][]record{}
	oneofs := map[int]*field{}
	for _, r := range all {
		f := byNumber[r.number]
		if f == nil || !f.accepts(r.wire) {
			continue
		}
		if f.oneof >= 0 {
			if before := oneofs[f.oneof]; before != nil && before != f {
				delete(got, before)
			}
			oneofs[f.oneof] = f
		}
		got[f] = append(got[f], r)
	}
	return got, nil
}

func (f *field) accepts(wire byte) bool {
	if wire == wireBytes && f.repeated && f.packable() {
		return true
	}
	return wire == f.wire()
}

func (f *field) decode(b *bytes.Buffer, got []record, depth int) error {
	switch {
	case f.isMap():
		return f.decodeMap(b, got, depth)
	case !f.repeated:
		return f.decodeOne(b, got, depth)
	}
	b.WriteByte('[')
	items, err := f.unpacked(got)
	if err != nil {
		return err
	}
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := f.decodeOne(b, items[i:i+1], depth); err != nil {
			return at("["+strconv.Itoa(i)+"]", err)
		}
	}
	b.WriteByte(']')
	return nil
}

// unpacked returns each item of a list, also of those that are packed.
func (f *field) unpacked(got []record) ([]record, error) {
	if !f.packable() {
		return got, nil
	}
	var items []record
	for _, r := range got {
		if r.wire != wireBytes {
			items = append(items, r)
			continue
		}
		for rest := r.bytes; len(rest) > 0; {
			item := record{number: r.number, wire: f.wire()}
			size := 0
			switch item.wire {
			case wireVarint:
				item.value, size = binary.Uvarint(rest)
			case wireFixed32:
				if size = 4; len(rest) >= size {
					item.value = uint64(binary.LittleEndian.Uint32(rest))
				}
			case wireFixed64:
				if size = 8; len(rest) >= size {
					item.value = binary.LittleEndian.Uint64(rest)
				}
			}
			if size <= 0 || size > len(rest) {
				return nil, errMalformed
			}
			items, rest = append(items, item), rest[size:]
		}
	}
	return items, nil
}

// decodeOne writes the value of what is on the wire: of a scalar the last, of a message all of them together.
func (f *field) decodeOne(b *bytes.Buffer, got []record, depth int) error {
	last := got[len(got)-1]
	if !f.isMessage() {
		f.writeScalar(b, last)
		return nil
	}
	content := last.bytes
	if len(got) > 1 {
		content = nil
		for _, r := range got {
			content = append(content, r.bytes...)
		}
	}
	return f.message.decode(b, content, depth+1)
}

func (f *field) decodeMap(b *bytes.Buffer, got []record, depth int) error {
	key, content := f.message.numbered(1), f.message.numbered(2)
	if key == nil || content == nil || key.isMessage() {
		return errMalformed
	}
	type entry struct {
		name   string
		number record
		value  []record
	}
	entries := map[string]entry{}
	for _, r := range got {
		parts, err := f.message.collect(r.bytes)
		if err != nil {
			return err
		}
		e := entry{value: parts[content]}
		if of := parts[key]; len(of) > 0 {
			e.number = of[len(of)-1]
		}
		if len(e.value) == 0 {
			e.value = []record{{}} // a zero, or an empty message
		}
		var name bytes.Buffer
		key.writeScalar(&name, e.number)
		if e.name = name.String(); e.name[0] != '"' {
			e.name = strconv.Quote(e.name)
		}
		entries[e.name] = e
	}
	sorted := make([]entry, 0, len(entries))
	for _, e := range entries {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(x, y entry) int {
		switch key.kind {
		case kindString:
			return strings.Compare(x.name, y.name)
		case kindUint32, kindUint64, kindFixed32, kindFixed64, kindBool:
			return cmp.Compare(x.number.value, y.number.value)
		}
		return cmp.Compare(key.signed(x.number.value), key.signed(y.number.value))
	})
	b.WriteByte('{')
	for i, e := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.name)
		b.WriteByte(':')
		if err := content.decodeOne(b, e.value, depth+1); err != nil {
			return at("["+e.name+"]", err)
		}
	}
	b.WriteByte('}')
	return nil
}

// signed returns the value of a signed number on the wire.
func (f *field) signed(x uint64) int64 {
	switch f.kind {
	case kindSint32:
		x = uint64(uint32(x)) // of more bits these count
		return int64(int32(x>>1) ^ -int32(x&1))
	case kindSint64:
		return int64(x>>1) ^ -int64(x&1)
	case kindInt32, kindSfixed32, kindEnum:
		return int64(int32(x))
	}
	return int64(x)
}

func (f *field) writeScalar(b *bytes.Buffer, r record) {
	switch f.kind {
	case kindDouble:
		writeFloat(b, math.Float64frombits(r.value), 64)
	case kindFloat:
		writeFloat(b, float64(math.Float32frombits(uint32(r.value))), 32)
	case kindString:
		writeText(b, string(r.bytes))
	case kindBytes:
		b.WriteByte('"')
		b.WriteString(base64.StdEncoding.EncodeToString(r.bytes))
		b.WriteByte('"')
	case kindBool:
		b.WriteString(strconv.FormatBool(r.value != 0))
	case kindEnum:
		f.writeEnum(b, int32(r.value))
	case kindUint32, kindFixed32:
		b.WriteString(strconv.FormatUint(uint64(uint32(r.value)), 10))
	case kindUint64, kindFixed64:
		b.WriteString(`"` + strconv.FormatUint(r.value, 10) + `"`)
	case kindInt32, kindSint32, kindSfixed32:
		b.WriteString(strconv.FormatInt(f.signed(r.value), 10))
	default:
		b.WriteString(`"` + strconv.FormatInt(f.signed(r.value), 10) + `"`)
	}
}

// writeEnum writes the name of a value, or the number of one that the server's description does not have.
func (f *field) writeEnum(b *bytes.Buffer, x int32) {
	if f.typeName == nameNull {
		b.WriteString("null")
		return
	}
	if f.enum != nil {
		if i := slices.Index(f.enum.values, x); i >= 0 {
			writeText(b, f.enum.names[i])
			return
		}
	}
	b.WriteString(strconv.Itoa(int(x)))
}

func writeFloat(b *bytes.Buffer, x float64, bits int) {
	switch {
	case math.IsNaN(x):
		b.WriteString(`"NaN"`)
	case math.IsInf(x, 0):
		b.WriteString(map[bool]string{true: `"Infinity"`, false: `"-Infinity"`}[x > 0])
	case x == 0 && math.Signbit(x):
		b.WriteString("-0")
	case bits == 32:
		text, _ := json.Marshal(float32(x))
		b.Write(text)
	default:
		text, _ := json.Marshal(x)
		b.Write(text)
	}
}

// writeText writes a string of JSON. What is not UTF-8 becomes U+FFFD.
func writeText(b *bytes.Buffer, text string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // into memory: it cannot fail
	b.Truncate(b.Len() - 1)  // the line feed
}
