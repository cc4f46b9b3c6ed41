package page_test

import (
	"strings"
	"testing"

	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/10f93571/retry/plot/page"
)

// What the page is made of before any script runs: the picture and the figures that it was made with, and no more than
// 3 MB.
func TestStaticPage(t *testing.T) {
	var text strings.Builder
	r := request("exp:1s/full")
	if err := page.Write(&text, r); err != nil {
		t.Fatal(err)
	}
	static, _, _ := strings.Cut(text.String(), "<template")
	for _, want := range []string{"<noscript>", "exp:1s/full", "<polygon ", r.Answer().Specs[0].Figures[0].Value} {
		if !strings.Contains(static, want) {
			t.Errorf("before the script: got no %s", want)
		}
	}
	if size := text.Len(); size > 3<<20 {
		t.Errorf("got a page of %d bytes", size)
	}
}

// A browser that lacks something says what, and still shows the picture.
func TestWithoutSliders(t *testing.T) {
	for _, missing := range []string{"WebAssembly", "DecompressionStream"} {
		b := start(t, request("exp:1s/full"))
		script := devtools.AddScriptToEvaluateOnNewDocumentParams{Source: "delete window." + missing}
		if _, err := chromedp.Call(b.ctx, devtools.AddScriptToEvaluateOnNewDocument, script); err != nil {
			t.Fatal(err)
		}
		if notice := b.visit(""); !strings.Contains(notice, "need a browser with WebAssembly and DecompressionStream") {
			t.Errorf("without %s: got the notice %q", missing, notice)
		}
		if !eval[bool](b, "!!document.querySelector('.card polygon') && document.querySelector('#common').hidden") {
			t.Errorf("without %s: got no picture, or controls that do nothing", missing)
		}
		b.quiet()
	}
}
