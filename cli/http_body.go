package cli

import (
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/10f93571/retry/task"
)

// bodyFlags say what is sent, in the words of curl.
type bodyFlags struct {
	Data          data `short:"d"`
	DataRaw       data
	DataBinary    data
	DataURLEncode data   `name:"data-urlencode"`
	JSON          data   `name:"json"`
	Form          data   `short:"F"`
	UploadFile    string `short:"T"`
	Get           bool   `short:"G"`
}

// data are the values of a flag for data, each with where it stood: curl joins those of all flags in their order.
type data []datum

type datum struct {
	place int // less than that of those that follow
	text  string
}

// Decode implements kong.MapperValue.
func (d *data) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("data")
	if err == nil {
		*d = append(*d, datum{-ctx.Scan.Len(), token.String()})
	}
	return err
}

// piece is a datum and how its flag has it read.
type piece struct {
	datum
	read func(text string) ([]task.Part, error)
}

func (f *bodyFlags) into(r *task.Request) error {
	kinds := 0
	for _, given := range []bool{len(f.Data)+len(f.DataRaw)+len(f.DataBinary)+len(f.DataURLEncode)+len(f.JSON) > 0, len(f.Form) > 0, f.UploadFile != ""} {
		if given {
			kinds++
		}
	}
	if kinds > 1 {
		return errors.New("data, a form (-F) and a file to upload (-T) exclude each other\nhint: give one of them")
	}
	r.Get = f.Get
	switch {
	case len(f.Form) > 0:
		return f.form(r)
	case f.UploadFile != "":
		return f.upload(r)
	case kinds > 0:
		return f.data(r)
	}
	r.Method = "GET"
	return nil
}

// data joins the values of the flags for data.
func (f *bodyFlags) data(r *task.Request) error {
	var pieces []piece
	for _, kind := range []struct {
		values data
		read   func(string) ([]task.Part, error)
	}{{f.Data, stripped}, {f.DataRaw, literal}, {f.DataBinary, binary}, {f.DataURLEncode, encoded}, {f.JSON, binary}} {
		for _, d := range kind.values {
			pieces = append(pieces, piece{d, kind.read})
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return a.place - b.place })
	for i, piece := range pieces {
		if i > 0 && len(f.JSON) == 0 {
			r.Body = append(r.Body, task.Part{Text: []byte("&")})
		}
		parts, err := piece.read(piece.text)
		if err != nil {
			return err
		}
		r.Body = append(r.Body, parts...)
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

func (f *bodyFlags) upload(r *task.Request) error {
	part, err := filePart(f.UploadFile)
	r.Body, r.Method = []task.Part{part}, "PUT"
	// The file has no type that we know of, and data has one.
	r.Header = append(r.Header, unlessGiven(r, "Content-Type:")...)
	if f.UploadFile != task.StdinFile {
		r.URL = named(r.URL, filepath.Base(part.File))
	}
	return err
}

// named gives a URL that ends with a directory the name of a file in it.
func named(address, name string) string {
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

// unlessGiven is a header line, unless a line of the user's own is about the same.
func unlessGiven(r *task.Request, line string) []string {
	if slices.ContainsFunc(r.Header, func(own string) bool { return headerName(own) == headerName(line) }) {
		return nil
	}
	return []string{line}
}

func (f *bodyFlags) form(r *task.Request) error {
	if f.Get {
		return errors.New("-G puts data into the URL, and a form (-F) has no place there\nhint: -d instead of -F")
	}
	for _, d := range f.Form {
		part, err := formPart(d.text)
		if err != nil {
			return err
		}
		r.Body = append(r.Body, part)
	}
	random, err := uuid.NewRandom()
	r.Boundary, r.Method = "------------------------"+strings.ReplaceAll(random.String(), "-", "")[:16], "POST"
	return err
}

func literal(text string) ([]task.Part, error) {
	return []task.Part{{Text: []byte(text)}}, nil
}

// stripped reads the value of -d.
func stripped(text string) ([]task.Part, error) {
	parts, err := binary(text)
	parts[0].Strip = parts[0].File != ""
	return parts, err
}

func binary(text string) ([]task.Part, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return literal(text)
	}
	part, err := filePart(name)
	return []task.Part{part}, err
}

// encoded reads the value of --data-urlencode: what stands before the first = or @ is sent as it is.
func encoded(text string) ([]task.Part, error) {
	at := strings.IndexAny(text, "=@")
	if at < 0 {
		return []task.Part{{Text: []byte(text), Encode: true}}, nil
	}
	var parts []task.Part
	name, rest := text[:at], text[at+1:]
	if name != "" {
		parts = append(parts, task.Part{Text: []byte(name + "=")})
	}
	if text[at] == '=' {
		return append(parts, task.Part{Text: []byte(rest), Encode: true}), nil
	}
	part, err := filePart(rest)
	part.Encode = true
	return append(parts, part), err
}

// filePart names a file, or stdin.
func filePart(name string) (part task.Part, err error) {
	switch name {
	case "":
		err = errors.New("an @ without the name of a file\nhint: @FILE, or @- for stdin; --data-raw sends an @ as it is")
	case task.StdinFile:
		part.File = name
	default:
		part.File, err = absolute(name)
	}
	return part, err
}
