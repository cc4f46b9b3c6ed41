package dynamic

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of types that JSON writes in their own way.
const (
	nameTimestamp = "google.protobuf.Timestamp"
	nameDuration  = "google.protobuf.Duration"
	nameStruct    = "google.protobuf.Struct"
	nameValue     = "google.protobuf.Value"
	nameList      = "google.protobuf.ListValue"
	nameNull      = "google.protobuf.NullValue"
	nameMask      = "google.protobuf.FieldMask"
	nameAny       = "google.protobuf.Any"
)

// isWrapper reports whether a type holds one value, as google.protobuf.Int64Value does, which JSON writes alone.
func (m *Message) isWrapper() bool {
	short, ok := strings.CutPrefix(m.name, "google.protobuf.")
	return ok && slices.Contains([]string{"DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value",
		"UInt32Value", "BoolValue", "StringValue", "BytesValue"}, short) && m.numbered(1) != nil
}

// encodeWellKnown encodes a type that JSON writes in its own way; is tells whether the type is one of these.
func (m *Message) encodeWellKnown(v value, depth int) (b []byte, is bool, err error) {
	switch m.name {
	case nameTimestamp:
		b, err = encodeTimestamp(v)
	case nameDuration:
		b, err = encodeDuration(v)
	case nameStruct:
		b, err = encodeStruct(v, depth)
	case nameList:
		b, err = encodeList(v, depth)
	case nameValue:
		b, err = encodeValue(v, depth)
	case nameMask:
		b, err = encodeMask(v)
	case nameAny:
		err = errors.New("google.protobuf.Any is not supported in JSON" +
			"\nhint: encode the message yourself, and send it with --data-raw @FILE")
	default:
		if !m.isWrapper() {
			return nil, false, nil
		}
		b, err = m.numbered(1).encodeOne(nil, v, depth)
	}
	return b, true, err
}

// decodeWellKnown writes a type that JSON writes in its own way; is tells whether the type is one of these.
func (m *Message) decodeWellKnown(b *bytes.Buffer, message []byte, depth int) (is bool, err error) {
	switch m.name {
	case nameTimestamp:
		err = decodeTimestamp(b, message)
	case nameDuration:
		err = decodeDuration(b, message)
	case nameStruct:
		err = decodeStruct(b, message, depth)
	case nameList:
		err = decodeList(b, message, depth)
	case nameValue:
		err = decodeValue(b, message, depth)
	case nameMask:
		err = decodeMask(b, message)
	case nameAny:
		err = decodeAny(b, message)
	default:
		if !m.isWrapper() {
			return false, nil
		}
		got, err := m.collect(message)
		if err != nil {
			return true, err
		}
		f := m.numbered(1)
		last := record{}
		if all := got[f]; len(all) > 0 {
			last = all[len(all)-1]
		}
		f.writeScalar(b, last)
	}
	return true, err
}

func encodeTime(seconds int64, nanos int32) (b []byte) {
	if seconds != 0 {
		b = appendVarint(b, 1, uint64(seconds))
	}
	if nanos != 0 {
		b = appendVarint(b, 2, uint64(int64(nanos)))
	}
	return b
}

func decodeTime(message []byte) (seconds int64, nanos int32, err error) {
	err = Each(message, func(number int32, _ []byte, value uint64) error {
		switch number {
		case 1:
			seconds = int64(value)
		case 2:
			nanos = int32(value)
		}
		return nil
	})
	return seconds, nanos, err
}

// The limits of Timestamp and Duration, in seconds: the years 1 to 9999, and 10,000 years.
const (
	earliest = -62135596800
	latest   = 253402300799
	longest  = 315576000000
)

func encodeTimestamp(v value) ([]byte, error) {
	if v.shape != quoted {
		return nil, mismatch("a time such as \"2026-01-02T15:04:05Z\"", v)
	}
	t, err := time.Parse(time.RFC3339Nano, v.text)
	if err != nil || digitsAfterDot(v.text) > 9 {
		return nil, errors.New("it is no time of RFC 3339, such as 2026-01-02T15:04:05.678Z")
	}
	if s := t.Unix(); s < earliest || s > latest {
		return nil, errors.New("the time is not in the years 1 to 9999")
	}
	return encodeTime(t.Unix(), int32(t.Nanosecond())), nil
}

func digitsAfterDot(text string) int {
	_, after, _ := strings.Cut(text, ".")
	return len(after) - len(strings.TrimLeft(after, "0123456789"))
}

func decodeTimestamp(b *bytes.Buffer, message []byte) error {
	seconds, nanos, err := decodeTime(message)
	if err != nil {
		return err
	}
	if seconds < earliest || seconds > latest || nanos < 0 || nanos > 999_999_999 {
		return fmt.Errorf("the time %d s and %d ns is not in the years 1 to 9999", seconds, nanos)
	}
	text := time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04:05")
	b.WriteString(`"` + text + fraction(nanos) + `Z"`)
	return nil
}

// fraction writes nanoseconds with 3, 6 or 9 digits; nothing for 0.
func fraction(nanos int32) string {
	text := fmt.Sprintf(".%09d", nanos)
	for range 3 {
		text = strings.TrimSuffix(text, "000")
	}
	return strings.TrimSuffix(text, ".")
}

func encodeDuration(v value) ([]byte, error) {
	const want = "it is no duration such as 1.5s"
	if v.shape != quoted {
		return nil, mismatch("a duration such as \"1.5s\"", v)
	}
	number, ok := strings.CutSuffix(v.text, "s")
	digits, negative := strings.CutPrefix(number, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	before, after, _ := strings.Cut(digits, ".")
	if !ok || before+after == "" || strings.Trim(before+after, "0123456789") != "" || len(after) > 9 {
		return nil, errors.New(want)
	}
	var seconds, nanos int64
	var err error
	if before != "" {
		seconds, err = strconv.ParseInt(before, 10, 64)
	}
	if err == nil && after != "" {
		nanos, err = strconv.ParseInt((after + "000000000")[:9], 10, 64)
	}
	if err != nil || seconds > longest || seconds == longest && nanos > 0 {
		return nil, errors.New("the duration is longer than 10,000 years")
	}
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	return encodeTime(seconds, int32(nanos)), nil
}

func decodeDuration(b *bytes.Buffer, message []byte) error {
	seconds, nanos, err := decodeTime(message)
	if err != nil {
		return err
	}
	sign := ""
	if seconds < 0 || nanos < 0 {
		sign = "-"
	}
	if seconds < -longest || seconds > longest || nanos < -999_999_999 || nanos > 999_999_999 ||
		seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0 {
		return fmt.Errorf("%d s and %d ns is no duration", seconds, nanos)
	}
	b.WriteString(`"` + sign + strconv.FormatInt(max(seconds, -seconds), 10) + fraction(max(nanos, -nanos)) + `s"`)
	return nil
}

// encodeMask encodes a list of fields, which JSON writes as "user.displayName,photo".
func encodeMask(v value) (b []byte, err error) {
	if v.shape != quoted {
		return nil, mismatch("the names of fields, such as \"user.displayName,photo\"", v)
	}
	if v.text == "" {
		return nil, nil
	}
	for path := range strings.SplitSeq(v.text, ",") {
		if !isPath(path) {
			return nil, fmt.Errorf("%q is no name of a field in JSON, such as user.displayName", path)
		}
		b = AppendString(b, 1, snakeCase(path))
	}
	return b, nil
}

// isPath reports whether a text is a path of names as JSON has them: without underscores.
func isPath(path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if name == "" || '0' <= name[0] && name[0] <= '9' || strings.ContainsFunc(name, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
	}
	return true
}

// snakeCase is the reverse of camelCase.
func snakeCase(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			b.WriteByte(c - 'A' + 'a')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func decodeMask(b *bytes.Buffer, message []byte) error {
	var paths []string
	err := Each(message, func(number int32, path []byte, _ uint64) error {
		if number == 1 {
			paths = append(paths, camelCase(string(path)))
		}
		return nil
	})
	writeText(b, strings.Join(paths, ","))
	return err
}

// decodeAny shows a message of any type with its name and its bytes.
func decodeAny(b *bytes.Buffer, message []byte) error {
	var url string
	var content []byte
	err := Each(message, func(number int32, bytes []byte, _ uint64) error {
		switch number {
		case 1:
			url = string(bytes)
		case 2:
			content = bytes
		}
		return nil
	})
	if url == "" {
		b.WriteString("{}")
		return err
	}
	b.WriteString(`{"@type":`)
	writeText(b, url)
	b.WriteString(`,"@value":"` + base64.StdEncoding.EncodeToString(content) + `"}`)
	return err
}
