package policies

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	_ "github.com/10f93571/retry/internal/expression"
)

// The copy in docs is what retry policy schema prints: retry policy schema >docs/policy.schema.json makes it anew.
func TestTheSchemaInTheDocs(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.schema.json"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/policy.schema.json is not what retry policy schema prints: %v", err)
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("policy.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("policy.json") // it knows the draft's own schema, and holds this one to it
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate returns what the schema has against a file.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	values := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(instance)
}

// checked returns what retry has against a file.
func checked(text string) error {
	file, mistakes := parse("c.toml", []byte(text))
	return joined(file.Check(mistakes))
}

// An editor with the schema accepts what retry accepts, and finds what a schema can.
func TestTheSchemaAgrees(t *testing.T) {
	schema := compiledSchema(t)
	tests := []struct {
		text string
		good bool
	}{
		{"", true},
		{exampleInDocs(t), true},
		{"[policy.x]", true},
		{"[policy.x]\nattempts = 0\nbackoff = \"aws\"\njitter = \"±30%\"\ntimeout = 1.5\nbudget = \"1w2d\"\nkill-after = 0", true},
		{"[policy.x]\nretry-on = 75\nstop-on = \"2\"\nsuccess-on = [0, \"3\"]", true},
		{"[policy.x]\nbackoff = \"expr:15 + n^4\"", true},
		{"[[policy.x.rule]]\nwhen = 75\nbackoff = \"lock-busy\"", true},
		{"[policy.x]\njitter = \"30 %\"", true},
		{"[policy.\"nightly build\"]", true},
		{"[policy.\" nightly\"]", false},
		{"[policy.\"nightly \"]", false},
		{"[policy.\" \"]", false},
		{"[policy.x]\nretry-on = \" \"", false},
		{"[policy.x]\nretry-on = 4294967296", false},
		{"[policy.x]\ntimeout = 99999999999", false},
		{"polcy = 1", false},
		{"[policy]\nattempts = 5", false},
		{"[policy.\"\"]", false},
		{"[policy.\"a/b\"]", false},
		{"[policy.\"a\\u0007b\"]", false},
		{"[policy.x]\nbackof = \"exp:1s\"", false},
		{"[policy.x]\nretries = 5", false},
		{"[policy.x]\nattempts = -1", false},
		{"[policy.x]\nattempts = \"5\"", false},
		{"[policy.x]\nattempts = 1.5", false},
		{"[policy.x]\nattempts = 10000000000", false},
		{"[policy.x]\nbackoff = \"5s\"", false},
		{"[policy.x]\nbackoff = 5", false},
		{"[policy.x]\njitter = \"nope\"", false},
		{"[policy.x]\ntimeout = \"soon\"", false},
		{"[policy.x]\ntimeout = \"-5s\"", false},
		{"[policy.x]\ntimeout = -5", false},
		{"[policy.x]\ntimeout = true", false},
		{"[policy.x]\nretry-on = \"\"", false},
		{"[policy.x]\nretry-on = -1", false},
		{"[policy.x]\nretry-on = 1.5", false},
		{"[policy.x.rule]\nwhen = 75\nbackoff = \"lock-busy\"", false},
		{"[[policy.x.rule]]\nwhen = 75", false},
		{"[[policy.x.rule]]\nbackoff = \"lock-busy\"", false},
		{"[[policy.x.rule]]\nwhen = 75\nbackoff = \"lock-busy\"\nattempts = 5", false},
	}
	for _, tt := range tests {
		theirs, ours := validate(t, schema, tt.text), checked(tt.text)
		if (theirs == nil) != tt.good || (ours == nil) != tt.good {
			t.Errorf("%s\nthe schema says %v\nretry says %v", tt.text, theirs, ours)
		}
	}
}

// Each example of the schema is one that retry takes.
func TestTheExamplesOfTheSchema(t *testing.T) {
	for _, k := range fileKeys() {
		if err := checked("[policy.x]\n" + k.line()); err != nil {
			t.Error(err)
		}
	}
}

// exampleInDocs is the file that docs/policy-file.md shows.
func exampleInDocs(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy-file.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```toml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/policy-file.md shows no file")
	}
	return text
}
