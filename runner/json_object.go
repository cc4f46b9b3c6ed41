package runner

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// jsonObject is a JSON object that is being written, without its closing brace.
type jsonObject []byte

func (b *jsonObject) key(name string) {
	open := byte(',')
	if len(*b) == 0 {
		open = '{'
	}
	*b = append(append(append(*b, open, '"'), name...), '"', ':')
}

func (b *jsonObject) number(name string, n int64) {
	b.key(name)
	*b = strconv.AppendInt(*b, n, 10)
}

// limit writes a duration in milliseconds. It never rounds one down to none, which is null.
func (b *jsonObject) limit(name string, d time.Duration) {
	if d == 0 {
		b.key(name)
		*b = append(*b, "null"...)
		return
	}
	b.number(name, max(1, d.Milliseconds()))
}

func (b *jsonObject) text(name, text string) {
	b.key(name)
	b.quote(text)
}

func (b *jsonObject) list(name string, conditions []Condition) {
	b.key(name)
	*b = append(*b, '[')
	for i, c := range conditions {
		if i > 0 {
			*b = append(*b, ',')
		}
		b.quote(c.String())
	}
	*b = append(*b, ']')
}

func (b *jsonObject) rules(name string, rules []Rule) {
	b.key(name)
	*b = append(*b, '[')
	for i, r := range rules {
		if i > 0 {
			*b = append(*b, ',')
		}
		var o jsonObject
		o.text("when", r.When.String())
		o.text("backoff", r.Backoff.Curve())
		o.text("jitter", r.Backoff.Jitter())
		*b = append(append(*b, o...), '}')
	}
	*b = append(*b, ']')
}

// plainText is what JSON writes as it is.
const plainText = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;*+-_/%()=!|~^'#@?$"

// quote leaves all but plain text to the library.
func (b *jsonObject) quote(text string) {
	if strings.Trim(text, plainText) == "" {
		*b = append(append(append(*b, '"'), text...), '"')
		return
	}
	quoted, _ := json.Marshal(text) // a string always can
	*b = append(*b, quoted...)
}
