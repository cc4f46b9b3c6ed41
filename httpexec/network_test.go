package httpexec

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
)

func TestReadResolve(t *testing.T) {
	got, err := readResolve(lines("Host.example:443:192.0.2.1", "a:80:[2001:db8::1],192.0.2.2", "+b:1:::1",
		"a:80:192.0.2.3"))
	if want := "map[a:80:[192.0.2.3:80] b:1:[[::1]:1] host.example:443:[192.0.2.1:443]]"; err != nil ||
		fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	for line, says := range map[string]string{
		"-host:443": "not done here", "*:443:192.0.2.1": "not done here", "host": "is not host:port:address",
		":1:192.0.2.1":     "is not",
		"host:x:192.0.2.1": "no port", "host:0:192.0.2.1": "no port", "host:1:name": "an address that is none",
		"host:1:": "an address that is none",
	} {
		if _, err := readResolve(lines(line)); !errors.Is(err, errResolve) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", line, err, says)
		}
	}
}

func TestReadNetwork(t *testing.T) {
	spared := "host"
	environment := func(name string) (string, bool) {
		value, found := map[string]string{"http_proxy": "e:1", "no_proxy": "spared.example", "PW": "p@w"}[name]
		return value, found
	}
	tests := []struct {
		network   request.Network
		url, want string
	}{
		{request.Network{}, "http://host/", "http://e:1"},
		{request.Network{}, "http://spared.example/", ""},
		{request.Network{Proxy: "p:2"}, "https://host/", "http://p:2"},
		{request.Network{Proxy: "p:2"}, "http://spared.example/", ""},
		{request.Network{NoProxy: &spared}, "http://host/", ""},
		{request.Network{NoProxy: new(string)}, "http://spared.example/", "http://e:1"},
		{request.Network{Proxy: "socks5h://me:{env:PW}@p:2"}, "http://host/", "socks5h://me:p%40w@p:2"},
	}
	for _, tt := range tests {
		p := &plan{refs: &request.References{Lookup: environment}}
		testkit.Must(t, p.readNetwork(&tt.network, false))
		u, err := p.proxies.For(parseURL(tt.url))
		if err != nil || u == nil && tt.want != "" || u != nil && u.String() != tt.want {
			t.Errorf("%+v, %s: got %v, %v, want %q", tt.network, tt.url, u, err, tt.want)
		}
	}
	p := &plan{refs: &request.References{}}
	if err := p.readNetwork(&request.Network{Proxy: "{env:UNSET}"}, false); !errors.Is(err, request.ErrReference) {
		t.Errorf("got %v, want %v", err, request.ErrReference)
	}
}

func FuzzReadResolve(f *testing.F) {
	for _, line := range []string{"host:1:192.0.2.1", "+a:2:[::1],::2", "-a:1", "*:1:1.2.3.4", "a:1:", ":::", "a:b:c"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		given, err := readResolve(lines(line))
		if err != nil && !errors.Is(err, errResolve) || err == nil && len(given) != 1 {
			t.Errorf("%q: got %v, %v, want one host and port, or errResolve", line, given, err)
		}
		for place, addresses := range given {
			if _, _, err := net.SplitHostPort(place); err != nil || len(addresses) == 0 {
				t.Errorf("%q: got %v, %v, want a host and port with addresses", line, given, err)
			}
		}
	})
}

func TestProxies(t *testing.T) {
	tests := []struct {
		name        string
		environment string // NAME=value, separated by |
		url         string
		want        string
	}{
		{"none", "", "http://a/", ""},
		{"http", "http_proxy=http://p:3128", "http://a/", "http://p:3128"},
		{"http is not for https", "http_proxy=http://p:3128", "https://a/", ""},
		{"a client's header is no proxy", "HTTP_PROXY=http://p:3128", "http://a/", ""},
		{"https", "https_proxy=p:3128", "https://a/", "http://p:3128"},
		{"https in capitals", "HTTPS_PROXY=p:3128", "https://a/", "http://p:3128"},
		{"lower case goes first", "HTTPS_PROXY=q:1|https_proxy=p:3128", "https://a/", "http://p:3128"},
		{"all", "ALL_PROXY=socks5h://p:1", "http://a/", "socks5h://p:1"},
		{"its own goes before all", "all_proxy=q:1|http_proxy=p:1", "http://a/", "http://p:1"},
		{"an empty one is none", "http_proxy=|all_proxy=p:1", "http://a/", "http://p:1"},
		{"loopback is no exception", "http_proxy=p:1", "http://127.0.0.1:80/", "http://p:1"},
		{"curl's port", "http_proxy=http://p", "http://a/", "http://p:1080"},
		{"the port of https", "http_proxy=https://p", "http://a/", "https://p:443"},
		{"with a password", "http_proxy=http://me:secret@p:1", "http://a/", "http://me:secret@p:1"},

		{"spared", "http_proxy=p|no_proxy=b,a", "http://a/", ""},
		{"spared in capitals", "http_proxy=p|NO_PROXY=a", "http://a/", ""},
		{"all below", "http_proxy=p|no_proxy=example.org", "http://www.Example.org./", ""},
		{"a dot in front", "http_proxy=p|no_proxy=.example.org", "http://example.org/", ""},
		{"only whole labels", "http_proxy=p|no_proxy=example.org", "http://anexample.org/", "http://p:1080"},
		{"spaces and empty entries", "http_proxy=p|no_proxy=, b  a,", "http://a/", ""},
		{"everything", "http_proxy=p|no_proxy=*", "http://a/", ""},
		{"an address", "http_proxy=p|no_proxy=10.0.0.1", "http://10.0.0.1/", ""},
		{"another address", "http_proxy=p|no_proxy=0.0.1", "http://10.0.0.1/", "http://p:1080"},
		{"a network", "http_proxy=p|no_proxy=10.0.0.0/8", "http://10.9.8.7/", ""},
		{"another network", "http_proxy=p|no_proxy=10.0.0.0/8", "http://11.9.8.7/", "http://p:1080"},
		{"of six bytes", "http_proxy=p|no_proxy=[::1]", "http://[::1]/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.Parse(tt.url)
			testkit.Must(t, err)
			got, err := proxiesOf(environment(tt.environment)).For(u)
			if err != nil || (got == nil) != (tt.want == "") || got != nil && got.String() != tt.want {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func environment(text string) func(string) string {
	return func(name string) string {
		for kv := range strings.SplitSeq(text, "|") {
			if value, found := strings.CutPrefix(kv, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestProxiesRefuse(t *testing.T) {
	for _, text := range []string{"socks4://p:1", "http://", "ftp://p", "http://me:secret@p:port"} {
		_, err := Proxies{HTTP: text}.For(&url.URL{Scheme: "http", Host: "a"})
		if !errors.Is(err, errProxy) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %v without the password", text, err, errProxy)
		}
	}
}
