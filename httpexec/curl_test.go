package httpexec

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/runner"
)

// likeCurl is one request as curl's command line asks for it, and as a task does. In both, URL is the server's, without a slash behind it,
// HOST is its host and port, and DIR is where the files are.
type likeCurl struct {
	name    string
	curl    string // separated by |
	request runner.Request
}

func aPart(text string) []runner.Part { return []runner.Part{{Text: []byte(text)}} }

func lines(text ...string) []string { return text }

// curlTable is what people ask of curl. The comparison leaves out the order of headers, User-Agent unless it is given, and Expect.
var curlTable = []likeCurl{
	{"GET", "URL/path?q=1", runner.Request{}},
	{"no path", "URL", runner.Request{}},
	{"no scheme, and a fragment", "HOST/path?q=1#part", runner.Request{URL: "HOST/path?q=1#part"}},
	{"dot segments", "URL/a/./b/../c//d/..", runner.Request{URL: "URL/a/./b/../c//d/.."}},
	{"codes stay", "URL/a%2Fb%20c%2e/!$&'()*+,;=:@?x=%2f+%zz[1]{x}", runner.Request{URL: "URL/a%2Fb%20c%2e/!$&'()*+,;=:@?x=%2f+%zz[1]{x}"}},
	{"HEAD", "-I|URL/path", runner.Request{Method: "HEAD"}},
	{"DELETE", "-X|DELETE|URL/path", runner.Request{Method: "DELETE"}},
	{"data", "-d|a=b&c=d|URL/path", runner.Request{Method: "POST", Body: aPart("a=b&c=d")}},
	{"empty data", "-d||URL/path", runner.Request{Method: "POST", Body: aPart("")}},
	{"DELETE with empty data", "-X|DELETE|-d||URL/path", runner.Request{Method: "DELETE", Body: aPart("")}},
	{"GET with data", "-X|GET|-d|a=b|URL/path", runner.Request{Method: "GET", Body: aPart("a=b")}},
	{"data of a file", "-d|@DIR/lines|URL/path", runner.Request{Method: "POST", Body: []runner.Part{{File: "DIR/lines", Strip: true}}}},
	{"a file as it is", "--data-binary|@DIR/lines|URL/path", runner.Request{Method: "POST", Body: []runner.Part{{File: "DIR/lines"}}}},
	{"pieces", "-d|a=b|-d|@DIR/lines|URL/path", runner.Request{Method: "POST",
		Body: []runner.Part{{Text: []byte("a=b&")}, {File: "DIR/lines", Strip: true}}}},
	{"encoded", "--data-urlencode|n=a b+c~\u00e9/&|URL/path", runner.Request{Method: "POST",
		Body: []runner.Part{{Text: []byte("n=")}, {Text: []byte("a b+c~\u00e9/&"), Encode: true}}}},
	{"an encoded file", "--data-urlencode|n@DIR/lines|URL/path", runner.Request{Method: "POST",
		Body: []runner.Part{{Text: []byte("n=")}, {File: "DIR/lines", Encode: true}}}},
	{"-G", "-G|-d|a=b|-d|c=d|URL/path?q=1#part", runner.Request{Get: true, URL: "URL/path?q=1#part", Body: aPart("a=b&c=d")}},
	{"-G without a query", "-G|--data-urlencode|a=b c|URL/path", runner.Request{Get: true,
		Body: []runner.Part{{Text: []byte("a=")}, {Text: []byte("b c"), Encode: true}}}},
	{"JSON", `-H|Content-Type: application/json|-H|Accept: application/json|--data-binary|{"a":1}|URL/path`, runner.Request{Method: "POST",
		Header: lines("Content-Type: application/json", "Accept: application/json"), Body: aPart(`{"a":1}`)}},
	{"PUT of a file", "-T|DIR/lines|URL/path", runner.Request{Method: "PUT", Header: lines("Content-Type:"),
		Body: []runner.Part{{File: "DIR/lines"}}}},
	{"in chunks", "-H|Transfer-Encoding: chunked|-d|a=b|URL/path", runner.Request{Method: "POST", Header: lines("Transfer-Encoding: chunked"),
		Body: aPart("a=b")}},
	{"form", "-F|a=b|-F|c=d;type=text/x|URL/path", runner.Request{Method: "POST", Boundary: "curl's",
		Body: []runner.Part{{Name: "a", Text: []byte("b")}, {Name: "c", Text: []byte("d"), Type: "text/x"}}}},
	{"form with files", `-F|f=@DIR/lines|-F|p=@DIR/page.HTML;filename=a"b.png|-F|t=<DIR/page.HTML|-F|n=@DIR/lines;type=a/b|URL/path`,
		runner.Request{Method: "POST", Boundary: "curl's", Body: []runner.Part{
			{Name: "f", File: "DIR/lines", FileName: "lines", Type: "*"}, {Name: "p", File: "DIR/page.HTML", FileName: `a"b.png`, Type: "*"},
			{Name: "t", File: "DIR/page.HTML", Type: "*"}, {Name: "n", File: "DIR/lines", FileName: "lines", Type: "a/b"}}}},
	{"user", "-u|me:p:w|URL/path", runner.Request{User: "me:p:w"}},
	{"the URL's user", "http://m%40e:p%3aw@HOST/path", runner.Request{URL: "http://m%40e:p%3aw@HOST/path"}},
	{"both users", "-u|me:pw|http://you:wp@HOST/path", runner.Request{User: "me:pw", URL: "http://you:wp@HOST/path"}},
	{"a user, and a header instead", "-u|me:pw|-H|authorization: Bearer x|URL/path",
		runner.Request{User: "me:pw", Header: lines("authorization: Bearer x")}},
	{"agent", "-A|mine|URL/path", runner.Request{Header: lines("User-Agent: mine")}},
	{"no agent", "-A||URL/path", runner.Request{Header: lines("User-Agent:")}},
	{"headers", "-H|X-Up: a|-H|x-low:b|-H|x-low:c|-H|X-Empty;|-H|X-None:|-H|Accept:|URL/path",
		runner.Request{Header: lines("X-Up: a", "x-low:b", "x-low:c", "X-Empty;", "X-None:", "Accept:")}},
	{"a host", "-H|host: virtual|URL/path", runner.Request{Header: lines("host: virtual")}},
	{"no type", "-H|content-type:|-d|a=b|URL/path", runner.Request{Method: "POST", Header: lines("content-type:"), Body: aPart("a=b")}},
	{"unix socket", "--unix-socket|DIR/socket|http://service.example/path",
		runner.Request{URL: "http://service.example/path", Network: runner.Network{UnixSocket: "DIR/socket"}}},
	{"resolved", "--resolve|service.example:PORT:127.0.0.1|http://service.example:PORT/path", runner.Request{
		URL: "http://service.example:PORT/path", Network: runner.Network{Resolve: lines("service.example:PORT:127.0.0.1")}}},
	{"proxy", "-x|me:p%40w@HOST|http://service.example/a%2Fb?q=1", runner.Request{
		URL: "http://service.example/a%2Fb?q=1", Network: runner.Network{Proxy: "me:p%40w@HOST"}}},
}

// The same request of curl and of ours is the same on the wire.
func TestLikeCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl to compare with: ", err)
	}
	for _, tt := range curlTable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.compare(t, curl)
		})
	}
}

func (l likeCurl) compare(t *testing.T, curl string) {
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "lines"), []byte("a\r\nb c&\n"), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "page.HTML"), []byte("<p>"), 0o600))
	s := l.listen(t, dir)
	args := strings.Split("-q|-sS|-g|--max-time|20|-H|Expect:|"+l.curl, "|")
	for i := range args {
		args[i] = s.filled(dir, args[i])
	}
	command := exec.Command(curl, args...) //nolint:gosec // it is curl
	command.Env = []string{"HOME=" + dir}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	e := sending(t, "GET", "URL/path", nil)
	e.Request, e.Network = l.task(s, dir), nil
	if o := execute(t, e); o.Exit != 0 {
		t.Fatalf("%+v", o)
	}
	s.saw(2)
	if theirs, ours := comparable(s.requests[0]), comparable(s.requests[1]); theirs != ours {
		t.Errorf("curl sends\n%q\nand retry\n%q", theirs, ours)
	}
}

// listen starts a server for both, where the request wants it.
func (l likeCurl) listen(t *testing.T, dir string) *server {
	answer := replies(okReply)
	if l.request.Method == http.MethodHead {
		answer = replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	if l.request.Network.UnixSocket == "" {
		return serve(t, answer, answer)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip(err)
	}
	return serveOn(t, listener, nil, []script{answer, answer})
}

// task fills in what the table leaves out, and takes over the boundary that curl has made up.
func (l likeCurl) task(s *server, dir string) *runner.Request {
	r := l.request
	if r.Method == "" {
		r.Method = "GET"
	}
	if r.URL == "" {
		r.URL = strings.Split(l.curl, "|")[strings.Count(l.curl, "|")]
	}
	r.URL = s.filled(dir, r.URL)
	r.Network.Proxy, r.Network.UnixSocket = s.filled(dir, r.Network.Proxy), s.filled(dir, r.Network.UnixSocket)
	r.Network.Resolve = slices.Clone(r.Network.Resolve)
	for i := range r.Network.Resolve {
		r.Network.Resolve[i] = s.filled(dir, r.Network.Resolve[i])
	}
	r.Body = slices.Clone(r.Body)
	for i := range r.Body {
		r.Body[i].File = s.filled(dir, r.Body[i].File)
		if r.Body[i].Type == "*" {
			r.Body[i].Type = FormType(&r.Body[i])
		}
	}
	if r.Boundary != "" {
		_, rest, _ := strings.Cut(s.requests[0], "boundary=")
		r.Boundary, _, _ = strings.Cut(rest, "\r\n")
	}
	ok(s, Stamp(&r))
	return &r
}

func (s *server) filled(dir, text string) string {
	_, port, _ := net.SplitHostPort(s.address())
	return strings.NewReplacer("URL", "http://"+s.address(), "HOST", s.address(), "PORT", port, "DIR", dir).Replace(text)
}

// defaultAgent is who sent it, where nobody says otherwise.
var defaultAgent = regexp.MustCompile(`^User-Agent: (curl/.*|test)$`)

// comparable sorts the headers, and leaves out what need not be the same.
func comparable(request string) string {
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	var kept []string
	for i, line := range strings.Split(head, "\r\n") {
		name, text, found := strings.Cut(line, ":")
		if i > 0 && found {
			line = name + ": " + strings.TrimSpace(text)
		}
		if !defaultAgent.MatchString(line) && name != "Proxy-Connection" {
			kept = append(kept, line)
		}
	}
	slices.Sort(kept[1:])
	return strings.Join(kept, "\r\n") + "\r\n\r\n" + body
}
