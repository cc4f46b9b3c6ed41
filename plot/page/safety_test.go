package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A setting can be shared by its address, and what the address says is text, whatever it is.
func TestAddress(t *testing.T) {
	b := open(t, request("exp:1s/full"))
	b.do(chromedp.Focus(chromedp.CSS(".sliders input")), chromedp.KeyEvent(kb.ArrowRight))
	b.until("location.hash.includes('b=exp')")
	was, fragment := b.cards(), eval[string](b, "location.hash")
	b.load(fragment)
	if is := b.cards(); fmt.Sprint(is) != fmt.Sprint(was) {
		t.Errorf("%s: got\n%v, want\n%v", fragment, is, was)
	}
	b.load("#tasks=5&seed=3&b=exp:3s&j=full&n=4&l=%3Cimg+src%3Dx+onerror%3Dhacked%3D1%3E%3C%2Ftitle%3E&b=%3Cscript%3Ehacked%3D1%3C%2Fscript%3E&j=%22%3E&n=x")
	if got := eval[string](b, "document.querySelector('.card title').textContent"); got != "<img src=x onerror=hacked=1></title>" {
		t.Errorf("the label is %q", got)
	}
	if said := eval[string](b, "document.querySelector('.card:nth-child(2) .error').textContent"); !strings.Contains(said, "<script>hacked=1</script>") {
		t.Errorf("got error %q", said)
	}
	if eval[bool](b, "typeof hacked !== 'undefined' || !!document.querySelector('img, main script')") {
		t.Error("a text of the address became a part of the page")
	}
	b.quiet()
}

// The label of a policy is text in the page, too; it ends no element, and starts no script.
func TestLabelIsText(t *testing.T) {
	r := request("exp:1s/full")
	r.Specs[0].Label = `</script><script>hacked=1</script>{{engine}}<img src=x onerror=hacked=1>`
	b := open(t, r)
	if got := b.cards()[0].Title; got != r.Specs[0].Label {
		t.Errorf("the title is %q", got)
	}
	if eval[bool](b, "typeof hacked !== 'undefined' || !!document.querySelector('img')") {
		t.Error("a label became a part of the page")
	}
	b.quiet()
}

// Should a text become a script one day, or something ask the network: the page's policy refuses both.
func TestPolicyRefuses(t *testing.T) {
	b := open(t, request("exp:1s/full"))
	eval[chromedp.Void](b, `(() => {
		window.refused = [];
		document.addEventListener("securitypolicyviolation", (e) => window.refused.push(e.effectiveDirective));
		const script = document.createElement("script");
		script.textContent = "window.hacked = 1";
		document.body.append(script);
		document.body.insertAdjacentHTML("beforeend", "<img src='https://example.invalid/x.png'>");
		fetch("https://example.invalid/").catch(() => {});
	})()`)
	b.until("window.refused.length === 3")
	if got := eval[string](b, "window.refused.sort().join(' ') + ' ' + typeof hacked"); got != "connect-src img-src script-src-elem undefined" {
		t.Errorf("refused: %s", got)
	}
}
