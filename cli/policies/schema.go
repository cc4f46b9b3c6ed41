package policies

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
)

// object is a part of a JSON schema.
type object map[string]any

// Schema is the schema of the config file, made from the flags like all that reads it.
func Schema() ([]byte, error) {
	properties := object{ruleKey: object{
		"description": "Each rule gives one class of outcome its own delay; the first that matches counts.",
		"type":        "array", "items": ruleSchema(),
	}}
	for _, k := range fileKeys() {
		properties[k.Name] = k.schema()
	}
	schema := object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "retry's config file",
		"description": "Named policies for retry -p NAME. [policy.default] is what a run without -p uses.",
		"type":        "object", "additionalProperties": false,
		"properties": object{policyTable: object{
			"description": "The policies by their names.",
			"type":        "object",
			// What Go calls printable is more than a pattern can say: retry policy check knows it.
			"propertyNames":        object{"minLength": 1, "maxLength": maxPolicyName, "pattern": namePattern},
			"additionalProperties": object{"type": "object", "additionalProperties": false, "properties": properties},
		}},
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return text.Bytes(), err
}

// exitCodeSchema is what may stand in place of a text.
func exitCodeSchema() object {
	return object{"type": "integer", "minimum": 0, "maximum": math.MaxInt32, "description": "An exit code."}
}

func conditionSchema() object {
	return object{"type": "string", "pattern": `\S`, "description": "A list such as 1,75,100-120,SIGSEGV,signal,timeout,any, or an expression."}
}

const (
	namePattern     = `^[^/\x00-\x20\x7f-\x9f]([^/\x00-\x1f\x7f-\x9f]*[^/\x00-\x20\x7f-\x9f])?$`
	durationPattern = `^\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w))+$|^\+?([0-9]+\.?[0-9]*|\.[0-9]+)$`
	jitterPattern   = `^(none|full|equal|decorrelated|phase|\s*±?\s*[0-9.]+\s*%|add:.+)$`
)

func curvePattern() string {
	names := []string{`[a-z]+:[\s\S]+`}
	for _, p := range backoff.Presets() {
		names = append(names, p.Name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// schema says what values the key takes.
func (k *Key) schema() object {
	s := object{"description": k.Help}
	switch k.Kind {
	case keyCount:
		s["type"], s["minimum"], s["maximum"], s["examples"] = "integer", 0, flags.MaxCount, []any{json.Number(k.Example)}
	case keySpec:
		s["type"], s["pattern"], s["examples"] = "string", jitterPattern, []any{k.Example}
		if k.Name == "backoff" {
			s["pattern"] = curvePattern()
		}
	case keyDuration:
		seconds := object{"type": "number", "minimum": 0, "maximum": 9223372036, "description": "Seconds."}
		s["anyOf"], s["examples"] = []object{{"type": "string", "pattern": durationPattern}, seconds}, []any{k.Example}
	case keyConditions:
		one := []object{conditionSchema(), exitCodeSchema()}
		s["anyOf"] = append(one, object{"type": "array", "items": object{"anyOf": one}})
		s["examples"] = []any{[]any{k.Example}}
	}
	return s
}

func ruleSchema() object {
	return object{
		"type": "object", "additionalProperties": false, "required": []string{"when", "backoff"},
		"properties": object{
			"when":    object{"description": "Which outcomes.", "anyOf": []object{conditionSchema(), exitCodeSchema()}, "examples": []any{"exit == 75"}},
			"backoff": keyNamed("backoff").schema(),
			"jitter":  keyNamed("jitter").schema(),
		},
	}
}
