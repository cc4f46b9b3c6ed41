package request

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func TestKeyLifetime(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		request Request
		want    time.Duration
	}{
		"POST":                       {request: Request{Method: "POST", KeyTTL: day}, want: day},
		"POST without a key":         {request: Request{Method: "POST", KeyTTL: day, KeyStyle: KeyNone}},
		"POST, remembered for ever":  {request: Request{Method: "POST"}},
		"GET":                        {request: Request{Method: "GET", KeyTTL: day}},
		"GET with a key":             {request: Request{Method: "GET", Keyed: true, KeyTTL: day}, want: day},
		"in lower case no known GET": {request: Request{Method: "get", KeyTTL: day}, want: day},
	} {
		if got := tt.request.KeyLifetime(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for url, want := range map[string]string{
		"https://h/a":           "https://h/a",
		"https://h/a?page=1#b":  "https://h/a",
		"https://h/a#b?c":       "https://h/a",
		"https://ann:pw@h/a?b":  "https://ann:***@h/a",
		"https://ann:{env:P}@h": "https://ann:{env:P}@h",
	} {
		got := (&Request{Method: "PUT", URL: url}).Endpoint()
		if want := (task.Endpoint{Method: "PUT", URL: want}); got != want {
			t.Errorf("%s: got %+v, want %+v", url, got, want)
		}
	}
}

func TestMaskURL(t *testing.T) {
	tests := [][2]string{
		{"http://host/path", ""},
		{"http://me@host/", ""},
		{"http://host:8080/@someone:else@x", ""},
		{"http://host/?mail=me:x@y", ""},
		{"http://[::1]:80/@a", ""},
		{"http://me:{env:PW}@host/{env:X}", ""},
		{"{env:ME}:{env:PW}@host/", ""},
		{"http://{env:HOST}:80/@me", ""},
		{"", ""},

		{"http://me:pw@host/path?q#f", "http://me:***@host/path?q#f"},
		{"http://:pw@host/", "http://:***@host/"},
		{"me:pw@host", "me:***@host"},
		{"http://me:p@w:x@host/@y", "http://me:***@host/@y"},
		{"http://me:{env:PW}x@host/", "http://me:***@host/"},
		{"http://me:{env:}@host/", "http://me:***@host/"},
		{"http://{env:ME}:pw@host/", "http://{env:ME}:***@host/"},
		{"socks5h://me:pw@[::1]:1/", "socks5h://me:***@[::1]:1/"},
		{"http://me:pw@ho st:x/", "http://me:***@ho st:x/"},
		{"http://me:p/w@host/", "http://me:***@host/"},
		{"http://me:p?w#x@host/", "http://me:***@host/"},
		{"http://[me:p/w@host/", "http://[me:***@host/"},
		{"me:p://w@host/", "me:***@host/"},
		{"http:/me:pw@host/", "http:***@host/"},
		{"//me:pw@host/", "//me:***@host/"},
		{"http:\\\\me:pw@host/", "http:***@host/"},
	}
	for _, tt := range tests {
		want := tt[1]
		if want == "" {
			want = tt[0]
		}
		if got := MaskURL(tt[0]); got != want {
			t.Errorf("%s: got %s, want %s", tt[0], got, want)
		}
	}
}

// FuzzMaskURL writes a password into several places of a URL that may be malformed. It may be shown only if the URL has
// no password for any reader.
func FuzzMaskURL(f *testing.F) {
	for _, password := range []string{"secret", "a/b", "p@ss", "12/34", "a://b", "{env:X", "[x]", " ", "\x00", "%zz"} {
		f.Add("http://", "me", password)
		f.Add("", "", password)
	}
	f.Fuzz(func(t *testing.T, before, user, password string) {
		const end = "@host.example/path"
		before = strings.NewReplacer("@", "", ":", "", "/", "", "?", "", "#", "").Replace(before)
		user = strings.NewReplacer("@", "", ":", "", "/", "", "?", "", "#", "").Replace(user)
		if literals(password) == "" || strings.HasPrefix(password, "//") || // user:// is a scheme
			strings.Contains("http:// "+before+"://"+user+":"+Masked+end, password) {
			return
		}
		for _, url := range []string{user + ":" + password + end, "http://" + user + ":" + password + end,
			before + "://" + user + ":" + password + end} {
			if masked := MaskURL(url); strings.Contains(masked, password) && !withoutPassword(url) {
				t.Errorf("%q: got %q, want a masked password", url, masked)
			}
		}
	})
}

// withoutPassword reports whether a URL is valid up to its path and has no password.
func withoutPassword(text string) bool {
	_, rest, found := strings.Cut(text, "://") // whatever the scheme
	if !found {
		rest = text
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	user, host := "", rest
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, host = rest[:at], rest[at+1:]
	}
	_, password, _ := strings.Cut(user, ":")
	u, err := url.Parse("http://" + host)
	return err == nil && u.Host != "" && password == ""
}

func TestMaskUser(t *testing.T) {
	for user, want := range map[string]string{
		"me": "me", "me:pw": "me:***", "me:p:w": "me:***", ":": ":", "{env:ME}:{env:PW}": "{env:ME}:{env:PW}",
		"me:{env:PW}!": "me:***",
		"{env:BOTH}":   "{env:BOTH}",
		"sk_live_1:":   "***:", "{env:KEY}:": "{env:KEY}:", "a{env:KEY}:": "***:",
	} {
		if got := MaskUser(user); got != want {
			t.Errorf("%s: got %s, want %s", user, got, want)
		}
	}
}

func TestMaskHeader(t *testing.T) {
	tests := [][2]string{ // the second is empty where the line is shown as it is
		{"X-Other: secret", ""}, {"Authorization:", ""}, {"Cookie;", ""}, {"no colon", ""},
		{"Authorization: Bearer {env:TOKEN}", ""}, {"authorization: {env:ALL}", ""}, {"X-Api-Key: {env:A}{env:B}", ""},
		{"Cookie: session={env:S}; other={env:O}", ""}, {"Cookie: {env:ALL}", ""},

		{"Authorization: Bearer abc", "Authorization: Bearer ***"}, {"authorization:basic abc", "authorization: basic ***"},
		{"Authorization: abc", "Authorization: ***"}, {"Authorization: abc def", "Authorization: ***"},
		{"Authorization: Bearer {env:A}bc", "Authorization: Bearer ***"},
		{"Authorization: Bearer {env:}", "Authorization: Bearer ***"},
		{"Proxy-Authorization: Basic abc", "Proxy-Authorization: Basic ***"},
		{"COOKIE: a={env:A}; b=c", "COOKIE: ***"}, {"Set-Cookie: a", "Set-Cookie: ***"},
		{"X-Api-Key : abc", "X-Api-Key : ***"},
	}
	for _, tt := range tests {
		want := tt[1]
		if want == "" {
			want = tt[0]
		}
		if got := maskHeader(tt[0]); got != want {
			t.Errorf("%s: got %s, want %s", tt[0], got, want)
		}
		if got := HasLiteralSecret(tt[0]); got != (tt[1] != "") {
			t.Errorf("%s: got literal secret %v, want %v", tt[0], got, !got)
		}
	}
}

func TestMaskReferer(t *testing.T) {
	for line, want := range map[string]string{
		"Referer: http://me:pw@host/": "Referer: http://me:***@host/", "referer:me:pw@host": "referer:me:***@host",
		"Referer;":                   "Referer;",
		"Referer: http://host/a:b@c": "Referer: http://host/a:b@c",
	} {
		if got := maskHeader(line); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

func FuzzMaskHeader(f *testing.F) {
	f.Add("Authorization", "Bearer ", "secret")
	f.Add("cookie", "a=", "b;c")
	f.Fuzz(func(t *testing.T, name, before, secret string) {
		if !isSecretHeader(name) || literals(secret) != secret || len(strings.TrimSpace(secret)) < 4 ||
			strings.Contains(strings.ToLower(strings.Join(schemes, " ")), strings.ToLower(strings.TrimSpace(secret))) {
			return
		}
		if masked := maskHeader(name + ": " + before + secret); strings.Contains(masked, strings.TrimSpace(secret)) {
			t.Errorf("got %q, want a masked secret", masked)
		}
	})
}

func TestCutReference(t *testing.T) {
	tests := []struct {
		text, before, name, after string
		found                     bool
	}{
		{"a{env:B}c{env:D}", "a", "B", "c{env:D}", true},
		{"{env:ProgramFiles(x86)}", "", "ProgramFiles(x86)", "", true},
		{"plain", "plain", "", "", false},
		{"{env:}", "{env:}", "", "", false},
		{"{env:A", "{env:A", "", "", false},
		{"{env:a b}{env:C}", "{env:a b}{env:C}", "", "", false},
		{"{ENV:A}", "{ENV:A}", "", "", false},
	}
	for _, tt := range tests {
		before, name, after, found := cutReference(tt.text)
		if before != tt.before || name != tt.name || after != tt.after || found != tt.found {
			t.Errorf("%s: got %q, %q, %q, %v", tt.text, before, name, after, found)
		}
	}
	if got, want := blankReferences("a{env:B}:{env:C}@{env:"), "axxxxxxx:xxxxxxx@{env:"; got != want {
		t.Errorf("blanked: got %s, want %s", got, want)
	}
}

func TestTitle(t *testing.T) {
	r := Request{Method: "POST", URL: "http://me:pw@host/"}
	if got := r.Title(); got != "POST http://me:***@host/" {
		t.Errorf("got title %q, want a masked password", got)
	}
}

// A request of the API names no longest delay, and nobody else would bound what a server asks for.
func TestMaxServerDelay(t *testing.T) {
	for _, tt := range []struct {
		request Request
		want    time.Duration
	}{
		{Request{}, 0}, {Request{MaxRetryAfter: time.Minute}, time.Minute}, {Request{Guarded: true}, GuardedDelay},
		{Request{MaxRetryAfter: time.Minute, Guarded: true}, time.Minute},
	} {
		if got := tt.request.MaxServerDelay(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.request, got, tt.want)
		}
	}
}
