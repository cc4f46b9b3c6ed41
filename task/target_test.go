package task

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type thing struct {
	Target `json:"-"`

	Text  string        `json:"text"`
	List  []string      `json:"list,omitempty"`
	Parts []part        `json:"parts,omitempty"`
	Maybe *string       `json:"maybe,omitempty"`
	Bytes []byte        `json:"bytes,omitempty"`
	At    time.Time     `json:"at,omitzero"`
	For   time.Duration `json:"for,omitempty"`
}

type part struct {
	Name string `json:"name"`
	Text []byte `json:"text"`
}

// A target is the same after a journal has had it, whatever bytes are in it; with UTF-8 alone it is plain JSON.
func TestTargetKeepsItsBytes(t *testing.T) {
	const kind = Kind("thing")
	RegisterTarget(kind, func(stored []byte) (Target, error) {
		found := new(thing)
		return found, json.Unmarshal(stored, found)
	})
	defer delete(decoders, kind)
	at := time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)
	for _, text := range []string{
		"", "plain", "caf\u00e9 \u65e5", "caf\xe9", "\xff", "\ufffd", `\ufffd`, "\x00", "\x00\u65e5", "\x00\xe9",
		"\u65e5\xe9",
	} {
		maybe := text
		before := &thing{
			Text: text, List: []string{"a", text}, Parts: []part{{text, []byte(text)}}, Maybe: &maybe,
			Bytes: []byte("b" + text), At: at, For: time.Second,
		}
		stored, _, err := EncodeTarget(before)
		if err != nil {
			t.Errorf("%q: got %v, want no error", text, err)
		}
		if after, err := DecodeTarget(kind, stored); err != nil || !reflect.DeepEqual(after, Target(before)) {
			t.Errorf("%q: got %+v, %v, want %+v (stored %s)", text, after, err, before, stored)
		}
		if before.Text != text || before.List[1] != text {
			t.Errorf("%q: the target itself was changed: %+v", text, before)
		}
	}
}
