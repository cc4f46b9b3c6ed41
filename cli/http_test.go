package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/httpexec/request"
)

// requestOf returns the request of a command line, without retry http.
func requestOf(t *testing.T, words ...string) (*request.Request, error) {
	t.Helper()
	command := &httpCommand{}
	if _, err := newTestParser(t, "http", command).Parse(nil, words); err != nil {
		return nil, err
	}
	return command.Build(command.URL[0])
}

// A flag that retry http has gets no hint.
func TestCurlHintsLeaveKnownFlagsAlone(t *testing.T) {
	p := newTestParser(t, "http", &httpCommand{})
	for name := range p.Known() {
		if as, hint := flags.Habit("http", name); as+hint != "" && !otherTools(name) {
			t.Errorf("--%s: got the hint %q for a flag that there is", name, as+hint)
		}
	}
	for _, line := range []string{"-fsSL h", "h -o -O", "-- -O", "-H -w h", "-ofile-O h", "--json --retry h", "-sdw h"} {
		if _, err := p.Pair(words(line)); err != nil {
			t.Errorf("%s: got %v, want no error", line, err)
		}
	}
}

// otherTools reports whether a flag is known from others than curl, too: what retry http has comes first.
func otherTools(name string) bool {
	as, hint := flags.Habit("run", name)
	return as+hint != ""
}

// plainRequest returns the request of `retry http URL` after a change.
func plainRequest(change func(*request.Request)) *request.Request {
	r := &request.Request{Method: "GET", URL: "http://h/", KeyTTL: 24 * time.Hour, MaxRetryAfter: time.Hour}
	change(r)
	return r
}

func txt(s string) request.Part { return request.Part{Text: []byte(s)} }

func TestRequestOfFlags(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here := func(name string) string { return filepath.Join(dir, name) }
	post := func(r *request.Request, parts ...request.Part) { r.Method, r.Body = "POST", parts }
	tests := []struct {
		words  string
		change func(*request.Request)
	}{
		{change: func(*request.Request) {}},
		{words: "-XPATCH", change: func(r *request.Request) { r.Method, r.MethodGiven = "PATCH", true }},
		{words: "-I", change: func(r *request.Request) { r.Method, r.Include = "HEAD", true }},
		{words: "-H A:1 --header B:|2,3", change: func(r *request.Request) { r.Header = []string{"A:1", "B: 2,3"} }},
		{words: "-A me", change: func(r *request.Request) { r.Header = []string{"User-Agent: me"} }},
		{words: "-A ''", change: func(r *request.Request) { r.Header = []string{"User-Agent:"} }},
		{words: "-H user-agent:|you -A me", change: func(r *request.Request) { r.Header = []string{"user-agent: you"} }},
		{words: "-u me:secret", change: func(r *request.Request) { r.User = "me:secret" }},
		{words: "-L", change: func(r *request.Request) { r.Network.MaxRedirects = 50 }},
		{words: "-L --max-redirs 3", change: func(r *request.Request) { r.Network.MaxRedirects = 3 }},
		{words: "--max-redirs 3", change: func(*request.Request) {}},
		{words: "-L --max-redirs 0", change: func(r *request.Request) { r.Network.MaxRedirects = -1 }},

		{words: "-d a=1", change: func(r *request.Request) { post(r, txt("a=1")) }},
		{words: "-d a=1 -d b=2", change: func(r *request.Request) { post(r, txt("a=1"), txt("&"), txt("b=2")) }},
		{words: "-d a --data-raw @b --data-binary c -d d", change: func(r *request.Request) {
			post(r, txt("a"), txt("&"), txt("@b"), txt("&"), txt("c"), txt("&"), txt("d"))
		}},
		{words: "-d ''", change: func(r *request.Request) { post(r, txt("")) }},
		{words: "-d @f", change: func(r *request.Request) { post(r, request.Part{File: here("f"), Strip: true}) }},
		{words: "-d @-", change: func(r *request.Request) { post(r, request.Part{File: "-", Strip: true}) }},
		{words: "--data-binary @f", change: func(r *request.Request) { post(r, request.Part{File: here("f")}) }},
		{
			words:  "--data-urlencode a|b",
			change: func(r *request.Request) { post(r, request.Part{Text: []byte("a b"), Encode: true}) },
		},
		{
			words:  "--data-urlencode =a",
			change: func(r *request.Request) { post(r, request.Part{Text: []byte("a"), Encode: true}) },
		},
		{
			words:  "--data-urlencode n=a=b",
			change: func(r *request.Request) { post(r, txt("n="), request.Part{Text: []byte("a=b"), Encode: true}) },
		},
		{
			words:  "--data-urlencode n@f",
			change: func(r *request.Request) { post(r, txt("n="), request.Part{File: here("f"), Encode: true}) },
		},
		{words: "--json {}", change: func(r *request.Request) {
			post(r, txt("{}"))
			r.Header = []string{"Content-Type: application/json", "Accept: application/json"}
		}},
		{words: "--json {} --json 1 -H accept:x", change: func(r *request.Request) {
			post(r, txt("{}"), txt("1"))
			r.Header = []string{"accept:x", "Content-Type: application/json"}
		}},
		{
			words:  "-X PUT -d a",
			change: func(r *request.Request) { post(r, txt("a")); r.Method, r.MethodGiven = "PUT", true },
		},
		{
			words:  "-G -d a -d b",
			change: func(r *request.Request) { r.Body, r.Get = []request.Part{txt("a"), txt("&"), txt("b")}, true },
		},
		{words: "-G -I -d a", change: func(r *request.Request) {
			r.Method, r.Body, r.Get, r.Include = "HEAD", []request.Part{txt("a")}, true, true
		}},
		{words: "-T f", change: func(r *request.Request) {
			r.Method, r.Body, r.Header, r.URL = "PUT", []request.Part{{File: here("f")}}, []string{"Content-Type:"}, "http://h/f"
			r.Upload = true
		}},
		{words: "-T - -H content-type:x", change: func(r *request.Request) {
			r.Method, r.Body, r.Header, r.Upload = "PUT", []request.Part{{File: "-"}}, []string{"content-type:x"}, true
		}},

		{
			words:  "-m 3 --connect-timeout 1.5",
			change: func(r *request.Request) { r.Network.ConnectTimeout = 1500 * time.Millisecond },
		},
		{words: "-x proxy:1", change: func(r *request.Request) { r.Network.Proxy = "proxy:1" }},
		{words: "-x ''", change: func(r *request.Request) { r.Network.NoProxy = pointer("*") }},
		{words: "--noproxy a,b", change: func(r *request.Request) { r.Network.NoProxy = pointer("a,b") }},
		{
			words:  "-k --compressed --http1.1",
			change: func(r *request.Request) { r.Network.Insecure, r.Network.Compressed, r.Network.HTTP1 = true, true, true },
		},
		{words: "--cacert a --cert b --key c --unix-socket d", change: func(r *request.Request) {
			r.Network.CACert, r.Network.Cert, r.Network.Key, r.Network.UnixSocket = here("a"), here("b"), here("c"), here("d")
		}},
		{
			words:  "--resolve h:80:127.0.0.1,[::1]",
			change: func(r *request.Request) { r.Network.Resolve = []string{"h:80:127.0.0.1,[::1]"} },
		},

		{
			words:  "-fsSi -o f",
			change: func(r *request.Request) { r.HideFail, r.Include, r.Output = true, true, here("f") },
		},
		{words: "-o -", change: func(*request.Request) {}},

		{words: "--idempotent", change: func(r *request.Request) { r.Idempotent = true }},
		{words: "--idempotency-key k", change: func(r *request.Request) { r.Keyed = true }},
		{words: "--idempotency-key none", change: func(r *request.Request) { r.KeyStyle = request.KeyNone }},
		{
			words:  "--idempotency-style sf --idempotency-ttl 0",
			change: func(r *request.Request) { r.KeyStyle, r.KeyTTL = request.KeySF, 0 },
		},
		{
			words:  "-H idempotency-key:|k",
			change: func(r *request.Request) { r.Keyed, r.Header = true, []string{"idempotency-key: k"} },
		},
		{words: "--max-retry-after 5m", change: func(r *request.Request) { r.MaxRetryAfter = 5 * time.Minute }},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			got, err := requestOf(t, append(words(tt.words), "http://h/")...)
			if err != nil {
				t.Fatal(err)
			}
			if want := plainRequest(tt.change); !got.SameWork(want) || got.KeyTTL != want.KeyTTL ||
				got.MaxRetryAfter != want.MaxRetryAfter {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// words splits a line at spaces. A bar stands for a space in a word, two quotes for an empty word.
func words(line string) []string {
	list := strings.Fields(line)
	for i, word := range list {
		list[i] = strings.ReplaceAll(strings.ReplaceAll(word, "|", " "), "''", "")
	}
	return list
}

func pointer(s string) *string { return &s }

func TestFormOfFlags(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f.txt")
	for flag, want := range map[string]request.Part{
		`a=b`:                              {Name: "a", Text: []byte("b")},
		`a=`:                               {Name: "a", Text: []byte("")},
		`a=b=c`:                            {Name: "a", Text: []byte("b=c")},
		`a=b;type=text/x`:                  {Name: "a", Text: []byte("b"), Type: "text/x"},
		`a="b;c"`:                          {Name: "a", Text: []byte("b;c")},
		`a="b\"c\\"`:                       {Name: "a", Text: []byte(`b"c\`)},
		`a=@f.txt`:                         {Name: "a", File: file, FileName: "f.txt", Type: "text/plain"},
		`a=@"f.txt"`:                       {Name: "a", File: file, FileName: "f.txt", Type: "text/plain"},
		`a=@f.txt;type=x/y;filename=g`:     {Name: "a", File: file, FileName: "g", Type: "x/y"},
		`a=@f.txt; filename="g;h"`:         {Name: "a", File: file, FileName: "g;h", Type: "text/plain"},
		`a=<f.txt`:                         {Name: "a", File: file},
		`a=@-`:                             {Name: "a", File: "-", FileName: "-"},
		`a=@-;filename=x`:                  {Name: "a", File: "-", FileName: "x"},
		`a=text;filename=x;type=text/html`: {Name: "a", Text: []byte("text"), FileName: "x", Type: "text/html"},
	} {
		r, err := requestOf(t, "-F", flag, "http://h/")
		if err != nil || r.Method != http.MethodPost || len(r.Body) != 1 || !reflect.DeepEqual(r.Body[0], want) {
			t.Errorf("%s: got %+v, %v, want the part %+v", flag, r, err, want)
		}
	}
	one, _ := requestOf(t, "-F", "a=b", "h")
	two, _ := requestOf(t, "-F", "a=b", "h")
	if one.Boundary == two.Boundary || len(one.Boundary) != 40 {
		t.Errorf("got the boundaries %q and %q, want two of 40 characters", one.Boundary, two.Boundary)
	}
}

// An empty value is what a shell variable that is not set leaves.
func TestEmptyValue(t *testing.T) {
	for flag, want := range map[string]string{"-o": "-o names no file",
		"--idempotency-key": "--idempotency-key is empty"} {
		if _, err := requestOf(t, flag, "", "http://h/"); err == nil || !strings.HasPrefix(err.Error(), want+""+
			"\nhint: ") {
			t.Errorf("%s '': got %v, want %q and a hint", flag, err, want)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	for line, want := range map[string]string{
		"-d a -F b=c h":         "exclude each other",
		"-d a -T f h":           "exclude each other",
		"-F a=b -G h":           "-d instead of -F",
		"-F a h":                "want NAME=CONTENT",
		"-F a=b;c=d h":          "want type= or filename=",
		"-I -d a h":             "-G puts the data into the URL",
		"-d @ h":                "without the name of a file",
		"-u me h":               "-u 'USER:{env:NAME}'",
		"--idempotency-key ä h": "--idempotency-key: the idempotency key holds",
		"--idempotency-key a -H idempotency-key:b h": "say the same thing",
		"--idempotency-key a -H Idempotency-Key: h":  "say the same thing",
		"--idempotency-key a -H Idempotency-Key; h":  "say the same thing",
		"--idempotency-key {env:K} h":                "{env:NAME} is not looked up",
		"-H Idempotency-Key:{env:K} h":               "{env:NAME} is not looked up",
		"--idempotency-key NONE h":                   "write none",
		"-H idempotency-key:None h":                  "write none",
		"--idempotency-style xml h":                  "--idempotency-style",
		"--capture both h":                           "--capture",
		"--no-such-flag h":                           "unknown flag",
		"-fsSLO h":                                   "-O: the URL ends with no name of a file\nhint: -o FILE",
		"-X POST -o -w -D head h":                    "unknown flag -D\nhint: -i shows",
		"h --retry-max-time=3":                       "unknown flag --retry-max-time\nhint: -B TIME",
		"--delay 2 --max-delay 30 h":                 "--delay and --max-delay both set --backoff\nhint: ",
		"-a h":                                       "unknown flag -a\nhint: retry http --help",
		"-k-# h":                                     "hint: ",
		"-max-time 3 h":                              "hint: ",
		"-o none/ h":                                 "it is a directory",
	} {
		_, err := requestOf(t, words(line)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%s: got %v, want %q and one hint", line, err, want)
		}
	}
}
