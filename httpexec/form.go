package httpexec

import (
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// formHead is what precedes a part of a form, as curl writes it.
func formHead(boundary string, part request.Part) string {
	var b strings.Builder
	b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data")
	if part.Name != "" {
		b.WriteString(`; name="` + quoteName(part.Name) + `"`)
	}
	if part.FileName != "" {
		b.WriteString(`; filename="` + quoteName(part.FileName) + `"`)
	}
	if part.Type != "" {
		b.WriteString("\r\nContent-Type: " + part.Type)
	}
	return b.String() + "\r\n\r\n"
}

// quoteName follows the multipart/form-data encoding of the HTML standard.
func quoteName(name string) string {
	return strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name)
}

// mediaTypes are those that curl knows.
var mediaTypes = []struct{ ending, kind string }{
	{".gif", "image/gif"}, {".jpg", "image/jpeg"}, {".jpeg", "image/jpeg"}, {".png", "image/png"}, {".svg", "image/svg+xml"},
	{".txt", "text/plain"}, {".htm", "text/html"}, {".html", "text/html"}, {".pdf", "application/pdf"}, {".xml", "application/xml"},
}

// FormType returns the media type that curl gives a part of a form for which the user named none; empty for none.
func FormType(part *request.Part) string {
	kind := ""
	for _, name := range []string{part.FileName, part.File} {
		for _, known := range mediaTypes {
			if kind == "" && strings.HasSuffix(strings.ToLower(name), known.ending) {
				kind = known.kind
			}
		}
	}
	switch {
	case part.FileName == "" && kind == "text/plain":
		return "" // that is what a part without a type is
	case part.FileName != "" && kind == "" && part.File != request.StdinFile:
		return "application/octet-stream"
	}
	return kind
}

// formEncode is curl's --data-urlencode.
func formEncode(text string) string {
	return strings.ReplaceAll(percentEncode(text, " "), " ", "+")
}
