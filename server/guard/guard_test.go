package guard

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

func with(t testing.TB, allow ...string) *Guard {
	t.Helper()
	g, err := New(allow)
	testkit.Must(t, err)
	return g
}

// check compares an error with the text that is wanted, "" for none.
func check(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
		if refused := (*Refused)(nil); !errors.As(err, &refused) {
			t.Errorf("got %T, want *Refused", err)
		}
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestControl(t *testing.T) {
	refused := func(rule, address string) string {
		return rule + " " + address + ": refused unless --allow-target " + address
	}
	tests := []struct {
		network, address string
		allow            []string
		want             string
	}{
		{network: "tcp4", address: "93.184.216.34:80"},
		{network: "tcp4", address: "8.8.8.8:6379"}, // any port
		{network: "tcp6", address: "[2606:4700::1111]:443"},
		{network: "tcp6", address: "[::ffff:8.8.8.8]:443"},
		{network: "tcp4", address: "127.0.0.1:80", want: refused("loopback address", "127.0.0.1")},
		{network: "tcp4", address: "127.255.255.254:80", want: refused("loopback address", "127.255.255.254")},
		{network: "tcp6", address: "[::1]:80", want: refused("loopback address", "::1")},
		{network: "tcp6", address: "[::ffff:127.0.0.1]:80", want: refused("loopback address", "127.0.0.1")},
		{network: "tcp6", address: "[::ffff:169.254.169.254]:80", want: refused("metadata address", "169.254.169.254")},
		{network: "tcp6", address: "[::127.0.0.1]:80", want: refused("special-purpose address", "::7f00:1")},
		{network: "tcp4", address: "0.0.0.0:80", want: refused("unspecified address", "0.0.0.0")},
		{network: "tcp4", address: "0.1.2.3:80", want: refused("special-purpose address", "0.1.2.3")},
		{network: "tcp6", address: "[::]:80", want: refused("unspecified address", "::")},
		{network: "tcp4", address: "10.1.2.3:80", want: refused("private address", "10.1.2.3")},
		{network: "tcp4", address: "172.31.0.1:80", want: refused("private address", "172.31.0.1")},
		{network: "tcp4", address: "192.168.0.1:80", want: refused("private address", "192.168.0.1")},
		{network: "tcp6", address: "[fd12::1]:80", want: refused("private address", "fd12::1")},
		{network: "tcp4", address: "169.254.1.1:80", want: refused("link-local address", "169.254.1.1")},
		{network: "tcp6", address: "[fe80::1%eth0]:80", want: refused("link-local address", "fe80::1")},
		{network: "tcp4", address: "169.254.169.254:80", want: refused("metadata address", "169.254.169.254")},
		{network: "tcp4", address: "168.63.129.16:80", want: refused("metadata address", "168.63.129.16")},
		{network: "tcp4", address: "100.100.100.200:80", want: refused("metadata address", "100.100.100.200")},
		{network: "tcp6", address: "[fd00:ec2::254]:80", want: refused("metadata address", "fd00:ec2::254")},
		{network: "tcp4", address: "100.64.0.1:80", want: refused("carrier-grade NAT address", "100.64.0.1")},
		{network: "tcp4", address: "224.0.0.1:80", want: refused("multicast address", "224.0.0.1")},
		{network: "tcp6", address: "[ff02::1]:80", want: refused("multicast address", "ff02::1")},
		{network: "tcp4", address: "255.255.255.255:80", want: refused("special-purpose address", "255.255.255.255")},
		{network: "tcp4", address: "240.0.0.1:80", want: refused("special-purpose address", "240.0.0.1")},
		{network: "tcp4", address: "192.0.2.1:80", want: refused("special-purpose address", "192.0.2.1")},
		{network: "tcp4", address: "198.18.0.1:80", want: refused("special-purpose address", "198.18.0.1")},
		{network: "tcp6", address: "[64:ff9b::7f00:1]:80", want: refused("NAT64 address", "64:ff9b::7f00:1")},
		{network: "tcp6", address: "[64:ff9b::808:808]:80", want: refused("NAT64 address", "64:ff9b::808:808")},
		{network: "tcp6", address: "[64:ff9b:1::7f00:1]:80", want: refused("NAT64 address", "64:ff9b:1::7f00:1")},
		{network: "tcp6", address: "[2002:7f00:1::]:80", want: refused("6to4 address", "2002:7f00:1::")},
		{network: "tcp6", address: "[2001:0:1::1]:80", want: refused("Teredo address", "2001:0:1::1")},
		{network: "tcp6", address: "[2001:db8::1]:80", want: refused("special-purpose address", "2001:db8::1")},
		{network: "tcp6", address: "[fec0::1]:80", want: refused("special-purpose address", "fec0::1")},

		{network: "tcp4", address: "127.0.0.1:80", allow: []string{"127.0.0.1"}},
		{network: "tcp6", address: "[::ffff:127.0.0.1]:80", allow: []string{"127.0.0.1"}},
		{network: "tcp4", address: "127.0.0.1:80", allow: []string{"::ffff:127.0.0.1"}},
		{network: "tcp6", address: "[::1]:80", allow: []string{"[::1]"}},
		{network: "tcp4", address: "127.0.0.2:80", allow: []string{"127.0.0.1"},
			want: refused("loopback address", "127.0.0.2")},
		{network: "tcp4", address: "10.9.9.9:80", allow: []string{"10.0.0.0/8", "fd00::/8"}},
		{network: "tcp6", address: "[fd12::1]:80", allow: []string{"10.0.0.0/8", "fd00::/8"}},
		{network: "tcp6", address: "[fe80::1%eth0]:80", allow: []string{"fe80::/10"}},
		{network: "tcp4", address: "10.9.9.9:80", allow: []string{"::/0"}, want: refused("private address", "10.9.9.9")},
		{network: "tcp6", address: "[64:ff9b::808:808]:80", allow: []string{"64:ff9b::/96"}},
		{network: "tcp6", address: "[64:ff9b::7f00:1]:80", allow: []string{"64:ff9b::/96"},
			want: refused("loopback address", "127.0.0.1")},
		{network: "tcp6", address: "[64:ff9b::7f00:1]:80", allow: []string{"::/0"},
			want: refused("loopback address", "127.0.0.1")},
		{network: "tcp6", address: "[64:ff9b::a00:1]:80", allow: []string{"64:ff9b::/96", "10.0.0.0/8"}},

		{network: "unix", address: "/run/docker.sock", want: "network unix /run/docker.sock: refused"},
		{network: "udp4", address: "8.8.8.8:53", want: "network udp4 8.8.8.8:53: refused"},
		{network: "tcp4", address: "localhost:80", want: "unreadable address localhost:80: refused"},
	}
	for _, tt := range tests {
		t.Run(tt.network+" "+tt.address+" "+strings.Join(tt.allow, ","), func(t *testing.T) {
			check(t, with(t, tt.allow...).Control(tt.network, tt.address, nil), tt.want)
		})
	}
}

func TestForHost(t *testing.T) {
	g := with(t, "Internal.example.", "10.0.0.1")
	loopback := "loopback address 127.0.0.1: refused unless --allow-target 127.0.0.1"
	tests := []struct{ host, network, address, want string }{
		{"internal.example", "tcp4", "127.0.0.1:80", ""},
		{"INTERNAL.example.", "tcp6", "[fd00::1]:80", ""},
		{"internal.example", "unix", "/run/x", "network unix /run/x: refused"},
		{"x.internal.example", "tcp4", "127.0.0.1:80", loopback},
		{"internal.example.evil.example", "tcp4", "127.0.0.1:80", loopback},
		{"public.example", "tcp4", "10.0.0.1:80", ""},
		{"", "tcp4", "127.0.0.1:80", loopback},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			check(t, g.ForHost(tt.host)(tt.network, tt.address, nil), tt.want)
		})
	}
}

func TestNew(t *testing.T) {
	const hint = "\nhint: give an address, a network such as 10.0.0.0/8, or a host name without scheme and port"
	tests := []struct{ entry, want string }{
		{"10.0.0.0/8", ""},
		{"::/0", ""},
		{"fd00::1", ""},
		{"my_host-1.example.", ""},
		{"10.1.2.3/8", `"10.1.2.3/8": the address has bits beyond the network` + "\nhint: did you mean 10.0.0.0/8?"},
		{"::ffff:10.0.0.0/104", `"::ffff:10.0.0.0/104": a network of mapped addresses` + "\nhint: write it as IPv4"},
		{"10.0.0.0/33", `"10.0.0.0/33": invalid network` + hint},
		{"http://x", `"http://x": invalid network` + hint},
		{"fe80::1%eth0", `"fe80::1%eth0": an address with a zone` + hint},
		{"", `"": neither an address nor a host name` + hint},
		{"host:80", `"host:80": neither an address nor a host name` + hint},
		{"*.example", `"*.example": neither an address nor a host name` + hint},
		{"2130706433", `"2130706433": neither an address nor a host name` + hint},
		{"0x7f.1", `"0x7f.1": neither an address nor a host name` + hint},
		{"10.0.0", `"10.0.0": neither an address nor a host name` + hint},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			_, err := New([]string{"127.0.0.1", tt.entry})
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "invalid target ")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever is allowed, no address passes that neither is public nor lies within what was allowed.
func FuzzNew(f *testing.F) {
	for _, entry := range []string{"10.0.0.0/8", "::1", "localhost", "0x7f.1", "::ffff:127.0.0.1/128",
		"127.0.0.1/0", "fe80::%1/64"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		g, err := New([]string{entry})
		if err != nil {
			return
		}
		loopback := netip.MustParseAddr("127.0.0.1")
		passes := g.CheckAddr(loopback) == nil
		if _, network, err := net.ParseCIDR(entry); err == nil {
			if want := network.Contains(loopback.AsSlice()); passes != want {
				t.Errorf("%q: 127.0.0.1 passes: got %v, want %v", entry, passes, want)
			}
		} else if ip := net.ParseIP(strings.Trim(entry, "[]")); passes != (ip != nil && ip.Equal(loopback.AsSlice())) {
			t.Errorf("%q: got 127.0.0.1 passes %v", entry, passes)
		}
		if g.AllowsHost(entry) != (len(g.hosts) == 1) {
			t.Errorf("%q: got AllowsHost %v, want it for a name alone", entry, g.AllowsHost(entry))
		}
	})
}
