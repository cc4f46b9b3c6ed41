package page_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	_ "github.com/10f93571/retry/internal/expression"
	"github.com/10f93571/retry/plot/page/model"
)

// request is a page of some specs.
func request(specs ...string) model.Request {
	r := model.Request{Tasks: 100, Seed: 1<<63 + 1} // a number of JavaScript would lose the 1
	for _, s := range specs {
		curve, jitter, _ := strings.Cut(s, "/")
		r.Specs = append(r.Specs, model.Spec{Backoff: curve, Jitter: jitter, Attempts: 9})
	}
	return r
}

// card is what a card shows, as its reader sees it.
type card struct {
	Backoff, Jitter, Title string
	Figures, Retries       [][]string
	Paths                  []string
}

func (b *tab) cards() (cards []card) {
	b.Helper()
	const script = `JSON.stringify([...document.querySelectorAll(".card")].map((c) => ({
		Backoff: c.querySelector(".backoff").value, Jitter: c.querySelector(".jitter").value, Title: c.querySelector("title").textContent,
		Figures: [...c.querySelectorAll(".figures tr")].map((r) => [...r.cells].map((d) => d.textContent)),
		Retries: [...c.querySelectorAll(".retries tbody tr")].map((r) => [...r.cells].map((d) => d.textContent)),
		Paths: [...c.querySelectorAll("path, polygon")].map((p) => p.getAttribute("d") || p.getAttribute("points")),
	})))`
	if err := json.Unmarshal([]byte(eval[string](b, script)), &cards); err != nil {
		b.Fatal(err)
	}
	return cards
}

// checkNative compares the figures that the page shows with those that this program computes. The engine may draw in an
// older way.
func (b *tab) checkNative(r model.Request) []card {
	b.Helper()
	shown := b.cards()
	r.Specs = r.Specs[:0]
	for _, c := range shown {
		r.Specs = append(r.Specs, model.Spec{Backoff: c.Backoff, Jitter: c.Jitter, Attempts: len(c.Retries) + 1})
	}
	for i, want := range r.Answer().Specs {
		var figures [][]string
		for _, f := range want.Figures {
			figures = append(figures, []string{f.Name, f.Value})
		}
		if got := fmt.Sprint(shown[i].Figures); got != fmt.Sprint(figures) {
			b.Errorf("%s: the figures are\n%s, want\n%s", want.Backoff, got, fmt.Sprint(figures))
		}
		if got := fmt.Sprint(shown[i].Retries); got != fmt.Sprint(want.Retries) {
			b.Errorf("%s: the retries are\n%s, want\n%s", want.Backoff, got, fmt.Sprint(want.Retries))
		}
	}
	return shown
}

// A slider moves by the keyboard, the curve and the figures move with it, and are those that retry itself computes.
func TestSliderMovesThePicture(t *testing.T) {
	r := request("exp:1s..1m/phase", "list:1s,2s,5s/30%", "expr:15 + n^4 + rand(30)*n/none", "sidekiq/none")
	b := open(t, r)
	before := b.checkNative(r)
	for i, index := range []int{0, 3} { // the initial delay of the first card, the percentage of the second
		slider := fmt.Sprintf(`.card:nth-child(%d) .sliders input[type=range][data-index="%d"]`, i+1, index)
		b.do(chromedp.Focus(chromedp.CSS(slider)))
		for range 3 {
			was := eval[string](b, fmt.Sprintf("document.querySelector(%q).getAttribute('aria-valuetext')", slider))
			b.do(chromedp.KeyEvent(kb.ArrowRight))
			b.until(fmt.Sprintf("document.querySelector(%q).getAttribute('aria-valuetext') !== %q", slider, was))
		}
	}
	after := b.checkNative(r)
	for i := range 2 {
		if after[i].Backoff == before[i].Backoff && after[i].Jitter == before[i].Jitter {
			t.Errorf("card %d: got %s/%s as before", i+1, after[i].Backoff, after[i].Jitter)
		}
		if slices.Equal(after[i].Paths, before[i].Paths) || fmt.Sprint(after[i].Figures) == fmt.Sprint(before[i].Figures) {
			t.Errorf("card %d: got the picture or the figures of before", i+1)
		}
	}
	if after[2].Backoff != before[2].Backoff || fmt.Sprint(after[2].Figures) != fmt.Sprint(before[2].Figures) {
		t.Error("a card whose sliders did not move has changed")
	}
	b.quiet()
}

// The common sliders change every card; a card can be added and removed, another curve chosen, another spec written.
func TestControls(t *testing.T) {
	r := request("exp:1s..1m/phase")
	b := open(t, r)
	b.do(chromedp.Focus(chromedp.CSS("#tasks")), chromedp.KeyEvent(kb.ArrowRight))
	b.until("document.querySelector('#tasks-value').textContent === '101'")
	r.Tasks = 101
	b.checkNative(r)

	b.do(chromedp.Click(chromedp.CSS("#add")))
	b.until("document.querySelectorAll('.card').length === 2")
	b.set(".card:nth-child(2) .curve", "buckets:3", "change")
	b.until("document.querySelector('.card:nth-child(2) .backoff').value === 'buckets:3'")
	b.set(".card:nth-child(1) .curve", "grpc", "change")
	b.until("document.querySelector('.card:nth-child(1) .backoff').value === 'exp:1s*1.6..2m'")
	b.set(".card:nth-child(1) .jitter-kind", "add:5s", "change")
	b.until("document.querySelector('.card:nth-child(1) .jitter').value === 'add:5s'")
	b.checkNative(r)

	b.set(".card:nth-child(1) .backoff", "exp:2s..1s", "input")
	b.until("!document.querySelector('.card:nth-child(1) .error').hidden")
	if said := eval[string](b, "document.querySelector('.error').textContent"); !strings.Contains(said,
		"the cap 1s is below the first delay 2s") {
		t.Errorf("got error %q", said)
	}
	b.set(".card:nth-child(1) .backoff", "zizq", "input")
	b.until("document.querySelector('.card:nth-child(1) .error').hidden")

	b.do(chromedp.Click(chromedp.CSS(".card:nth-child(1) .remove")))
	b.until("document.querySelectorAll('.card').length === 1 && !location.hash.includes('poly')")
	if left := b.checkNative(r); left[0].Backoff != "buckets:3" {
		t.Errorf("got %s left", left[0].Backoff)
	}
	b.quiet()
}

// set gives a field a value, as a user's browser does.
func (b *tab) set(field, value, event string) {
	b.Helper()
	eval[chromedp.Void](b, fmt.Sprintf(
		"(() => { const f = document.querySelector(%q); f.value = %q; f.dispatchEvent(new Event(%q, { bubbles: true })); })()", field, value, event))
}

// The checkbox takes the cap away, and the slider beside it rests.
func TestNoCap(t *testing.T) {
	b := open(t, request("exp:1s..1m/full"))
	const none = `document.querySelector(".sliders input[type=checkbox]")`
	eval[chromedp.Void](b, none+".click()")
	b.until("document.querySelector('.backoff').value === 'exp:1s'")
	if !eval[bool](b, `document.querySelector('.sliders [type=range][data-index="2"]').disabled`) {
		t.Error("the slider of a cap that there is not can be moved")
	}
	eval[chromedp.Void](b, none+".click()")
	b.until("/^exp:1s\\.\\.\\w+$/.test(document.querySelector('.backoff').value)")
	b.quiet()
}

// While somebody writes, the field is left alone; when it is left, it has the form that a spec has. A slider moved
// before has no say.
func TestTyping(t *testing.T) {
	b := open(t, request("exp:1s/full"))
	b.do(chromedp.Focus(chromedp.CSS(".sliders input")), chromedp.KeyEvent(kb.ArrowRight))
	b.until("document.querySelector('.backoff').value !== 'exp:1s'")
	b.do(chromedp.Focus(chromedp.CSS(".backoff")))
	eval[chromedp.Void](b, "document.activeElement.select()")
	b.do(chromedp.KeyEvent("exp:90"))
	b.until("document.querySelector('.picture title').textContent === 'exp:1m30s/full'")
	if got := eval[string](b, "document.activeElement.value"); got != "exp:90" {
		t.Errorf("while it was written the field became %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	b.until("document.querySelector('.backoff').value === 'exp:1m30s'")
	b.checkNative(request())
	b.quiet()
}

// A page that was made with more policies than can be added keeps all of them when it is loaded again.
func TestManyPolicies(t *testing.T) {
	var specs []string
	for i := range 8 {
		specs = append(specs, fmt.Sprintf("constant:%ds/none", i+1))
	}
	b := open(t, request(specs...))
	b.set("#tasks", "3", "input")
	b.until("location.hash.includes('tasks=3')")
	b.load(eval[string](b, "location.hash"))
	if n := eval[int](b, "document.querySelectorAll('.card').length"); n != len(specs) {
		t.Errorf("got %d of %d policies left", n, len(specs))
	}
	if !eval[bool](b, "document.querySelector('#add').disabled") {
		t.Error("there is room for one more")
	}
}
