package guard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// hostileNames starts a name server on loopback, and returns a resolver that asks it and a function that changes its
// answer. A question for the other family has no answer.
func hostileNames(t *testing.T, first string) (resolver *net.Resolver, change func(answer string)) {
	t.Helper()
	var answer atomic.Pointer[netip.Addr]
	change = func(text string) {
		address := netip.MustParseAddr(text)
		answer.Store(&address)
	}
	change(first)
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, client, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(nameReply(buffer[:n], *answer.Load()), client)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}, change
}

// nameReply answers a question with one address, where it asks for that family.
func nameReply(question []byte, address netip.Addr) (reply []byte) {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	family, wanted := question[end+2], byte(1)
	if address.Is6() {
		wanted = 28
	}
	reply = append(reply, question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	reply = append(reply, question[12:end+5]...)
	if family != wanted {
		return reply
	}
	reply[7] = 1
	reply = append(reply, 0xc0, 12, 0, wanted, 0, 1, 0, 0, 0, 0, 0, byte(address.BitLen()/8))
	return append(reply, address.AsSlice()...)
}

// A name that is public when it is looked at, and loopback when it is dialled, reaches nothing.
func TestRebindingResolver(t *testing.T) {
	reached := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }))
	defer server.Close()
	port := server.URL[len("http://127.0.0.1:"):]

	for _, tt := range []struct{ then, rule string }{
		{"127.0.0.1", "loopback address"},
		{"::ffff:127.0.0.1", "loopback address"},
		{"64:ff9b::7f00:1", "NAT64 address"},
		{"2002:7f00:1::1", "6to4 address"},
		{"169.254.169.254", "metadata address"},
	} {
		t.Run(tt.then, func(t *testing.T) {
			g := with(t)
			u, err := url.Parse("http://rebind.example:" + port)
			testkit.Must(t, err)
			testkit.Must(t, g.CheckURL(u))
			errPublic := errors.New("would have been dialled")
			resolver, change := hostileNames(t, "93.184.216.34")
			dialer := net.Dialer{
				Resolver: resolver,
				Control: func(network, address string, c syscall.RawConn) error {
					if err := g.ForHost(u.Hostname())(network, address, c); err != nil {
						return err
					}
					return errPublic // no test connects to the internet
				},
			}
			if _, err := dialer.Dial("tcp", u.Host); !errors.Is(err, errPublic) {
				t.Fatalf("first: got %v, want the public address dialled", err)
			}
			change(tt.then)
			_, err = dialer.Dial("tcp", u.Host)
			if refused := (*Refused)(nil); !errors.As(err, &refused) || refused.Rule != tt.rule {
				t.Errorf("then: got %v, want %s", err, tt.rule)
			}
		})
	}
	select {
	case <-reached:
		t.Error("the server on loopback was reached")
	default:
	}
}

// An allowed name reaches whatever it resolves to, other names with the same address do not.
func TestAllowedNameIsDialled(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	port := server.URL[len("http://127.0.0.1:"):]
	g := with(t, "internal.example")
	resolver, _ := hostileNames(t, "127.0.0.1")
	dial := func(host string) error {
		dialer := net.Dialer{Resolver: resolver, Control: g.ForHost(host)}
		conn, err := dialer.Dial("tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := dial("internal.example"); err != nil {
		t.Errorf("got %v, want a connection", err)
	}
	if refused := (*Refused)(nil); !errors.As(dial("other.example"), &refused) {
		t.Error("got a connection, want it refused")
	}
}

// A redirect is dialled anew, and judged anew.
func TestRedirects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer server.Close()
	g := with(t, "127.0.0.1/32")
	client := http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Control: g.Control}).DialContext}}
	for _, tt := range []struct{ to, rule string }{
		{"http://169.254.169.254/latest/meta-data/", "metadata address"},
		{"http://[::ffff:a9fe:a9fe]/", "metadata address"},
		{"http://127.0.0.2/", "loopback address"},
		{"http://[::]/", "unspecified address"},
		{"http://10.0.0.1/", "private address"},
	} {
		reply, err := client.Get(server.URL + "?to=" + url.QueryEscape(tt.to))
		if err == nil {
			_ = reply.Body.Close()
		}
		if refused := (*Refused)(nil); !errors.As(err, &refused) || refused.Rule != tt.rule {
			t.Errorf("%s: got %v, want %s", tt.to, err, tt.rule)
		}
	}
}
