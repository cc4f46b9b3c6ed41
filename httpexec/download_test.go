package httpexec

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// full is the content of the file on the servers of these tests. begun is a reply that is cut after "hello".
const (
	full   = "hello, world"
	tagged = "ETag: \"a\"\r\n"
	dated  = "Last-Modified: Mon, 02 Mar 2026 10:00:00 GMT\r\nDate: Mon, 02 Mar 2026 11:00:00 GMT\r\n"
)

func begun(header string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\nhello", header, len(full))
}

// rest is a reply with a part of the file.
func rest(contentRange, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nContent-Range: %s\r\n%sContent-Length: %d\r\n\r\n%s", contentRange,
		header, len(body), body)
}

var asksFor = regexp.MustCompile(`(?mi)^(?:Range|If-Range): (.*)\r$`)

// ranges returns the range that a request asks for, and its condition.
func ranges(request string) string {
	var all []string
	for _, found := range asksFor.FindAllStringSubmatch(request, -1) {
		all = append(all, found[1])
	}
	slices.Reverse(all) // they are in the order of their names
	return strings.Join(all, " ")
}

// A body that was cut is continued if the server allows it, and else requested again from its start.
func TestDownloadContinues(t *testing.T) {
	whole := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(full), full)
	unknown := "HTTP/1.1 200 OK\r\n" + tagged + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	fits := rest("bytes 5-11/12", tagged, ", world")
	tests := []struct {
		name   string
		first  string
		asks   string // the second attempt
		second string
		exits  string
		body   string // after the second attempt
	}{
		{"by its tag", begun(tagged), `bytes=5- "a"`, fits, "18 0", full},
		{"by its date", begun(dated), "bytes=5- Mon, 02 Mar 2026 10:00:00 GMT", rest("bytes 5-11/12", "", ", world"), "18 0",
			full},
		{"packed", begun(tagged + "Content-Encoding: gzip\r\n"), `bytes=5- "a"`,
			rest("bytes 5-11/12", tagged+"Content-Encoding: GZIP\r\n", ", world"), "18 0", full},
		{"its size was unknown", unknown, `bytes=5- "a"`, fits, "18 0", full},
		{"the file has changed", begun(tagged), `bytes=5- "a"`,
			"HTTP/1.1 200 OK\r\nETag: \"b\"\r\nContent-Length: 3\r\n\r\nnew", "18 0", "new"},
		{"ranges are ignored", begun(tagged), `bytes=5- "a"`, whole, "18 0", full},

		{"no validator", begun(""), "", whole, "18 0", full},
		{"a weak tag", begun("ETag: W/\"a\"\r\n" + dated), "", whole, "18 0", full},
		{"a tag without quotes", begun("ETag: a\r\n"), "", whole, "18 0", full},
		{"a date that is too new",
			begun("Last-Modified: Mon, 02 Mar 2026 10:00:00 GMT\r\nDate: Mon, 02 Mar 2026 10:00:59 GMT\r\n"), "", whole, "18 0",
			full},
		{"a date, but no clock", begun("Last-Modified: Mon, 02 Mar 2026 10:00:00 GMT\r\n"), "", whole, "18 0", full},
		{"the server knows no ranges", begun(tagged + "Accept-Ranges: none\r\n"), "", whole, "18 0", full},
		{"nothing came yet", "HTTP/1.1 200 OK\r\n" + tagged + "Content-Length: 12\r\n\r\n", "", whole, "18 0", full},
		{"it was an error", "HTTP/1.1 500 No\r\n" + tagged + "Content-Length: 12\r\n\r\nhello", "", whole, "22 0", full},

		{"another part", begun(tagged), `bytes=5- "a"`, rest("bytes 4-11/12", "", "o, world"), "18 18", ""},
		{"a later part", begun(tagged), `bytes=5- "a"`, rest("bytes 6-11/12", "", " world"), "18 18", ""},
		{"of another size", begun(tagged), `bytes=5- "a"`, rest("bytes 5-12/13", "", ", world!"), "18 18", ""},
		{"of another file", begun(tagged), `bytes=5- "a"`, rest("bytes 5-11/12", "ETag: \"b\"\r\n", ", world"), "18 18", ""},
		{"of a file without a tag", begun(tagged), `bytes=5- "a"`, rest("bytes 5-11/12", "", ", WORLD"), "18 18", ""},
		{"of another date", begun(dated), "bytes=5- Mon, 02 Mar 2026 10:00:00 GMT",
			rest("bytes 5-11/12", "Last-Modified: Mon, 02 Mar 2026 10:00:01 GMT\r\n", ", world"), "18 18", ""},
		{"packed, the first was not", begun(tagged), `bytes=5- "a"`,
			rest("bytes 5-11/12", tagged+"Content-Encoding: gzip\r\n", ", world"), "18 18", ""},
		{"not packed, the first was", begun(tagged + "Content-Encoding: gzip\r\n"), `bytes=5- "a"`,
			rest("bytes 5-11/12", tagged, ", world"), "18 18", ""},
		{"packed in another way", begun(dated + "Content-Encoding: gzip\r\n"), "bytes=5- Mon, 02 Mar 2026 10:00:00 GMT",
			rest("bytes 5-11/12", "Content-Encoding: br\r\n", ", world"), "18 18", ""},
		{"no range is named", begun(tagged), `bytes=5- "a"`,
			"HTTP/1.1 206 Partial Content\r\nContent-Length: 7\r\n\r\n, world", "18 18", ""},
		{"several parts", begun(tagged), `bytes=5- "a"`,
			rest("bytes 5-11/12", tagged+"Content-Type: multipart/byteranges; boundary=x\r\n", ", world"), "18 18", ""},
		{"the lengths disagree", begun(tagged), `bytes=5- "a"`, rest("bytes 5-11/12", "", ", worl"), "18 18", ""},
		{"more than announced", begun(tagged), `bytes=5- "a"`,
			"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-11/12\r\n" + tagged + "Transfer-Encoding: chunked\r\n\r\n8\r\n, world!\r\n0\r\n\r\n", "18 18", ""},
		{"nothing is left", unknown, `bytes=5- "a"`,
			"HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nContent-Length: 4\r\n\r\nnone", "18 0", "hello"},
		{"nothing is left of another file", unknown, `bytes=5- "a"`,
			"HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nETag: \"b\"\r\nContent-Length: 0\r\n\r\n", "18 18", ""},
		{"nothing is left, perhaps of another encoding",
			strings.Replace(unknown, tagged, tagged+"Content-Encoding: gzip\r\n", 1), `bytes=5- "a"`,
			"HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n", "18 18", ""},
		{"it has shrunk", begun(tagged), `bytes=5- "a"`,
			"HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n", "18 18", ""},
		{"it is gone", begun(tagged), `bytes=5- "a"`,
			"HTTP/1.1 416 No\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n", "18 18", ""},
		{"a part that is called the whole", begun(tagged), `bytes=5- "a"`,
			strings.Replace(fits, "206 Partial Content", "200 OK", 1), "18 18", ""},
		{"a part that is called the whole of another file", begun(tagged), `bytes=5- "a"`,
			strings.Replace(rest("bytes 5-7/8", "ETag: \"b\"\r\n", "new"), "206 Partial Content", "203 OK", 1), "18 18", ""},
		{"the whole as a part of status 200", begun(tagged), `bytes=5- "a"`,
			strings.Replace(rest("bytes 0-11/12", tagged, full), "206 Partial Content", "200 OK", 1), "18 0", full},
		{"rows of a page with status 200", begun(tagged), `bytes=5- "a"`,
			strings.Replace(rest("items 5-7/9", tagged, "new"), "206 Partial Content", "200 OK", 1), "18 0", "new"},
		{"not modified", begun(tagged), `bytes=5- "a"`, "HTTP/1.1 304 No\r\n" + tagged + "\r\n", "18 18", ""},
		{"no range, for no reason", begun(tagged), `bytes=5- "a"`, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n", "18 18",
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, file := range []bool{false, true} {
				s := serve(t, closes(tt.first), closes(tt.second))
				path := ""
				c := newClient(t, s.url("http"), func(c *client) {
					if file {
						path = c.into("file")
					}
				})
				exits := fmt.Sprint(c.attempt().Exit)
				testkit.Must(t, c.flush(task.Pending))
				o := c.attempt()
				exits += " " + fmt.Sprint(o.Exit)
				s.saw(2)
				if asked := ranges(s.requests[0]) + ranges(s.requests[1]); exits != tt.exits || asked != tt.asks {
					t.Errorf("exits %s, want %s; it asks for %q, want %q: %+v", exits, tt.exits, asked, tt.asks, o)
				}
				if o.Exit != 0 {
					checkBeginsAnew(t, c, o)
					continue
				}
				testkit.Must(t, c.flush(task.Succeeded))
				if file {
					checkFile(t, path, tt.body, "file")
					tt.body = ""
				}
				c.saw(tt.body, "")
			}
		})
	}
}

// A part is refused if the request did not ask for one, unless the reply shows that the part is the whole file.
func TestPartWithoutARequest(t *testing.T) {
	const several = "Content-Type: Multipart/byteranges; boundary=x\r\n"
	for _, tt := range []struct {
		part, header, asked string
		exit                int
	}{
		{"bytes 0-4/12", "", "", 18}, {"bytes 7-11/12", "", "", 18}, {"bytes 7-11/*", "", "", 18},
		{"bytes 0-4/*", "", "", 18}, {"bytes 0-4/5", "", "", 0}, {"bytes 7-11/12", "", "range: bytes=7-", 0},
		{"", "", "", 18}, {"items 0-4/9", "", "", 0}, {"0-4/*", "", "", 0}, {"BYTES 0-3/9", "", "", 18}, {"bytes */5", "", "", 18},
		{"bytes 0-11/12", "", "", 18}, {"bytes 0-4/5", several, "", 18}, {"none", several, "", 18},
		{"none", "", "range: bytes=7-", 0}, {"none", several, "range: bytes=0-1,7-8", 0},
	} {
		for _, file := range []bool{false, true} {
			s := serve(t, closes(rest(tt.part, tt.header, "world")))
			path := ""
			c := newClient(t, s.url("http"), func(c *client) {
				if tt.asked != "" {
					request.Of(c.task).Header = []string{tt.asked}
				}
				if file {
					path = c.into("file")
				}
			})
			o := c.attempt()
			if o.Exit != tt.exit || (tt.exit != 0 && (describe(o.Reply.Default) != "retry" || o.Error != task.ErrorTruncated)) {
				t.Errorf("%s, %q, %q: got %+v, want exit %d", tt.part, tt.header, tt.asked, o, tt.exit)
			}
			if tt.exit == 0 {
				testkit.Must(t, c.flush(task.Succeeded))
			} else {
				testkit.Must(t, c.flush(task.Failed))
			}
			if _, err := os.Stat(path); file && (err == nil) != (tt.exit == 0) {
				t.Errorf("%s, %q: got file %v, want it only after a success", tt.part, tt.header, err)
			}
		}
	}
}

// checkBeginsAnew checks that the next attempt asks for the whole file.
func checkBeginsAnew(t *testing.T, c *client, o task.Outcome) {
	t.Helper()
	if o.Error != task.ErrorTruncated || describe(o.Reply.Default) != "retry" ||
		!strings.Contains(o.Message, "begins anew") {
		t.Errorf("got %+v, %+v, want a truncated reply that is asked for anew", o, o.Reply)
	}
	testkit.Must(t, c.flush(task.Pending))
	s := serve(t, closes(okReply))
	request.Of(c.task).URL = s.url("http")
	if o := c.attempt(); o.Exit != 0 {
		t.Errorf("got %+v, want exit 0", o)
	}
	testkit.Must(t, c.flush(task.Pending))
	s.saw(1)
	if asked := ranges(s.requests[0]); asked != "" {
		t.Errorf("third attempt: got range %q, want none", asked)
	}
}

// What was received is kept through attempts that receive nothing, and through attempts that receive a part of the
// rest.
func TestDownloadInManyAttempts(t *testing.T) {
	s := serve(t,
		closes(begun(tagged)),
		closes(""),
		replies("HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy"),
		closes("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-11/12\r\n"+tagged+"Content-Length: 7\r\n\r\n, w"),
		replies("%s", rest("bytes 8-9/12", tagged, "or")), // as much as it wants to send at a time
		replies("%s", rest("bytes 10-11/12", tagged, "ld")),
	)
	path := ""
	c := newClient(t, s.url("http"), func(c *client) { path = c.into("file") })
	var asked []string
	for i, exit := range []int{18, 52, 22, 18, 18, 0} {
		if o := c.attempt(); o.Exit != exit {
			t.Errorf("attempt %d: got %+v, want exit %d", i+1, o, exit)
		}
		if i < 5 {
			testkit.Must(t, c.flush(task.Pending))
			checkDir(t, filepath.Dir(path), ".file.5b9a39db.part")
		}
	}
	testkit.Must(t, c.flush(task.Succeeded))
	checkFile(t, path, full, "file")
	s.saw(6)
	for _, request := range s.requests {
		asked = append(asked, ranges(request))
	}
	want := `; bytes=5- "a"; bytes=5- "a"; bytes=5- "a"; bytes=8- "a"; bytes=10- "a"`
	if got := strings.Join(asked, "; "); got != want {
		t.Errorf("it asks for %s\nwant %s", got, want)
	}
}

// If a part is shorter than the server announces, or the server does not say how long the file is, the next attempt asks
// for the rest. That nothing is left proves the end.
func TestPartThatIsCutWithoutASize(t *testing.T) {
	s := serve(t,
		closes("HTTP/1.1 200 OK\r\n"+tagged+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
		closes("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-11/*\r\n"+tagged+"Transfer-Encoding: chunked\r\n\r\n2\r\n, \r\n0\r\n\r\n"),
		closes(rest("bytes 7-11/*", tagged, "world")),
		closes("HTTP/1.1 416 No\r\nContent-Range: bytes */12\r\nContent-Length: 0\r\n\r\n"),
	)
	c := newClient(t, s.url("http"), nil)
	for _, exit := range []int{18, 18, 18, 0} {
		if o := c.attempt(); o.Exit != exit {
			t.Errorf("got %+v, want exit %d", o, exit)
		}
		if exit != 0 {
			testkit.Must(t, c.flush(task.Pending))
		}
	}
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw(full, "")
}

// What a killed run has left is continued where the journal has kept its tag since this boot of the machine. When the
// file has changed, the journal has the new tag before the first of the new bytes is written.
func TestDownloadGoesOnAfterAKill(t *testing.T) {
	const packed = "Content-Encoding: gzip\r\n"
	for name, tt := range map[string]struct {
		boot, header, asks, second, body string
		tags                             int // how often it was kept
	}{
		"the same boot": {"1", "", `bytes=5- "a"`, rest("bytes 5-11/12", tagged, ", world"), full, 2},
		"the file changed": {"1", "", `bytes=5- "a"`, "HTTP/1.1 200 OK\r\nETag: \"b\"\r\nContent-Length: 3\r\n\r\nnew", "new",
			3},
		"packed":             {"1", packed, `bytes=5- "a"`, rest("bytes 5-11/12", tagged+packed, ", world"), full, 2},
		"another boot":       {"2", "", "", okReply, "hello", 1},
		"no name for a boot": {"", "", "", okReply, "hello", 1},
	} {
		s := serve(t, closes(begun(tagged+tt.header)), closes(tt.second))
		path, kept := "", []string{}
		keep := func(process string) bool {
			kept = append(kept, process)
			return true
		}
		killed := newClient(t, s.url("http"), func(c *client) { path = c.into("file") })
		killed.Boot = func() string { return "1" }
		killed.Execute(t.Context(), killed.task, runner.Call{Number: 1, Started: keep})
		c := newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Output = path })
		c.Boot = func() string { return tt.boot }
		c.task.Last.Process = kept[len(kept)-1]
		if o := c.Execute(t.Context(), c.task, runner.Call{Number: 2, Started: keep}); o.Exit != 0 {
			t.Errorf("%s: got %+v, want exit 0", name, o)
		}
		testkit.Must(t, c.flush(task.Succeeded))
		checkFile(t, path, tt.body, "file")
		s.saw(2)
		if got := ranges(s.requests[1]); got != tt.asks || len(kept) != tt.tags {
			t.Errorf("%s: got range %q, kept %q, want %q and %d", name, got, kept, tt.asks, tt.tags)
		}
	}
}

// Where the journal could not keep the tag of another version, a kill leaves the earlier tag beside a part of that one.
func TestAPartOfAnotherVersionIsNotContinued(t *testing.T) {
	for _, other := range []string{"ETag: \"b\"\r\n", tagged + "Content-Encoding: gzip\r\n"} {
		s := serve(t, closes(begun(tagged)), closes("HTTP/1.1 200 OK\r\n"+other+"Content-Length: 50\r\n\r\nother"),
			replies(okReply))
		path, kept := "", ""
		killed := newClient(t, s.url("http"), func(c *client) { path = c.into("file") })
		killed.Boot = func() string { return "1" }
		keep := func(text string) bool {
			kept = text
			return true
		}
		locked := func(string) bool { return false }
		killed.Execute(t.Context(), killed.task, runner.Call{Number: 1, Started: keep})
		testkit.Must(t, killed.flush(task.Pending))
		killed.Execute(t.Context(), killed.task, runner.Call{Number: 2, Started: locked})
		c := newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Output = path })
		c.Boot = killed.Boot
		c.task.Last.Process = kept
		if o := c.Execute(t.Context(), c.task, runner.Call{Number: 3, Started: locked}); o.Exit != 0 {
			t.Errorf("got %+v, want exit 0", o)
		}
		testkit.Must(t, c.flush(task.Succeeded))
		checkFile(t, path, "hello", "file")
		checkDir(t, filepath.Dir(path), "file")
		s.saw(3)
		if got := ranges(s.requests[2]); got != "" {
			t.Errorf("%s: got range %q, want none", other, got)
		}
	}
}

// A reply that is never complete is not shown.
func TestDownloadThatNeverEnds(t *testing.T) {
	c := newClient(t, serve(t, closes(begun(tagged)), closes(failedReply)).url("http"), nil)
	c.attempt()
	testkit.Must(t, c.flush(task.Pending))
	c.attempt()
	testkit.Must(t, c.flush(task.Exhausted))
	c.saw("oops", "")
}

// Some requests cannot be continued, and a range of the user's own is not changed.
func TestNoRange(t *testing.T) {
	packed := "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + tagged + "Content-Length: 90\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd"
	for name, tt := range map[string]struct {
		change func(*sender)
		first  string
		asks   string
	}{
		"a POST": {func(e *sender) { e.Request.Method = "POST" }, begun(tagged), ""},
		"a range of the user's": {func(e *sender) { e.Request.Header = []string{"range: bytes=0-"} }, begun(tagged),
			"bytes=0-"},
		"a condition of the user's": {func(e *sender) { e.Request.Header = []string{"If-Range: x"} }, begun(tagged), "x"},
		"unpacked here":             {func(e *sender) { e.Network.Compressed = true }, packed, ""},
		"not packed after all":      {func(e *sender) { e.Network.Compressed = true }, begun(tagged), ""},
	} {
		s := serve(t, closes(tt.first), replies(okReply))
		c := newClient(t, s.url("http"), func(c *client) { tt.change(c.sender) })
		if o := c.attempt(); o.Exit != 18 {
			t.Errorf("%s: got %+v, want exit 18", name, o)
		}
		testkit.Must(t, c.flush(task.Pending))
		c.attempt()
		testkit.Must(t, c.flush(task.Succeeded))
		c.saw("hello", "")
		s.saw(2)
		if got := ranges(s.requests[1]); got != tt.asks {
			t.Errorf("%s: got range %q, want %q", name, got, tt.asks)
		}
	}
}

// Status 304 to a condition of the user's own is the answer to that, also where the rest was asked for.
func TestNotModifiedWhileADownloadContinues(t *testing.T) {
	for _, condition := range []string{"if-none-match: \"b\"", "If-Modified-Since: Mon, 02 Mar 2026 10:00:00 GMT"} {
		s := serve(t, closes(begun(tagged)), replies("HTTP/1.1 304 No\r\nETag: \"b\"\r\n\r\n"))
		c := newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Header = []string{condition} })
		c.attempt()
		testkit.Must(t, c.flush(task.Pending))
		if o := c.attempt(); o.Exit != 0 || o.Reply.Status != 304 {
			t.Errorf("%s: got %+v, want status 304 and exit 0", condition, o)
		}
		s.saw(2)
	}
}

// A redirect may lead each attempt elsewhere. Only the URL that the part came from is asked for the rest: the same tag
// at another URL says nothing about the bytes. That holds within a run, and for what a killed run has left.
func TestDownloadOverARedirect(t *testing.T) {
	other := fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\nHELLO, WORLD", tagged, len(full))
	fits := rest("bytes 5-11/12", tagged, ", world")
	for _, tt := range []struct {
		name, to, asks, second string
		exit                   int
		body                   string
	}{
		{"the same URL", "/v1?key=hunter2", `bytes=5- "a"`, fits, 0, full},
		{"only the fragment differs", "/v1?key=hunter2#a", `bytes=5- "a"`, fits, 0, full},
		{"another path", "/v2?key=hunter2", "", other, 0, "HELLO, WORLD"},
		{"another query", "/v1?key=hunter3", "", other, 0, "HELLO, WORLD"},
		{"a part that was not asked for", "/v2?key=hunter2", "", fits, 18, ""},
	} {
		for _, way := range []string{"stdout", "file", "killed"} {
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				const found = "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
				s := serve(t, replies(found, "/v1?key=hunter2"), closes(begun(tagged)), replies(found, tt.to), closes(tt.second))
				path, kept := "", ""
				call := runner.Call{Number: 1, Started: func(text string) bool {
					kept = text
					return true
				}}
				c := newClient(t, s.url("http"), func(c *client) {
					if way != "stdout" {
						path = c.into("file")
					}
					c.Network.MaxRedirects = 5
					c.Boot = func() string { return "1" }
				})
				c.Execute(t.Context(), c.task, call)
				if path != "" {
					checkNoSecret(t, kept, filepath.Dir(path))
				}
				if way == "killed" {
					c = newClient(t, s.url("http"), func(c *client) { request.Of(c.task).Output = path })
					c.Network.MaxRedirects, c.Boot = 5, func() string { return "1" }
					c.task.Last.Process = kept
				} else {
					testkit.Must(t, c.flush(task.Pending))
				}
				call.Number = 2
				if o := c.Execute(t.Context(), c.task, call); o.Exit != tt.exit {
					t.Errorf("got %+v, want exit %d", o, tt.exit)
				}
				s.saw(4)
				if got := ranges(s.requests[2]) + ranges(s.requests[3]); got != tt.asks {
					t.Errorf("got range %q, want %q", got, tt.asks)
				}
				if tt.exit != 0 {
					return
				}
				testkit.Must(t, c.flush(task.Succeeded))
				if path == "" {
					c.saw(tt.body, "")
				} else {
					checkFile(t, path, tt.body, "file")
				}
			})
		}
	}
}

// checkNoSecret fails if the journal or the name of a part file has the secret of a redirect.
func checkNoSecret(t *testing.T, kept, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	if got := fmt.Sprint(kept, entries); strings.Contains(got, "hunter2") || len(entries) != 1 || kept == "" {
		t.Errorf("got %s, want a state and a part file without the query", got)
	}
}

// What an earlier version of retry has left does not say which URL it came from: it is not continued.
func TestAPartWithoutItsURLIsNotContinued(t *testing.T) {
	if left := download.StateOf(`{"validator":"\"a\"","total":12,"boot":"1"}`, "1"); left != nil {
		t.Errorf("got %+v, want none", left)
	}
}

// Nor is a body whole of which the header tells two lengths: net/http passes over that in HTTP/2.
func TestTwoLengthsOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	const length = "\x0f\x0d\x01" // content-length, of the static table, without indexing
	s := serveTLS(t, a.server(nil, "h2"), http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200+length+"5"+length+"9")
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	}))
	c := newClient(t, s.url("https"), func(c *client) { c.Network.CACert = a.file })
	if o := c.attempt(); o.Exit != exitReceive || o.Error != task.ErrorTruncated {
		t.Errorf("got %+v, want exit 56 and a truncated reply", o)
	}
}

// A body is cut if its HTTP/2 stream is reset.
func TestDownloadOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	const header = status200 + "\x0f\x13\x03\"a\"" // etag, of the static table, without indexing
	s := serveTLS(t, a.server(nil, "h2"), http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, header)
		c.frame(frameData, 0, stream, "hello")
		c.resetStream(stream, codeInternal)
		return false
	}), http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, "\x8a\x0f\x0f\x0bbytes 5-7/8\x0f\x13\x03\"a\"")
		c.frame(frameData, flagEndStream, stream, "!!!")
		return false
	}))
	c := newClient(t, s.url("https"), func(c *client) { c.Network.CACert = a.file })
	if o := c.attempt(); o.Exit != 92 || o.Error != task.ErrorTruncated {
		t.Errorf("got %+v, want exit 92 and a truncated reply", o)
	}
	testkit.Must(t, c.flush(task.Pending))
	if o := c.attempt(); o.Exit != 0 || o.Reply.Status != http.StatusOK {
		t.Errorf("got %+v, %+v, want exit 0 and status 200: retry alone has asked for a part", o, o.Reply)
	}
	testkit.Must(t, c.flush(task.Succeeded))
	c.saw("hello!!!", "")
}
