package httpexec

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

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
			ok(t, err)
			got, err := ProxiesOf(environment(tt.environment)).For(u)
			if err != nil || (got == nil) != (tt.want == "") || got != nil && got.String() != tt.want {
				t.Errorf("%v, %v; want %s", got, err, tt.want)
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
			t.Errorf("%s: %v", text, err)
		}
	}
}
