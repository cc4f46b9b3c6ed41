package dynamic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// kind is the type of a field, with the numbers of FieldDescriptorProto.Type.
type kind byte

const (
	kindDouble   kind = 1
	kindFloat    kind = 2
	kindInt64    kind = 3
	kindUint64   kind = 4
	kindInt32    kind = 5
	kindFixed64  kind = 6
	kindFixed32  kind = 7
	kindBool     kind = 8
	kindString   kind = 9
	kindGroup    kind = 10
	kindMessage  kind = 11
	kindBytes    kind = 12
	kindUint32   kind = 13
	kindEnum     kind = 14
	kindSfixed32 kind = 15
	kindSfixed64 kind = 16
	kindSint32   kind = 17
	kindSint64   kind = 18
)

// Message is the type of a message.
type Message struct {
	name    string // package.Name
	fields  []*field
	isEntry bool // it is the entry of a map: its key is field 1, its value field 2
}

// field is one field of a message.
type field struct {
	name     string
	jsonName string
	number   int32
	kind     kind
	repeated bool
	oneof    int // the index of the oneof that it belongs to; -1 = none
	typeName string
	message  *Message // nil where the type's file is missing
	enum     *enum
}

// enum is the type of an enumeration. Several names may have one number; the first is shown.
type enum struct {
	name   string
	names  []string
	values []int32
}

// Method is one method of a service.
type Method struct {
	Input, Output *Message
	Streams       bool // it is not unary

	name, input, output string
}

// Files are the types and services of files of Protocol Buffers.
type Files struct {
	files    map[string]bool
	needed   []string // by other files
	messages map[string]*Message
	enums    map[string]*enum
	services map[string][]*Method
	fields   []*field // to be linked
}

// NewFiles returns an empty set of files.
func NewFiles() *Files {
	return &Files{files: map[string]bool{}, messages: map[string]*Message{}, enums: map[string]*enum{},
		services: map[string][]*Method{}}
}

// Add reads an encoded google.protobuf.FileDescriptorProto. A file that is there already is ignored.
func (f *Files) Add(file []byte) error {
	if err := f.add(file); err != nil {
		return fmt.Errorf("read the server's description of its types: %w", err)
	}
	return nil
}

func (f *Files) add(file []byte) error {
	var name, prefix string
	var delimited bool
	err := Each(file, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 1:
			name = string(content)
		case 2:
			prefix = "." + string(content)
		case 8:
			delimited = isDelimited(content, 50, false)
		}
		return nil
	})
	if err != nil || f.files[name] {
		return err
	}
	f.files[name] = true
	return Each(file, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 3:
			f.needed = append(f.needed, string(content))
		case 4:
			return f.addMessage(content, prefix, delimited, 0)
		case 5:
			return f.addEnum(content, prefix)
		case 6:
			return f.addService(content, prefix)
		}
		return nil
	})
}

// Missing returns the names of the files that others need, and that were not added.
func (f *Files) Missing() []string {
	var missing []string
	for _, name := range f.needed {
		if !f.files[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// isDelimited reports whether options have messages encoded as groups: in their features, a field of that number, it is
// field 5 (message_encoding), and 2 is DELIMITED.
func isDelimited(options []byte, features int32, inherited bool) bool {
	_ = Each(options, func(number int32, content []byte, _ uint64) error {
		if number != features {
			return nil
		}
		return Each(content, func(number int32, _ []byte, value uint64) error {
			if number == 5 {
				inherited = value == 2
			}
			return nil
		})
	})
	return inherited
}

func (f *Files) addMessage(b []byte, prefix string, delimited bool, depth int) error {
	if depth == maxDepth {
		return errTooDeep
	}
	m := &Message{}
	var nested, enums, fields [][]byte
	err := Each(b, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 1:
			m.name = strings.TrimPrefix(prefix+"."+string(content), ".")
		case 2:
			fields = append(fields, content)
		case 3:
			nested = append(nested, content)
		case 4:
			enums = append(enums, content)
		case 7:
			delimited = isDelimited(content, 12, delimited)
			return Each(content, func(number int32, _ []byte, value uint64) error {
				m.isEntry = m.isEntry || number == 7 && value != 0
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, content := range fields {
		one, err := readField(content, delimited)
		if err != nil {
			return err
		}
		m.fields = append(m.fields, one)
	}
	f.messages[m.name] = m
	f.fields = append(f.fields, m.fields...)
	for _, content := range nested {
		if err := f.addMessage(content, "."+m.name, delimited, depth+1); err != nil {
			return err
		}
	}
	for _, content := range enums {
		if err := f.addEnum(content, "."+m.name); err != nil {
			return err
		}
	}
	return nil
}

func readField(b []byte, delimited bool) (*field, error) {
	one := &field{oneof: -1}
	err := Each(b, func(number int32, content []byte, value uint64) error {
		switch number {
		case 1:
			one.name = string(content)
		case 3:
			one.number = int32(value)
		case 4:
			one.repeated = value == 3
		case 5:
			one.kind = kind(value)
		case 6:
			one.typeName = strings.TrimPrefix(string(content), ".")
		case 8:
			delimited = isDelimited(content, 21, delimited)
		case 9:
			one.oneof = int(value)
		case 10:
			one.jsonName = string(content)
		}
		return nil
	})
	if one.jsonName == "" {
		one.jsonName = camelCase(one.name)
	}
	if one.kind == kindMessage && delimited {
		one.kind = kindGroup
	}
	if one.number <= 0 || one.number >= 1<<29 || one.kind < kindDouble || one.kind > kindSint64 {
		err = errors.Join(err, errMalformed)
	}
	return one, err
}

func (f *Files) addEnum(b []byte, prefix string) error {
	e := &enum{}
	err := Each(b, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 1:
			e.name = strings.TrimPrefix(prefix+"."+string(content), ".")
		case 2:
			var name string
			var of int32
			err := Each(content, func(number int32, content []byte, value uint64) error {
				switch number {
				case 1:
					name = string(content)
				case 2:
					of = int32(value)
				}
				return nil
			})
			e.names, e.values = append(e.names, name), append(e.values, of)
			return err
		}
		return nil
	})
	f.enums[e.name] = e
	return err
}

func (f *Files) addService(b []byte, prefix string) error {
	var name string
	var methods []*Method
	err := Each(b, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 1:
			name = strings.TrimPrefix(prefix+"."+string(content), ".")
		case 2:
			m := &Method{}
			methods = append(methods, m)
			return Each(content, func(number int32, content []byte, value uint64) error {
				switch number {
				case 1:
					m.name = string(content)
				case 2:
					m.input = strings.TrimPrefix(string(content), ".")
				case 3:
					m.output = strings.TrimPrefix(string(content), ".")
				case 5, 6:
					m.Streams = m.Streams || value != 0
				}
				return nil
			})
		}
		return nil
	})
	f.services[name] = methods
	return err
}

// Method finds a method of a service, with its types.
func (f *Files) Method(service, method string) (*Method, error) {
	methods, ok := f.services[service]
	if !ok {
		return nil, fmt.Errorf("the server describes no service %s", service)
	}
	f.link()
	var names []string
	for _, m := range methods {
		if m.name == method {
			m.Input, m.Output = f.messages[m.input], f.messages[m.output]
			if m.Input == nil || m.Output == nil {
				return nil, fmt.Errorf("the server does not describe the types of %s/%s", service, method)
			}
			return m, nil
		}
		names = append(names, m.name)
	}
	return nil, fmt.Errorf("the service %s has no method %q%s", service, method, didYouMean(method, names))
}

// link gives the fields the types that they name.
func (f *Files) link() {
	for _, one := range f.fields {
		one.message, one.enum = f.messages[one.typeName], f.enums[one.typeName]
	}
}

// didYouMean is a hint at the name that is nearest to a wrong one.
func didYouMean(wrong string, names []string) string {
	if near := text.Nearest(wrong, names); near != "" {
		return "\nhint: did you mean " + near + "?"
	}
	const most = 20
	if len(names) == 0 {
		return "\nhint: it has none"
	}
	rest := ""
	if len(names) > most {
		names, rest = names[:most], ", …"
	}
	return "\nhint: it has " + strings.Join(names, ", ") + rest
}

// camelCase returns the name of a field in JSON: foo_bar is fooBar.
func camelCase(name string) string {
	var b strings.Builder
	upper := false
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_':
			upper = true
		case upper && 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
			upper = false
		default:
			b.WriteByte(c)
			upper = false
		}
	}
	return b.String()
}
