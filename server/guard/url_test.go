package guard

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

func TestCheckURL(t *testing.T) {
	number := func(host string) string {
		return "host that is a number but no dotted address " + strconv.Quote(host) + ": refused"
	}
	loopback := "loopback address 127.0.0.1: refused unless --allow-target 127.0.0.1"
	tests := []struct {
		url   string
		allow []string
		want  string
	}{
		{url: "https://example.org/hook"},
		{url: "http://example.org:8080/"},
		{url: "http://example.org./"},
		{url: "grpc://example.org:50051/pkg.Service/Method"},
		{url: "grpcs://example.org/pkg.Service/Method"},
		{url: "http://bücher.example/"},
		{url: "http://8.8.8.8/"},
		{url: "http://[2606:4700::1111]/"},
		{url: "http://3com.example/"},
		{url: "http://example.3com/"},
		{url: "http://0xcafe.example/"},

		{url: "file:///etc/passwd", want: `scheme "file": refused`},
		{url: "gopher://x/", want: `scheme "gopher": refused`},
		{url: "//example.org/", want: `scheme "": refused`},
		{url: "/etc/passwd", want: `scheme "": refused`},
		{url: "unix:///run/docker.sock", want: `scheme "unix": refused`},
		{url: "http:///path", want: `URL without a host "http:///path": refused`},
		{url: "http://:80/", want: `URL without a host "http://:80/": refused`},
		{url: "http:example.org", want: `URL without a host "http:example.org": refused`},
		{url: "http://user:secret@example.org/", want: `URL with a user or password "http://user:xxxxx@example.org/": refused`},
		{url: "http://example.org:0/", want: `port "0": refused`},
		{url: "http://example.org:65536/", want: `port "65536": refused`},
		{url: "http://example.org:99999999999999999999/", want: `port "99999999999999999999": refused`},

		{url: "http://127.0.0.1/", want: loopback},
		{url: "http://127.0.0.1./", want: loopback},
		{url: "http://[::ffff:127.0.0.1]/", want: loopback},
		{url: "http://[::ffff:7f00:1]/", want: loopback},
		{url: "http://[0:0:0:0:0:0:0:1]/", want: "loopback address ::1: refused unless --allow-target ::1"},
		{url: "http://[fe80::1%25eth0]/", want: "link-local address fe80::1: refused unless --allow-target fe80::1"},
		{url: "http://169.254.169.254/latest/meta-data/",
			want: "metadata address 169.254.169.254: refused unless --allow-target 169.254.169.254"},
		{url: "http://2130706433/", want: number("2130706433")},
		{url: "http://0x7f000001/", want: number("0x7f000001")},
		{url: "http://0X7F.1/", want: number("0X7F.1")},
		{url: "http://0177.0.0.1/", want: number("0177.0.0.1")},
		{url: "http://127.1/", want: number("127.1")},
		{url: "http://127.0.0.1.2/", want: number("127.0.0.1.2")},
		{url: "http://127.0.0.256/", want: number("127.0.0.256")},
		{url: "http://017700000001/", want: number("017700000001")},
		{url: "http://0x/", want: number("0x")},
		{url: "http://134744072/", want: number("134744072")}, // 8.8.8.8, too: nobody writes it so
		{url: "http://localhost/", want: `name of this machine "localhost": refused unless --allow-target localhost`},
		{url: "http://LocalHost.:80/", want: `name of this machine "LocalHost.": refused unless --allow-target localhost`},
		{url: "http://a.localhost/", want: `name of this machine "a.localhost": refused unless --allow-target a.localhost`},
		{url: "http://notlocalhost/"},
		{url: "http://a..b/", want: `invalid host "a..b": refused`},
		{url: "http://a!b/", want: `invalid host "a!b": refused`},
		{url: "http://" + strings.Repeat("a", 254) + "/", want: `invalid host "` + strings.Repeat("a", 254) + `": refused`},

		{url: "http://localhost/", allow: []string{"localhost"}},
		{url: "http://localhost/", allow: []string{"127.0.0.1"}}, // judged by what it resolves to
		{url: "http://localhost/", allow: []string{"::1"}},
		{url: "http://localhost/", allow: []string{"10.0.0.0/8"},
			want: `name of this machine "localhost": refused unless --allow-target localhost`},
		{url: "http://127.0.0.1/", allow: []string{"127.0.0.0/8"}},
		{url: "http://127.0.0.1/", allow: []string{"localhost"}, want: loopback},
		{url: "http://2130706433/", allow: []string{"127.0.0.0/8"}, want: number("2130706433")},
	}
	for _, tt := range tests {
		t.Run(tt.url+" "+strings.Join(tt.allow, ","), func(t *testing.T) {
			u, err := url.Parse(tt.url)
			testkit.Must(t, err)
			check(t, with(t, tt.allow...).CheckURL(u), tt.want)
		})
	}
}

// A host that passes is a name, or an address that passes. No spelling of a number passes.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"http://127.0.0.1/", "http://0x7f.1/", "http://[::1%25x]:80/", "http://a@b/", "http:a",
		"http://x..y:0/", "grpc://1.2.3.4./", "http://0x.example", "http://%E2%91%A0/"} {
		f.Add(seed)
	}
	g := with(f)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil || g.CheckURL(u) != nil {
			return
		}
		host := strings.TrimSuffix(u.Hostname(), ".")
		if address, err := netip.ParseAddr(host); err == nil {
			if err := g.CheckAddr(address); err != nil {
				t.Errorf("%q passes, want %v", text, err)
			}
			return
		}
		labels := strings.Split(host, ".")
		if _, err := strconv.ParseInt(labels[len(labels)-1], 0, 64); err == nil && !strings.Contains(host, "_") &&
			!strings.HasPrefix(labels[len(labels)-1], "-") && !strings.ContainsAny(labels[len(labels)-1][1:], "oObB") {
			t.Errorf("%q passes, want the number refused", text)
		}
		if host == "" || u.User != nil || strings.EqualFold(host, "localhost") {
			t.Errorf("%q passes, want it refused", text)
		}
	})
}
