// Package site_test builds the site of docs/, follows its links, and searches in it with a browser.
package site_test

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// buildSite returns the folder of a new site. Where Hugo would have to be compiled first, which takes minutes, the test is skipped, unless
// TEST_SITE=required.
func buildSite(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the site")
	}
	script, err := os.ReadFile("build")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`hugo_version=(\S+)`).FindSubmatch(script)
	gopath, err := exec.Command("go", "env", "GOPATH", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Fields(string(gopath))
	tool := filepath.Join(filepath.SplitList(env[0])[0], "hugo", string(version[1])+"-"+env[1], "hugo")
	if _, err := os.Stat(tool); err != nil && os.Getenv("TEST_SITE") != "required" {
		t.Skip("Hugo is not compiled yet: make site")
	}
	site := filepath.Join(t.TempDir(), "site")
	if said, err := exec.Command("bash", "build", site).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return site
}

var (
	reference = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
	named     = regexp.MustCompile(`\sid="([^"]*)"`)
)

// Every page of docs is in the site, every link of it leads somewhere, and nothing is loaded from elsewhere.
func TestLinksOfTheSite(t *testing.T) {
	site := os.DirFS(buildSite(t))
	ids, links := map[string][]string{}, map[string][]string{}
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		for _, m := range named.FindAllSubmatch(text, -1) {
			ids[name] = append(ids[name], string(m[1]))
		}
		for _, m := range reference.FindAllSubmatch(text, -1) {
			links[name] = append(links[name], string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, targets := range links {
		for _, target := range targets {
			if problem := follow(site, ids, page, target); problem != "" {
				t.Errorf("%s: the link %s: %s", page, target, problem)
			}
		}
	}
	for _, page := range []string{"index.html", "running.html", "policies/index.html", "policies/exp.html", "decisions/names.html"} {
		if len(links[page]) < 20 {
			t.Errorf("%s: got %d links, want at least those of the menu", page, len(links[page]))
		}
	}
	sources, err := filepath.Glob("../*.md")
	if err != nil || len(sources) < 15 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		name := strings.Replace(strings.TrimSuffix(filepath.Base(source), ".md"), "README", "index", 1) + ".html"
		if len(links[name]) == 0 {
			t.Errorf("%s: got no page %s, want one", source, name)
		}
	}
}

// follow says what is wrong with a link, or nothing.
func follow(site fs.FS, ids map[string][]string, page, target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.IsAbs():
		return "" // a link of a text, since the template has no others but the repository's
	}
	name := page
	if u.Path != "" {
		name = path.Join(path.Dir(page), u.Path)
	}
	if _, err := fs.Stat(site, name); err != nil {
		return err.Error()
	}
	if u.Fragment != "" && !slices.Contains(ids[name], u.Fragment) {
		return "there is no such heading"
	}
	return ""
}

// The search finds a section by words of its text, from files, without a server; a click leads there.
func TestSearch(t *testing.T) {
	site := buildSite(t)
	browser := startBrowser(t)
	do(t, browser, chromedp.Navigate("file://"+site+"/policies/exp.html"))
	for words, want := range map[string]string{
		"retry-after replay":  "http.html",
		"idempotency-key":     "http.html",
		"RETRY_LAST_EXIT":     "running.html#what-the-command-finds-in-its-environment",
		"phase jitter spread": "running.html#backoff-and-jitter",
	} {
		found := evaluate[[]string](t, browser, `(() => {
			const input = document.querySelector('#search');
			input.value = `+"`"+words+"`"+`;
			input.dispatchEvent(new Event('input'));
			return [...document.querySelectorAll('#found a')].map((a) => a.getAttribute('href'));
		})()`)
		if !slices.ContainsFunc(found, func(href string) bool { return strings.HasPrefix(href, "../"+want) }) {
			t.Errorf("%q: got %q, want %s among them", words, found, want)
		}
	}
	nothing := evaluate[string](t, browser, `(() => {
		const input = document.querySelector('#search');
		input.value = 'xyzzy retry';
		input.dispatchEvent(new Event('input'));
		return document.querySelector('#found').textContent;
	})()`)
	if want := "No page has all of these words."; nothing != want {
		t.Errorf("got %q, want %q", nothing, want)
	}
}

// No page is wider than a telephone: what is wide scrolls in its own box.
func TestPagesAreNarrow(t *testing.T) {
	site := buildSite(t)
	browser := startBrowser(t)
	pages, err := filepath.Glob(site + "/*.html")
	more, err2 := filepath.Glob(site + "/*/*.html")
	if pages = append(pages, more...); err != nil || err2 != nil || len(pages) < 40 {
		t.Fatal(len(pages), err, err2)
	}
	for _, page := range pages {
		do(t, browser, chromedp.Navigate("file://"+page))
		if width := evaluate[int](t, browser, `document.documentElement.scrollWidth`); width > 390 {
			t.Errorf("%s: got a width of %d, want 390 at most", strings.TrimPrefix(page, site), width)
		}
	}
}

// startBrowser starts headless Chromium with a window as narrow as a telephone. Without Chromium the test is skipped, unless
// TEST_CHROMIUM=required.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	var binary string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			binary = found
			break
		}
	}
	if binary == "" && os.Getenv("TEST_CHROMIUM") == "required" {
		t.Fatal("chromium is not in the PATH, and TEST_CHROMIUM=required")
	} else if binary == "" {
		t.Skip("chromium is not in the PATH")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.Headless}
	for _, flag := range []string{"no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	patient, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(patient, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	telephone := emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 800, DeviceScaleFactor: 1, Mobile: true}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, telephone); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func do(t *testing.T, browser context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(browser, steps...); err != nil {
		t.Fatal(err)
	}
}

func evaluate[T any](t *testing.T, browser context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(browser, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}
