package problem

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// What this file reads has been checked: it is valid JSON. So it only has to find where values end.

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the first members of an object in their order, those with the same name included. There is one
// more than most where the object has more.
func membersOf(object json.RawMessage, most int) (members []member) {
	for rest := skip(object[1:]); rest[0] != '}' && len(members) <= most; rest = skip(rest) {
		end := valueEnd(rest)
		name, _ := unquote(rest[:end])
		rest = skip(rest[end:])[1:] // the colon
		rest = skip(rest)
		end = valueEnd(rest)
		members = append(members, member{name: name, value: rest[:end]})
		if rest = skip(rest[end:]); rest[0] == ',' {
			rest = rest[1:]
		}
	}
	return members
}

// elementsOf returns how many values an array has, and the first of them.
func elementsOf(array json.RawMessage, most int) (values []json.RawMessage, count int) {
	for rest := skip(array[1:]); rest[0] != ']'; rest = skip(rest) {
		end := valueEnd(rest)
		if count++; count <= most {
			values = append(values, rest[:end])
		}
		if rest = skip(rest[end:]); rest[0] == ',' {
			rest = rest[1:]
		}
	}
	return values, count
}

// valueEnd returns the length of the value at the start of data.
func valueEnd(data []byte) int {
	switch data[0] {
	case '"':
		return stringEnd(data)
	case '{', '[':
		return bracketEnd(data)
	}
	if end := bytes.IndexAny(data, ",]} \t\r\n"); end >= 0 {
		return end
	}
	return len(data)
}

func stringEnd(data []byte) int {
	for i := 1; ; i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

func bracketEnd(data []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// tooDeep returns the offset of the first bracket that nests deeper than maxDepth, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i:]) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

func skip(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }

func trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// unquote returns the text of a string. It is not ok where the string has half of a surrogate pair (\ud800), which no
// text can hold: encoding/json would replace it in silence.
func unquote(raw []byte) (text string, ok bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false
	}
	return text, !halfPair(raw)
}

// halfPair reports whether the escapes of a string have a surrogate without its partner.
func halfPair(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		first := escaped(raw[i:])
		i += 4
		if !utf16.IsSurrogate(first) {
			continue
		}
		if !bytes.HasPrefix(raw[i+1:], []byte(`\u`)) || utf16.DecodeRune(first, escaped(raw[i+2:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escaped reads the four digits of u12ab.
func escaped(raw []byte) rune {
	n, _ := strconv.ParseUint(string(raw[1:5]), 16, 16)
	return rune(n)
}

// kind says in words what a value is.
func kind(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
