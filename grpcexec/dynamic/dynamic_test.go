package dynamic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// describe is a file with a field of each type, alone, in a list and in a map.
func describe() *descriptorpb.FileDescriptorProto {
	var fields, entries strings.Builder
	number := 1
	add := func(name, of string, more ...string) {
		fmt.Fprintf(&fields, "field { name: %q number: %d %s %s }\n", name, number, of, strings.Join(more, " "))
		number++
	}
	one, list := "label: LABEL_OPTIONAL", "label: LABEL_REPEATED"
	for k := kindDouble; k <= kindSint64; k++ {
		of := "type: TYPE_" + strings.ToUpper(k.String())
		switch k {
		case kindGroup:
			continue
		case kindMessage:
			of += ` type_name: ".test.All"`
		case kindEnum:
			of += ` type_name: ".test.Colour"`
		}
		name := "a_" + k.String()
		add(name, of, one)
		add(name+"_list", of, list)
		entry := fmt.Sprintf("A%sMapEntry", strings.Title(k.String())) //nolint:staticcheck // of ASCII alone
		fmt.Fprintf(&entries, `nested_type { name: %q options { map_entry: true }
			field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
			field { name: "value" number: 2 %s label: LABEL_OPTIONAL } }
`, entry, of)
		add(name+"_map", fmt.Sprintf(`type: TYPE_MESSAGE type_name: ".test.All.%s"`, entry), list)
	}
	for _, key := range []string{"int32", "uint64", "bool", "sint64", "fixed32"} {
		entry := fmt.Sprintf("By%sEntry", strings.Title(key)) //nolint:staticcheck // of ASCII alone
		fmt.Fprintf(&entries, `nested_type { name: %q options { map_entry: true }
			field { name: "key" number: 1 type: TYPE_%s label: LABEL_OPTIONAL }
			field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL } }
`, entry, strings.ToUpper(key))
		add("by_"+key, fmt.Sprintf(`type: TYPE_MESSAGE type_name: ".test.All.%s"`, entry), list)
	}
	for _, known := range []string{"Timestamp", "Duration", "Struct", "Value", "ListValue", "FieldMask", "Empty", "Any",
		"DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue",
		"BytesValue"} {
		of := fmt.Sprintf("type: TYPE_MESSAGE type_name: \".google.protobuf.%s\"", known)
		add("w_"+strings.ToLower(known), of, one)
		add("w_"+strings.ToLower(known)+"_list", of, list)
	}
	add("a_null", `type: TYPE_ENUM type_name: ".google.protobuf.NullValue"`, one)
	add("one_text", "type: TYPE_STRING", one, "oneof_index: 0")
	add("one_number", "type: TYPE_INT32", one, "oneof_index: 0")
	add("one_message", `type: TYPE_MESSAGE type_name: ".test.All"`, one, "oneof_index: 0")
	add("named", "type: TYPE_STRING", one, `json_name: "quiteOther"`)
	file := &descriptorpb.FileDescriptorProto{}
	text := `name: "test.proto" package: "test" syntax: "proto3"
		dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto"
		dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/field_mask.proto"
		dependency: "google/protobuf/empty.proto" dependency: "google/protobuf/any.proto"
		dependency: "google/protobuf/wrappers.proto"
		enum_type { name: "Colour" value { name: "NONE" number: 0 } value { name: "RED" number: 1 }
			value { name: "DEEP" number: -5 } }
		message_type { name: "All" oneof_decl { name: "one" } ` + fields.String() + entries.String() + `}
		service { name: "Tests" method { name: "Do" input_type: ".test.All" output_type: ".test.All" }
			method { name: "Watch" input_type: ".test.All" output_type: ".test.All" server_streaming: true } }`
	if err := prototext.Unmarshal([]byte(text), file); err != nil {
		panic(err)
	}
	return file
}

// types returns the type of describe in this package and in the library.
func types(t testing.TB, file *descriptorpb.FileDescriptorProto, message string) (*Message,
	protoreflect.MessageDescriptor) {
	t.Helper()
	theirs, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	files := NewFiles()
	add := func(f proto.Message) {
		encoded, err := proto.Marshal(f)
		if err == nil {
			err = files.Add(encoded)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(file)
	for missing := files.Missing(); len(missing) > 0; missing = files.Missing() {
		of, err := protoregistry.GlobalFiles.FindFileByPath(missing[0])
		if err != nil {
			t.Fatal(err)
		}
		add(protodesc.ToFileDescriptorProto(of))
	}
	if len(file.GetService()) > 0 {
		if _, err := files.Method("test.Tests", "Do"); err != nil {
			t.Fatal(err)
		}
	}
	files.link()
	return files.messages["test."+message], theirs.Messages().ByName(protoreflect.Name(message))
}

var encodings = []string{
	`{}`, ` { } `, `{"aDouble": 1.5, "aFloat": -2.25e3, "aDoubleList": [0, "NaN", "-Infinity", "1e3", -0.0]}`,
	`{"aInt64": "-9223372036854775808", "aUint64": 18446744073709551615, "aInt32": -2147483648, "aSint32": -3}`,
	`{"aSint64": "-9223372036854775808", "aSint32List": [0, -1, 2147483647, -2147483648]}`,
	`{"a_int64": 5, "aInt32": 1.0, "aUint32": 1e3, "aFixed64": "15e1", "aFixed32": 4294967295, "aSfixed32": -7}`,
	`{"aSfixed64": "-8", "aSfixed64List": ["1", 2], "aFixed32List": [1, 2, 3], "aBoolList": [true, false]}`,
	`{"aString": "ä \u2028 \ud83d\ude00 <&>", "aBytes": "-_8=", "aBytesList": ["", "YQ", "YWI=", "+/8"]}`,
	`{"aEnum": "RED", "aEnumList": ["DEEP", 0, 99, -5, "NONE"], "aEnumMap": {"b": "RED", "a": 7}}`,
	`{"aMessage": {"aMessage": {"aInt32": 1}}, "aMessageList": [{}, {"aString": "x"}], "aMessageMap": {"k": {}}}`,
	`{"aStringMap": {"z": "1", "a": "2", "": ""}, "aDoubleMap": {"x": "Infinity"}, "aBytesMap": {"b": "AA=="}}`,
	`{"byInt32": {"-1": 1, "0": 2, "10": 3, "9": 4}, "byUint64": {"18446744073709551615": 1, "2": 1}}`,
	`{"byBool": {"true": 1, "false": 2}, "bySint64": {"-5": 1, "5": 2}, "byFixed32": {"7": 7}}`,
	`{"wTimestamp": "2026-11-22T20:48:07.123Z", "wTimestampList": ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z"]}`,
	`{"wTimestamp": "2026-11-22T20:48:07.123456789+02:00", "wTimestampList": ["9999-12-31T23:59:59.999999999Z"]}`,
	`{"wDuration": "-1.5s", "wDurationList": ["0s", "3s", "0.000001s", "315576000000s", "-0.5s", "+1s"]}`,
	`{"wStruct": {"b": [1, "x", null, {"c": false}], "a": {}}, "wValue": null, "wListvalue": [null, 1, []]}`,
	`{"wValue": {"a": 1}, "wValueList": [null, true, 1e9, "s", [1], {}]}`, `{"wValue": 1.25}`, `{"wStructList": [{}]}`,
	`{"wFieldmask": "user.displayName,photo", "wFieldmaskList": ["", "a"], "wEmpty": {}, "wEmptyList": [{}]}`,
	`{"wDoublevalue": "NaN", "wFloatvalue": 1, "wInt64value": "5", "wUint64value": 6, "wInt32value": 0, "wUint32value": 1}`,
	`{"wBoolvalue": false, "wStringvalue": "", "wBytesvalue": "YQ==", "wStringvalueList": ["a", "b"]}`,
	`{"aNull": null, "oneText": "x"}`, `{"oneNumber": 0}`, `{"oneMessage": {"oneText": ""}}`, `{"oneText": null, "oneNumber": 1}`,
	`{"quiteOther": "a"}`, `{"named": "a"}`, `{"aInt32": null, "aInt32List": null, "aInt32Map": null, "aMessage": null}`,
	`{"wAny": null, "wTimestamp": null, "wInt64value": null}`,
}

func TestEncode(t *testing.T) {
	ours, theirs := types(t, describe(), "All")
	for _, text := range encodings {
		compareEncoding(t, ours, theirs, text, true)
	}
}

// compareEncoding encodes JSON, and has the library read it; and writes the message as JSON again.
func compareEncoding(t *testing.T, ours *Message, theirs protoreflect.MessageDescriptor, text string, valid bool) {
	t.Helper()
	want := dynamicpb.NewMessage(theirs)
	wantErr := protojson.Unmarshal([]byte(text), want)
	got, err := ours.Encode([]byte(text))
	switch {
	case valid && (err != nil || wantErr != nil):
		t.Errorf("%s: got error %v, the library's %v, want none", text, err, wantErr)
		return
	case (err == nil) != (wantErr == nil):
		t.Errorf("%s: got error %v, want the library's: %v", text, err, wantErr)
		return
	case err != nil:
		return
	}
	back := dynamicpb.NewMessage(theirs)
	if err := proto.Unmarshal(got, back); err != nil || !proto.Equal(back, want) {
		t.Errorf("%s: got message %v, %v, want %v", text, prototext.Format(back), err, prototext.Format(want))
	}
	canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	compareDecoding(t, ours, theirs, canonical)
}

// compareDecoding writes a message as JSON, and has the library do so.
func compareDecoding(t *testing.T, ours *Message, theirs protoreflect.MessageDescriptor, message []byte) {
	t.Helper()
	m := dynamicpb.NewMessage(theirs)
	if proto.Unmarshal(message, m) != nil {
		return
	}
	written, wantErr := protojson.Marshal(m)
	got, err := ours.Decode(message)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%x: got error %v, want the library's: %v", message, err, wantErr)
		return
	}
	var want bytes.Buffer
	if err != nil || json.Compact(&want, written) != nil {
		return
	}
	if got = bytes.ReplaceAll(got, []byte(`\u2028`), []byte("\u2028")); string(got) != want.String() {
		t.Errorf("%x: got  %s\nwant %s", message, got, want.String())
	}
}

func TestEncodeErrors(t *testing.T) {
	ours, theirs := types(t, describe(), "All")
	for _, tt := range []struct{ text, want string }{
		{text: ``, want: "invalid JSON: unexpected end"}, {text: `{} {}`, want: "invalid JSON"}, {text: `[]`, want: "want an object, got an array"},
		{text: "{\"aString\": \"\xff\"}", want: "not UTF-8"}, {text: `{"aString": 1}`, want: "field aString: want a string, got a number"},
		{text: `{"aStrin": "x"}`, want: "test.All has no field \"aStrin\"\nhint: did you mean aString?"},
		{text: `{"aInt32": 1.5}`, want: "has a fraction"}, {text: `{"aInt32": 2147483648}`, want: "does not fit into int32"},
		{text: `{"aInt32": 1e400}`, want: "too large"}, {text: `{"aInt32": 1e99999999999999999999}`, want: "too large or too small"},
		{text: `{"aUint32": -1}`, want: "does not fit into uint32"}, {text: `{"aInt64": "x"}`, want: "the string is no number"},
		{text: `{"aInt64": "01"}`, want: "no number"}, {text: `{"aInt64": "+1"}`, want: "no number"}, {text: `{"aInt64": " 1"}`, want: "no number"},
		{text: `{"aFloat": 1e39}`, want: "does not fit into 32 bits"}, {text: `{"aDouble": "nan"}`, want: "no number"},
		{text: `{"aBool": "true"}`, want: "want a bool, got a string"}, {text: `{"aBytes": "?"}`, want: "it is not base64"},
		{text: `{"aEnum": "REDD"}`, want: "field aEnum: test.Colour has no value \"REDD\"\nhint: did you mean RED?"},
		{text: `{"aEnum": true}`, want: "want a name or a number, got a bool"}, {text: `{"aInt32List": [1, null]}`, want: "field aInt32List[1]: null"},
		{text: `{"aInt32List": 1}`, want: "want an array"}, {text: `{"aStringMap": {"a": null}}`, want: `field aStringMap["a"]: null`},
		{text: `{"byInt32": {"x": 1}}`, want: `field byInt32["x"]: the string is no number`}, {text: `{"byBool": {"yes": 1}}`, want: "want a bool"},
		{text: `{"aMessage": {"aMessageList": [{}, {"aInt32": "x"}]}}`, want: "field aMessage.aMessageList[1].aInt32: "},
		{text: `{"aInt32": 1, "aInt32": 2}`, want: `the name "aInt32" is there twice`}, {text: `{"aInt32": 1, "a_int32": 2}`, want: "twice"},
		{text: `{"oneText": "x", "oneNumber": 1}`, want: "oneText and oneNumber exclude each other"},
		{text: `{"wTimestamp": "2026-11-22"}`, want: "no time of RFC 3339"}, {text: `{"wTimestamp": 5}`, want: "want a time such as"},
		{text: `{"wTimestamp": "2026-11-22T00:00:00.1234567891Z"}`, want: "no time"}, {text: `{"wDuration": "1"}`, want: "no duration such as"},
		{text: `{"wDuration": "315576000001s"}`, want: "longer than"}, {text: `{"wFieldmask": "a_b"}`, want: "no name of a field"},
		{text: `{"wAny": {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}}`, want: "field wAny: google.protobuf.Any is not supported"},
		{text: `{"wInt32value": "x"}`, want: "no number"}, {text: `{"wStruct": []}`, want: "want an object"}, {text: `{"wListvalue": {}}`, want: "want an array"},
		{text: `{"wValue": "NaN", "aDouble": 1e999}`, want: "does not fit"},
		{text: strings.Repeat(`{"aMessage":`, 101) + "{}" + strings.Repeat("}", 101), want: "nested more than 100 levels"},
		{text: `{"wListvalue": ` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}", want: "nested more than 100 levels"},
	} {
		_, err := ours.Encode([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s: got %v, want %q", tt.text, err, tt.want)
		}
		if strings.Contains(tt.want, "100 levels") || strings.Contains(tt.want, "Any") {
			continue // the library has another limit, and knows the types of the program
		}
		if protojson.Unmarshal([]byte(tt.text), dynamicpb.NewMessage(theirs)) == nil {
			t.Errorf("%.80s: got an error, and the library has none", tt.text)
		}
	}
}

// A message of an older or a newer server, or of another language: merged, unpacked, unknown, in another order.
func TestDecode(t *testing.T) {
	ours, theirs := types(t, describe(), "All")
	of := func(name string) int32 { return ours.named(name).number }
	inner := appendVarint(nil, of("aInt32"), 5)
	other := AppendString([]byte(nil), of("aString"), "x")
	for name, message := range map[string][]byte{
		"empty":         {},
		"unknown":       AppendString(appendVarint(nil, 5000, 1), 5001, "x"),
		"merged":        AppendString(AppendString([]byte(nil), of("aMessage"), inner), of("aMessage"), other),
		"last":          appendVarint(appendVarint(nil, of("aInt32"), 1), of("aInt32"), 2),
		"unpacked":      appendVarint(AppendString(appendVarint(nil, of("aInt32List"), 1), of("aInt32List"), []byte{2, 3}), of("aInt32List"), 4),
		"wrong wire":    AppendString([]byte(nil), of("aInt32"), "x"),
		"oneof":         AppendString(appendVarint(nil, of("oneNumber"), 1), of("oneText"), "x"),
		"oneof merged":  AppendString(AppendString([]byte(nil), of("oneMessage"), inner), of("oneMessage"), other),
		"entry":         AppendString([]byte(nil), of("aMessageMap"), []byte{}),
		"entry twice":   AppendString(AppendString([]byte(nil), of("byInt32"), []byte{8, 1, 16, 1}), of("byInt32"), []byte{8, 1, 16, 9}),
		"large int32":   appendVarint(nil, of("aInt32"), math.MaxUint64-1),
		"large uint32":  appendVarint(nil, of("aUint32"), 1<<40+7),
		"large sint32":  appendVarint(nil, of("aSint32"), 1<<40+7),
		"bool 2":        appendVarint(nil, of("aBool"), 2),
		"group":         append(append(appendTag(nil, 5000, wireStartGroup), inner...), appendTag(nil, 5000, wireEndGroup)...),
		"value merged":  AppendString([]byte(nil), of("wValue"), AppendString(appendVarint(nil, 4, 1), 3, "s")),
		"bad time":      AppendString([]byte(nil), of("wTimestamp"), appendVarint(nil, 2, 1<<31-1)),
		"bad duration":  AppendString([]byte(nil), of("wDuration"), encodeTime(1, -1)),
		"empty wrapper": AppendString([]byte(nil), of("wInt64value"), ""),
	} {
		t.Run(name, func(t *testing.T) { compareDecoding(t, ours, theirs, message) })
	}
	for name, message := range map[string][]byte{
		"cut": {8}, "number 0": {0}, "end of a group": appendTag(nil, 3, wireEndGroup), "group without end": appendTag(nil, 3, wireStartGroup),
		"too deep": bytes.Repeat(appendTag(nil, 5000, wireStartGroup), 200),
		"too long": {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, "wire type 7": {0x0f},
	} {
		if text, err := ours.Decode(message); err == nil {
			t.Errorf("%s: got %s, want an error", name, text)
		}
	}
	deep := []byte{}
	for range 150 {
		deep = AppendString([]byte(nil), of("aMessage"), deep)
	}
	if _, err := ours.Decode(deep); err == nil {
		t.Error("got no error for a message 150 levels deep")
	}
	packed := AppendString([]byte(nil), of("wAny"), AppendString(AppendString([]byte(nil), 1, "x/y.Z"), 2, "abc"))
	if text, err := ours.Decode(packed); err != nil || string(text) != `{"wAny":{"@type":"x/y.Z","@value":"YWJj"}}` {
		t.Errorf("got %s, %v, want the name and the bytes of an Any", text, err)
	}
}

// Groups of proto2 and the delimited messages of editions are written between two tags.
func TestGroups(t *testing.T) {
	for name, text := range map[string]string{
		"proto2": `name: "g.proto" package: "test" message_type { name: "M"
			field { name: "inner" number: 3 type: TYPE_GROUP type_name: ".test.M.Inner" label: LABEL_OPTIONAL }
			nested_type { name: "Inner" field { name: "n" number: 1 type: TYPE_INT32 label: LABEL_REPEATED } } }`,
		"edition": `name: "g.proto" package: "test" syntax: "editions" edition: EDITION_2023
			options { features { message_encoding: DELIMITED } } message_type { name: "M"
			field { name: "inner" number: 3 type: TYPE_MESSAGE type_name: ".test.M.Inner" label: LABEL_OPTIONAL }
			nested_type { name: "Inner" field { name: "n" number: 1 type: TYPE_INT32 label: LABEL_REPEATED } } }`,
		"field": `name: "g.proto" package: "test" syntax: "editions" edition: EDITION_2023 message_type { name: "M"
			field { name: "inner" number: 3 type: TYPE_MESSAGE type_name: ".test.M.Inner" label: LABEL_OPTIONAL
				options { features { message_encoding: DELIMITED } } }
			nested_type { name: "Inner" field { name: "n" number: 1 type: TYPE_INT32 label: LABEL_REPEATED } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			file := &descriptorpb.FileDescriptorProto{}
			if err := prototext.Unmarshal([]byte(text), file); err != nil {
				t.Fatal(err)
			}
			ours, theirs := types(t, file, "M")
			compareEncoding(t, ours, theirs, `{"inner": {"n": [1, 2, 300]}}`, true)
			if b, err := ours.Encode([]byte(`{"inner": {}}`)); err != nil || string(b) != "\x1b\x1c" {
				t.Errorf("got %x, %v, want a group", b, err)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	files := NewFiles()
	encoded, err := proto.Marshal(describe())
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Add(encoded); err != nil {
		t.Fatal(err)
	}
	if got := files.Missing(); len(got) != 7 || got[0] != "google/protobuf/timestamp.proto" {
		t.Errorf("got missing files %q", got)
	}
	if m, err := files.Method("test.Tests", "Watch"); err != nil || !m.Streams {
		t.Errorf("got %+v, %v, want a method that streams", m, err)
	}
	for _, tt := range []struct{ service, method, want string }{
		{service: "test.Test", method: "Do", want: "no service test.Test"},
		{service: "test.Tests", method: "Wach", want: "\nhint: did you mean Watch?"},
		{service: "test.Tests", method: "zzzzzzzzzzzzz", want: "\nhint: it has Do, Watch"},
	} {
		if _, err := files.Method(tt.service, tt.method); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s/%s: got %v, want %q", tt.service, tt.method, err, tt.want)
		}
	}
	m, err := files.Method("test.Tests", "Do")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Input.Encode([]byte(`{"wEmpty": {}}`)); err == nil || !strings.Contains(err.Error(), "does not describe its type") {
		t.Errorf("got %v, want an error of a type without its file", err)
	}
}

func FuzzEncode(f *testing.F) {
	for _, text := range encodings {
		f.Add(text)
	}
	ours, theirs := types(f, describe(), "All")
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || strings.Contains(text, "wAny") || strings.Contains(text, "w_any") || strings.Contains(text, `\u`) ||
			strings.Contains(text, "by") || // the library reads 01 and +1 as keys of maps
			strings.Count(text, "{")+strings.Count(text, "[") > 50 {
			_, _ = ours.Encode([]byte(text)) // these are treated in another way
			return
		}
		compareEncoding(t, ours, theirs, text, false)
	})
}

func FuzzDecode(f *testing.F) {
	ours, _ := types(f, describe(), "All")
	for _, text := range encodings {
		message, err := ours.Encode([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		text, err := ours.Decode(message)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%x: got %s, which is not JSON", message, text)
		}
	})
}

func FuzzFiles(f *testing.F) {
	encoded, err := proto.Marshal(describe())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded, []byte(`{"aInt32": 1}`), []byte{8, 1})
	f.Fuzz(func(_ *testing.T, file, text, message []byte) {
		files := NewFiles()
		if files.Add(file) != nil {
			return
		}
		files.Missing()
		m, err := files.Method("test.Tests", "Do")
		if err != nil {
			return
		}
		_, _ = m.Input.Encode(text)
		_, _ = m.Output.Decode(message)
	})
}
