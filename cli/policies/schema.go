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
	properties := schemas(fileKeys())
	properties[ruleKey] = object{
		"description": "Each rule gives one class of outcome its own delay; the first that matches counts.",
		"type":        "array",
		"items": object{
			"type": "object", "additionalProperties": false, "required": []string{"when", "backoff"},
			"properties": schemas(ruleKeys()),
		},
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

func schemas(keys []Key) object {
	all := object{}
	for _, k := range keys {
		all[k.Name] = k.schema()
	}
	return all
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
	case keyCondition:
		s["anyOf"], s["examples"] = oneCondition(), []any{k.Example}
	case keyConditions:
		list := object{"type": "array", "items": object{"anyOf": oneCondition()}}
		s["anyOf"], s["examples"] = append(oneCondition(), list), []any{[]any{k.Example}}
	}
	return s
}

func oneCondition() []object {
	const help = "A list such as 1,75,100-120,SIGSEGV,signal,timeout,any, or an expression."
	return []object{
		{"type": "string", "pattern": `\S`, "description": help},
		{"type": "integer", "minimum": 0, "maximum": math.MaxInt32, "description": "An exit code."},
	}
}
