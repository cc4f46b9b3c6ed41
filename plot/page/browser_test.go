package page_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/10f93571/retry/plot/page"
	"github.com/10f93571/retry/plot/page/model"
)

// patience bounds how long a test waits for the browser; a sound run needs a fraction of it.
const patience = 2 * time.Minute

// tab is a page in headless Chromium, and what it did.
type tab struct {
	*testing.T
	ctx  context.Context
	path string

	lock     sync.Mutex
	requests []string
	console  []string
}

// chromium finds the browser. Where there is none the test is skipped, unless TEST_CHROMIUM=required.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds to start")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("TEST_CHROMIUM") == "required" {
		t.Fatal("chromium is not in the PATH, and TEST_CHROMIUM=required")
	}
	t.Skip("chromium is not in the PATH")
	return ""
}

// open writes the page of a request and opens it.
func open(t *testing.T, r model.Request) *tab {
	t.Helper()
	b := start(t, r)
	b.load("")
	return b
}

// start writes the page of a request, and starts a browser.
func start(t *testing.T, r model.Request) *tab {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()),
		chromedp.Headless}
	for _, flag := range []string{
		"no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	patient, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(patient, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx, path: filepath.Join(t.TempDir(), "page.html")}
	b.watch()
	b.write(r)
	return b
}

// watch notes every request, and everything that is said on the console.
func (b *tab) watch() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		b.Fatal(err)
	}
	requests, console := chromedp.Events(b.ctx, network.RequestWillBeSent), chromedp.Console(b.ctx)
	go func() {
		for e, err := range requests {
			if err == nil {
				b.note(&b.requests, e.Request.URL)
			}
		}
	}()
	go func() {
		for m, err := range console {
			if err == nil {
				b.note(&b.console, m.Text)
			}
		}
	}()
}

func (b *tab) note(list *[]string, text string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	*list = append(*list, text)
}

func (b *tab) write(r model.Request) {
	b.Helper()
	file, err := os.Create(b.path)
	if err != nil {
		b.Fatal(err)
	}
	if err := page.Write(file, r); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}

// load opens the page with a fragment, and waits until its sliders are there.
func (b *tab) load(fragment string) {
	b.Helper()
	if notice := b.visit(fragment); notice != "" {
		b.Fatal(notice)
	}
}

// visit returns what the page says where it has no sliders.
func (b *tab) visit(fragment string) string {
	b.Helper()
	address := url.URL{Scheme: "file", Path: b.path}
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address.String()+fragment))
	b.until("document.body.dataset.ready !== undefined || !document.querySelector('#notice').hidden")
	return eval[string](b, "document.querySelector('#notice').textContent")
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// until waits until an expression is true. Just after a navigation the browser may still look for the page that is
// gone: then again.
func (b *tab) until(expression string) {
	b.Helper()
	var err error
	for range 3 {
		if _, err = chromedp.Run(b.ctx, chromedp.Poll[bool](expression)); err == nil || b.ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		b.lock.Lock()
		defer b.lock.Unlock()
		b.Fatalf("%s: %v\nconsole: %q", expression, err, b.console)
	}
}

func eval[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// quiet checks that the page asked nobody for anything, and said nothing on the console.
func (b *tab) quiet() {
	b.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, address := range b.requests {
		if u, err := url.Parse(address); err != nil || address != "about:blank" && u.Path != b.path && u.Scheme != "data" {
			b.Errorf("got a request for %s, want none", address)
		}
	}
	if len(b.requests) == 0 {
		b.Error("not even the page was seen to be asked for: the test would not see a request")
	}
	if len(b.console) > 0 {
		b.Errorf("got %q on the console, want nothing", b.console)
	}
}
