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
		{text: "", good: true},
		{text: exampleInDocs(t), good: true},
		{text: "[policy.x]", good: true},
		{
			text: "[policy.x]\nattempts = 0\nbackoff = \"aws\"\njitter = \"±30%\"\ntimeout = 1.5\nbudget = \"1w2d\"\nkill-after = 0",
			good: true,
		},
		{text: "[policy.x]\nretry-on = 75\nstop-on = \"2\"\nsuccess-on = [0, \"3\"]", good: true},
		{text: "[policy.x]\nbackoff = \"expr:15 + n^4\"", good: true},
		{text: "[[policy.x.rule]]\nwhen = 75\nbackoff = \"lock-busy\"", good: true},
		{text: "[policy.x]\njitter = \"30 %\"", good: true},
		{text: "[policy.\"nightly build\"]", good: true},
		{text: "[policy.\" nightly\"]", good: false},
		{text: "[policy.\"nightly \"]", good: false},
		{text: "[policy.\" \"]", good: false},
		{text: "[policy.x]\nretry-on = \" \"", good: false},
		{text: "[policy.x]\nretry-on = 4294967296", good: false},
		{text: "[policy.x]\ntimeout = 99999999999", good: false},
		{text: "polcy = 1", good: false},
		{text: "[policy]\nattempts = 5", good: false},
		{text: "[policy.\"\"]", good: false},
		{text: "[policy.\"a/b\"]", good: false},
		{text: "[policy.\"a\\u0007b\"]", good: false},
		{text: "[policy.x]\nbackof = \"exp:1s\"", good: false},
		{text: "[policy.x]\nretries = 5", good: false},
		{text: "[policy.x]\nattempts = -1", good: false},
		{text: "[policy.x]\nattempts = \"5\"", good: false},
		{text: "[policy.x]\nattempts = 1.5", good: false},
		{text: "[policy.x]\nattempts = 10000000000", good: false},
		{text: "[policy.x]\nbackoff = \"5s\"", good: true},
		{text: "[policy.x]\nbackoff = \"exp\"", good: true},
		{text: "[policy.x]\nbackoff = \"poly\"", good: false},
		{text: "[policy.x]\nbackoff = 5", good: false},
		{text: "[policy.x]\njitter = \"nope\"", good: false},
		{text: "[policy.x]\ntimeout = \"soon\"", good: false},
		{text: "[policy.x]\ntimeout = \"-5s\"", good: false},
		{text: "[policy.x]\ntimeout = -5", good: false},
		{text: "[policy.x]\ntimeout = true", good: false},
		{text: "[policy.x]\nretry-on = \"\"", good: false},
		{text: "[policy.x]\nretry-on = -1", good: false},
		{text: "[policy.x]\nretry-on = 1.5", good: false},
		{text: "[policy.x.rule]\nwhen = 75\nbackoff = \"lock-busy\"", good: false},
		{text: "[[policy.x.rule]]\nwhen = 75", good: false},
		{text: "[[policy.x.rule]]\nbackoff = \"lock-busy\"", good: false},
		{text: "[[policy.x.rule]]\nwhen = 75\nbackoff = \"lock-busy\"\nattempts = 5", good: false},
	}
	for _, tt := range tests {
		theirs, ours := validate(t, schema, tt.text), checked(tt.text)
		if (theirs == nil) != tt.good || (ours == nil) != tt.good {
			t.Errorf("%s\ngot %v by the schema\nand %v by retry\nwant no errors: %v", tt.text, theirs, ours, tt.good)
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
