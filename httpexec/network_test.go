package httpexec

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
)

func TestReadResolve(t *testing.T) {
	got, err := readResolve(lines("Host.example:443:192.0.2.1", "a:80:[2001:db8::1],192.0.2.2", "+b:1:::1", "a:80:192.0.2.3"))
	if want := "map[a:80:[192.0.2.3] b:1:[::1] host.example:443:[192.0.2.1]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	for line, says := range map[string]string{
		"-host:443": "not done here", "*:443:192.0.2.1": "not done here", "host": "is not host:port:address", ":1:192.0.2.1": "is not",
		"host:x:192.0.2.1": "no port", "host:0:192.0.2.1": "no port", "host:1:name": "an address that is none", "host:1:": "an address that is none",
	} {
		if _, err := readResolve(lines(line)); !errors.Is(err, errResolve) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestProxyOfATask(t *testing.T) {
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
		o, err := optionsOf(&tt.network, &references{lookup: environment})
		ok(t, err)
		u, err := o.Proxies.For(must(tt.url))
		if err != nil || u == nil && tt.want != "" || u != nil && u.String() != tt.want {
			t.Errorf("%+v, %s: %v, %v", tt.network, tt.url, u, err)
		}
	}
	if _, err := optionsOf(&request.Network{Proxy: "{env:UNSET}"}, &references{}); !errors.Is(err, errReference) {
		t.Error(err)
	}
}

func FuzzReadResolve(f *testing.F) {
	for _, line := range []string{"host:1:192.0.2.1", "+a:2:[::1],::2", "-a:1", "*:1:1.2.3.4", "a:1:", ":::", "a:b:c"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		given, err := readResolve(lines(line))
		if err != nil && !errors.Is(err, errResolve) || err == nil && len(given) != 1 {
			t.Errorf("%q: %v, %v", line, given, err)
		}
		for place, addresses := range given {
			if _, _, err := net.SplitHostPort(place); err != nil || len(addresses) == 0 {
				t.Errorf("%q: %v, %v", line, given, err)
			}
		}
	})
}
