// Package page writes studies as one self-contained page with sliders: the pictures, and the code that drew them,
// compiled to WebAssembly. Nothing is loaded, and nothing leaves it.
package page

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/10f93571/retry/plot/page/model"
)

var (
	//go:embed page.html
	frame string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed engine.wasm.gz
	engine string
)

// Write writes the page of a request. It shows the first pictures at once, also where the sliders do not work.
func Write(w io.Writer, r model.Request) error {
	start, err := json.Marshal(r) // < and & come out escaped: no label ends the script element
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	hash := sha256.Sum256([]byte(script))
	_, err = strings.NewReplacer(
		"{{script-hash}}", "sha256-"+base64.StdEncoding.EncodeToString(hash[:]),
		"{{style}}", style,
		"{{cards}}", cards(r.Answer()),
		"{{start}}", string(start),
		"{{engine}}", base64.StdEncoding.EncodeToString([]byte(engine)),
		"{{script}}", script,
	).WriteString(w, frame)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// cards are the policies before the sliders are there.
func cards(a model.Answer) string {
	var b strings.Builder
	for _, s := range a.Specs {
		b.WriteString(`<article class="card">` + "\n" + `<div class="picture-box">` + s.SVG + "</div>\n" +
			`<table class="figures"><tbody>` + "\n")
		for _, f := range s.Figures {
			fmt.Fprintf(&b, "<tr><th>%s</th><td>%s</td></tr>\n", html.EscapeString(f.Name), html.EscapeString(f.Value))
		}
		b.WriteString("</tbody></table>\n</article>\n")
	}
	return b.String()
}
