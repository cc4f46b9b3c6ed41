package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/task"
)

// formPart reads the value of -F: NAME=TEXT, NAME=@FILE, NAME=<FILE, and after each ;type=TYPE and ;filename=NAME. What stands in
// double quotes may hold a semicolon.
func formPart(text string) (task.Part, error) {
	name, content, ok := strings.Cut(text, "=")
	if !ok {
		return task.Part{}, fmt.Errorf("-F %q is no NAME=CONTENT\nhint: -F name=text, or -F name=@FILE for an upload", text)
	}
	content, attributes := splitAttributes(content)
	part, err := formContent(content)
	part.Name = name
	for _, a := range attributes {
		switch key, v, _ := strings.Cut(a, "="); strings.TrimSpace(strings.ToLower(key)) {
		case "type":
			part.Type = unquoted(v)
		case "filename":
			part.FileName = unquoted(v)
		default:
			return part, fmt.Errorf("-F %s: %q is neither type= nor filename=\nhint: a semicolon in a text stands in double quotes: -F 'name=\"a;b\"'", name, strings.TrimSpace(a))
		}
	}
	if part.Type == "" {
		part.Type = httpexec.FormType(&part)
	}
	return part, err
}

func formContent(content string) (part task.Part, err error) {
	file, isUpload := strings.CutPrefix(content, "@")
	text, isText := strings.CutPrefix(content, "<")
	switch {
	case isUpload:
		if part, err = filePart(unquoted(file)); err == nil {
			part.FileName = filepath.Base(part.File)
		}
	case isText:
		part, err = filePart(unquoted(text))
	default:
		part.Text = []byte(unquoted(content))
	}
	return part, err
}

// splitAttributes takes apart what semicolons separate, outside of double quotes.
func splitAttributes(text string) (content string, attributes []string) {
	var fields []string
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ';' && !quoted:
			fields, start = append(fields, text[start:i]), i+1
		}
	}
	fields = append(fields, text[start:])
	return fields[0], fields[1:]
}

// unquoted takes the double quotes off a value that begins with one.
func unquoted(text string) string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[1 : len(text)-1])
}
