package dynamic

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// Encode returns the message that JSON describes. An error names the field that it is about.
func (m *Message) Encode(text []byte) ([]byte, error) {
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	b, err := m.encode(v, 0)
	if err != nil {
		return nil, fmt.Errorf("the JSON is no %s: %w", m.name, err)
	}
	return b, nil
}

// encode returns a message without its tag and its length.
func (m *Message) encode(v value, depth int) (b []byte, err error) {
	switch {
	case m == nil:
		return nil, errors.New("the server does not describe its type")
	case depth == maxDepth:
		return nil, errTooDeep
	}
	if b, is, err := m.encodeWellKnown(v, depth); is {
		return b, err
	}
	if v.shape != object {
		return nil, mismatch(object, v)
	}
	given := map[*field]bool{}
	oneofs := map[int]string{}
	for i, name := range v.names {
		f := m.named(name)
		switch {
		case f == nil:
			return nil, fmt.Errorf("%s has no field %q%s", m.name, name, didYouMean(name, m.names()))
		case given[f]:
			return nil, fmt.Errorf("the field %s is there twice, as %s and as %s", f.name, f.name, f.jsonName)
		}
		given[f] = true
		if v.items[i].shape == null && !f.takesNull() {
			continue
		}
		if other := oneofs[f.oneof]; other != "" && f.oneof >= 0 {
			return nil, fmt.Errorf("%s and %s exclude each other: only one of them can be set", other, name)
		}
		oneofs[f.oneof] = name
		if b, err = f.encode(b, v.items[i], depth); err != nil {
			return nil, at(name, err)
		}
	}
	return b, nil
}

// named finds a field by its name in JSON or in the .proto file.
func (m *Message) named(name string) *field {
	for _, f := range m.fields {
		if f.jsonName == name || f.name == name {
			return f
		}
	}
	return nil
}

func (m *Message) names() []string {
	names := make([]string, len(m.fields))
	for i, f := range m.fields {
		names[i] = f.jsonName
	}
	return names
}

// numbered finds a field by its number.
func (m *Message) numbered(number int32) *field {
	for _, f := range m.fields {
		if f.number == number {
			return f
		}
	}
	return nil
}

// takesNull reports whether null is a value of the field, and does not leave it out.
func (f *field) takesNull() bool {
	return !f.repeated && (f.isMessage() && f.typeName == nameValue || f.kind == kindEnum && f.typeName == nameNull)
}

func (f *field) isMessage() bool { return f.kind == kindMessage || f.kind == kindGroup }

func (f *field) isMap() bool { return f.repeated && f.message != nil && f.message.isEntry }

// mismatch says that a value has the wrong shape. It does not repeat the value, which may be secret.
func mismatch(want shape, got value) error {
	return fmt.Errorf("want %s, got %s", want, got.shape)
}

// encode appends a field with its tag. Numbers of a list are packed, which every parser accepts.
func (f *field) encode(b []byte, v value, depth int) ([]byte, error) {
	switch {
	case f.isMap():
		return f.encodeMap(b, v, depth)
	case !f.repeated:
		return f.encodeOne(b, v, depth)
	case v.shape != array:
		return nil, mismatch(array, v)
	}
	var packed []byte
	for i, item := range v.items {
		var err error
		switch {
		case item.shape == null && f.typeName != nameValue && f.typeName != nameNull:
			err = errors.New("null is no value of a list")
		case f.packable():
			packed, err = f.scalar(packed, item)
		default:
			b, err = f.encodeOne(b, item, depth)
		}
		if err != nil {
			return nil, at("["+strconv.Itoa(i)+"]", err)
		}
	}
	if len(packed) > 0 {
		b = AppendString(b, f.number, packed)
	}
	return b, nil
}

func (f *field) packable() bool { return f.wire() != wireBytes && f.wire() != wireStartGroup }

// wire returns the wire type of one value of the field.
func (f *field) wire() byte {
	switch f.kind {
	case kindDouble, kindFixed64, kindSfixed64:
		return wireFixed64
	case kindFloat, kindFixed32, kindSfixed32:
		return wireFixed32
	case kindString, kindBytes, kindMessage:
		return wireBytes
	case kindGroup:
		return wireStartGroup
	}
	return wireVarint
}

// encodeMap appends an entry for each member of an object, in the order of the names: the same JSON in another order is
// the same message.
func (f *field) encodeMap(b []byte, v value, depth int) ([]byte, error) {
	if v.shape != object {
		return nil, mismatch(object, v)
	}
	key, content := f.message.numbered(1), f.message.numbered(2)
	if key == nil || content == nil || key.isMessage() {
		return nil, errMalformed
	}
	order := make([]int, len(v.names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(v.names[i], v.names[j]) })
	for _, i := range order {
		item := v.items[i]
		name := value{shape: quoted, text: v.names[i]}
		if key.kind == kindBool && (name.text == "true" || name.text == "false") {
			name.shape = truth
		}
		entry, err := key.encodeOne(nil, name, depth)
		if err == nil && item.shape == null && !content.takesNull() {
			err = errors.New("null is no value of a map")
		}
		if err == nil {
			entry, err = content.encodeOne(entry, item, depth+1)
		}
		if err != nil {
			return nil, at("["+strconv.Quote(v.names[i])+"]", err)
		}
		b = AppendString(b, f.number, entry)
	}
	return b, nil
}

// encodeOne appends one value with its tag.
func (f *field) encodeOne(b []byte, v value, depth int) ([]byte, error) {
	if !f.isMessage() {
		return f.scalar(appendTag(b, f.number, f.wire()), v)
	}
	content, err := f.message.encode(v, depth+1)
	if err != nil {
		return nil, err
	}
	if f.kind == kindMessage {
		return AppendString(b, f.number, content), nil
	}
	b = append(appendTag(b, f.number, wireStartGroup), content...)
	return appendTag(b, f.number, wireEndGroup), nil
}

// scalar appends a value that is no message, without its tag.
func (f *field) scalar(b []byte, v value) ([]byte, error) {
	switch f.kind {
	case kindDouble:
		x, err := float(v, 64)
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(x)), err
	case kindFloat:
		x, err := float(v, 32)
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x))), err
	case kindString:
		if v.shape != quoted {
			return nil, mismatch(quoted, v)
		}
		return appendBytes(b, v.text), nil
	case kindBytes:
		content, err := readBase64(v)
		return appendBytes(b, content), err
	case kindBool:
		if v.shape != truth {
			return nil, mismatch(truth, v)
		}
		if v.text == "true" {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case kindEnum:
		x, err := f.enumValue(v)
		return binary.AppendUvarint(b, uint64(x)), err
	}
	return f.integer(b, v)
}

// integer appends a number that is whole.
func (f *field) integer(b []byte, v value) ([]byte, error) {
	digits, err := whole(v)
	if err != nil {
		return nil, err
	}
	bits := 64
	switch f.kind {
	case kindInt32, kindUint32, kindSint32, kindFixed32, kindSfixed32:
		bits = 32
	}
	var x uint64
	switch f.kind {
	case kindUint32, kindUint64, kindFixed32, kindFixed64:
		x, err = strconv.ParseUint(digits, 10, bits)
	default:
		var signed int64
		signed, err = strconv.ParseInt(digits, 10, bits)
		x = uint64(signed)
		if f.kind == kindSint32 || f.kind == kindSint64 {
			x = uint64(signed)<<1 ^ uint64(signed>>63)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the number does not fit into %s", f.kind)
	case f.wire() == wireFixed32:
		return binary.LittleEndian.AppendUint32(b, uint32(x)), nil
	case f.wire() == wireFixed64:
		return binary.LittleEndian.AppendUint64(b, x), nil
	}
	return binary.AppendUvarint(b, x), nil
}

// String returns the name of the type in a .proto file.
func (k kind) String() string {
	return [...]string{"", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group",
		"message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"}[k]
}

// enumValue reads the name or the number of a value of an enumeration.
func (f *field) enumValue(v value) (int64, error) {
	switch {
	case f.typeName == nameNull && v.shape == null:
		return 0, nil
	case f.enum == nil:
		return 0, errors.New("the server does not describe its type")
	case v.shape == quoted:
		for i, name := range f.enum.names {
			if name == v.text {
				return int64(f.enum.values[i]), nil
			}
		}
		return 0, fmt.Errorf("%s has no value %q%s", f.enum.name, text.Shorten(v.text, 100), didYouMean(v.text, f.enum.names))
	case v.shape != number:
		return 0, mismatch("a name or a number", v)
	}
	digits, err := whole(v)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, errors.New("the number does not fit into an enum")
	}
	return x, nil
}

// readBase64 reads both alphabets, with and without padding.
func readBase64(v value) ([]byte, error) {
	if v.shape != quoted {
		return nil, mismatch("a string in base64", v)
	}
	plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(v.text), "=")
	if padding := len(v.text) - len(plain); padding > 2 || padding > 0 && len(v.text)%4 != 0 ||
		strings.ContainsAny(plain, "\r\n") {
		return nil, errors.New("it is not base64")
	}
	content, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	return content, nil
}

// numeral returns the text of a number, which may be a string.
func numeral(v value) (string, error) {
	switch {
	case v.shape == number:
		return v.text, nil
	case v.shape != quoted:
		return "", mismatch(number, v)
	case v.text == "" || v.text[0] != '-' && (v.text[0] < '0' || v.text[0] > '9') || strings.TrimSpace(v.text) != v.text ||
		!json.Valid([]byte(v.text)):
		return "", errors.New("the string is no number")
	}
	return v.text, nil
}

func float(v value, bits int) (float64, error) {
	if v.shape == quoted {
		switch v.text {
		case "NaN":
			return math.NaN(), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
	}
	digits, err := numeral(v)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(digits, bits)
	if err != nil {
		return 0, fmt.Errorf("the number does not fit into %d bits", bits)
	}
	return x, nil
}

// whole returns the digits of a number without a fraction: 1.5e1 is 15.
func whole(v value) (string, error) {
	text, err := numeral(v)
	if err != nil || !strings.ContainsAny(text, ".eE") {
		return text, err
	}
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "-", rest
	}
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil {
			return "", errors.New("the number is too large or too small")
		}
		text = text[:i]
	}
	before, after, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(before+after, "0")
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed) - len(after)
	const most = 20 // digits of the largest uint64
	switch {
	case trimmed == "":
		return "0", nil
	case exponent < 0:
		return "", errors.New("the number has a fraction")
	case exponent > most:
		return "", errors.New("the number is too large")
	}
	return sign + trimmed + strings.Repeat("0", exponent), nil
}
