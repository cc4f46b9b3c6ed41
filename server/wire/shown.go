package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
)

// This file is how a request is shown: that of a task, and the one within its onExhausted.

func shownURL(url, mask string) string { return text.MaskPattern(request.MaskURL(url), mask) }

// shownHeaders returns the header lines of a request as a map, without their secrets.
func shownHeaders(lines []string, mask string) map[string][]string {
	headers := map[string][]string{}
	for _, line := range request.ShownHeader(&request.Request{Header: lines}, mask) {
		name, value, _ := strings.Cut(line, ":")
		name = strings.TrimSuffix(name, ";")
		headers[name] = append(headers[name], strings.TrimSpace(value))
	}
	return headers
}

// shownExhausted returns onExhausted as it was sent, without its secrets; nil for none.
func shownExhausted(sent, mask string) json.RawMessage {
	o, err := problem.Parse([]byte(sent))
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	for i, name := range o.Names() {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(encoded(name))
		b.WriteByte(':')
		b.Write(shownField(o, name, mask))
	}
	if b.Len() == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func shownField(o *problem.Object, name, mask string) json.RawMessage {
	raw := o.Raw(name)
	switch {
	case name == "targetUrl":
		return encoded(shownURL(o.String(name, ""), mask))
	case name == "headers":
		shown := map[string]any{}
		given := o.Object(name)
		for _, header := range given.Names() {
			shown[header] = shownValues(given, header, mask)
		}
		return encoded(shown)
	case name == "command":
		return encoded(text.MaskCommand(o.Strings(name, math.MaxInt), mask))
	case raw[0] == '"':
		return encoded(text.MaskPattern(o.String(name, ""), mask))
	}
	masked := text.MaskPattern(string(raw), mask)
	if !json.Valid([]byte(masked)) { // the mask has cut a number or a bracket
		return encoded(masked)
	}
	return json.RawMessage(masked)
}

// shownValues returns the values of a header as they were sent: a text or a list.
func shownValues(given *problem.Object, header, mask string) any {
	var lines []string
	for _, value := range given.StringOrList(header, math.MaxInt) {
		lines = append(lines, header+": "+value)
	}
	values := shownHeaders(lines, mask)[header]
	if len(values) == 1 && given.Raw(header)[0] == '"' {
		return values[0]
	}
	return values
}

// encoded is for what always can be.
func encoded(value any) json.RawMessage {
	raw, _ := json.Marshal(value)
	return raw
}
