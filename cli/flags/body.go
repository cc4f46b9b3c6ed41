package flags

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/10f93571/retry/httpexec/request"
)

// BodyFlags say what is sent.
type BodyFlags struct {
	Data          Data   `short:"d" group:"Body" placeholder:"DATA" help:"Send this; several are joined with &. @FILE is read, @- is stdin; their line ends are left out."`
	DataRaw       Data   `group:"Body" placeholder:"DATA" help:"The same, and an @ means nothing."`
	DataBinary    Data   `group:"Body" placeholder:"DATA" help:"The same as -d, with all bytes of a file as they are."`
	DataURLEncode Data   `name:"data-urlencode" group:"Body" placeholder:"DATA" help:"Percent-encoded: TEXT, NAME=TEXT, @FILE or NAME@FILE."`
	JSON          Data   `name:"json" group:"Body" placeholder:"DATA" help:"As --data-binary, with the headers of JSON."`
	Form          Data   `short:"F" group:"Body" placeholder:"NAME=CONTENT" help:"A part of a multipart form: NAME=TEXT, NAME=@FILE,FILE… (uploads), NAME=<FILE (its text); ;type= and ;filename= may follow."`
	UploadFile    string `short:"T" group:"Body" placeholder:"FILE" help:"PUT this file; - is stdin. A URL that ends with / gets its name."`
	Get           bool   `short:"G" group:"Body" help:"Put the data into the URL's query, and GET that."`
}

// Data holds the values of one flag. Their places on the command line say in which order curl joins those of all flags.
type Data []datum

type datum struct {
	place int // increases from left to right
	text  string
}

// Decode implements kong.MapperValue.
func (d *Data) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("data")
	if err == nil {
		*d = append(*d, datum{-ctx.Scan.Len(), token.String()})
	}
	return err
}

func (f *BodyFlags) set(r *request.Request) error {
	data := len(f.Data)+len(f.DataRaw)+len(f.DataBinary)+len(f.DataURLEncode)+len(f.JSON) > 0
	form, upload := len(f.Form) > 0, f.UploadFile != ""
	r.Get = f.Get
	switch {
	case data && form, data && upload, form && upload:
		return errors.New("data, a form (-F) and a file to upload (-T) exclude each other\nhint: give one of them")
	case form:
		return f.form(r)
	case upload:
		return f.upload(r)
	case data:
		return f.data(r)
	}
	r.Method = "GET"
	return nil
}

// data makes the body of the values of all data flags.
func (f *BodyFlags) data(r *request.Request) error {
	type piece struct {
		place int
		parts []request.Part
	}
	var pieces []piece
	for _, kind := range []struct {
		values Data
		read   func(string) ([]request.Part, error)
	}{{f.Data, stripped}, {f.DataRaw, literal}, {f.DataBinary, binary}, {f.DataURLEncode, encoded}, {f.JSON, binary}} {
		for _, d := range kind.values {
			parts, err := kind.read(d.text)
			if err != nil {
				return err
			}
			pieces = append(pieces, piece{d.place, parts})
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return a.place - b.place })
	for i, piece := range pieces {
		if i > 0 && len(f.JSON) == 0 {
			r.Body = append(r.Body, request.Part{Text: []byte("&")})
		}
		r.Body = append(r.Body, piece.parts...)
	}
	r.Method = "POST"
	if f.Get {
		r.Method = "GET"
	}
	if len(f.JSON) > 0 {
		kind := "application/json"
		setDefault(r, "Content-Type", &kind)
		setDefault(r, "Accept", &kind)
	}
	return nil
}

func (f *BodyFlags) upload(r *request.Request) error {
	part, err := filePart(f.UploadFile)
	r.Body, r.Method, r.Upload = []request.Part{part}, "PUT", true
	setDefault(r, "Content-Type", new(string)) // data has a default type; that of a file is not known
	if f.UploadFile != request.StdinFile {
		r.URL = withFileName(r.URL, filepath.Base(part.File))
	}
	return err
}

// withFileName appends the name of a file to a URL that ends with a directory.
func withFileName(address, name string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	switch {
	case strings.ContainsAny(rest, "?#"):
		return address
	case !strings.Contains(rest, "/"):
		return address + "/" + url.PathEscape(name)
	case strings.HasSuffix(rest, "/"):
		return address + url.PathEscape(name)
	}
	return address
}

func (f *BodyFlags) form(r *request.Request) error {
	if f.Get {
		return errors.New("-G puts data into the URL, and a form (-F) has no place there\nhint: -d instead of -F")
	}
	for _, d := range f.Form {
		parts, err := formParts(d.text)
		if err != nil {
			return err
		}
		r.Body = append(r.Body, parts...)
	}
	r.Boundary, r.Method = newBoundary(), "POST"
	return nil
}

func newBoundary() string {
	return "------------------------" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
}

func literal(text string) ([]request.Part, error) {
	return []request.Part{{Text: []byte(text)}}, nil
}

// stripped reads the value of -d, which drops the line ends of a file.
func stripped(text string) ([]request.Part, error) {
	parts, err := binary(text)
	parts[0].Strip = parts[0].File != ""
	return parts, err
}

func binary(text string) ([]request.Part, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return literal(text)
	}
	part, err := filePart(name)
	return []request.Part{part}, err
}

// encoded reads the value of --data-urlencode: what stands before the first = or @ is sent as it is.
func encoded(text string) ([]request.Part, error) {
	at := strings.IndexAny(text, "=@")
	if at < 0 {
		return []request.Part{{Text: []byte(text), Encode: true}}, nil
	}
	var parts []request.Part
	name, rest := text[:at], text[at+1:]
	if name != "" {
		parts = append(parts, request.Part{Text: []byte(name + "=")})
	}
	if text[at] == '=' {
		return append(parts, request.Part{Text: []byte(rest), Encode: true}), nil
	}
	part, err := filePart(rest)
	part.Encode = true
	return append(parts, part), err
}

// filePart returns the part that is read from a file, or from stdin.
func filePart(name string) (part request.Part, err error) {
	switch name {
	case "":
		err = errors.New("an @ without the name of a file" +
			"\nhint: @FILE, or @- for stdin; --data-raw sends an @ as it is")
	case request.StdinFile:
		part.File = name
	default:
		part.File, err = absolute(name)
	}
	return part, err
}

// formParts reads the value of -F: NAME=TEXT, NAME=@FILE,FILE… or NAME=<FILE. After a text and each file may stand
// ;type=TYPE and ;filename=NAME.
func formParts(text string) (parts []request.Part, err error) {
	name, content, ok := strings.Cut(text, "=")
	if !ok {
		return nil, fmt.Errorf("-F: invalid part %q: want NAME=CONTENT"+
			"\nhint: -F name=text, or -F name=@FILE for an upload", text)
	}
	files, group := []string{content}, ""
	if strings.HasPrefix(content, "@") {
		if files = splitUnquoted(content[1:], ','); len(files) > 1 {
			group = newBoundary()
		}
		for i := range files {
			files[i] = "@" + files[i]
		}
	}
	for _, file := range files {
		part, err := formPart(name, file)
		if err != nil {
			return nil, err
		}
		part.Group = group
		parts = append(parts, part)
	}
	return parts, nil
}

func formPart(name, content string) (request.Part, error) {
	fields := splitUnquoted(content, ';')
	part, err := formContent(fields[0])
	part.Name = name
	for _, a := range fields[1:] {
		switch key, v, _ := strings.Cut(a, "="); strings.TrimSpace(strings.ToLower(key)) {
		case "type":
			part.Type = unquoted(v)
		case "filename":
			part.FileName = unquoted(v)
		default:
			return part, fmt.Errorf("-F %s: invalid attribute %q: want type= or filename="+
				"\nhint: a semicolon in a text stands in double quotes: -F 'name=\"a;b\"'", name, strings.TrimSpace(a))
		}
	}
	if part.Type == "" {
		part.Type = request.FormType(&part)
	}
	return part, err
}

func formContent(content string) (part request.Part, err error) {
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

// splitUnquoted splits at a separator outside of double quotes.
func splitUnquoted(text string, separator byte) (fields []string) {
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			fields, start = append(fields, text[start:i]), i+1
		}
	}
	return append(fields, text[start:])
}

// unquoted removes the double quotes around a value.
func unquoted(text string) string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[1 : len(text)-1])
}
