package httpexec

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Proxies says through which proxy a request goes. An empty one is none.
type Proxies struct {
	HTTP  string // for http URLs
	HTTPS string // for https URLs
	All   string // for what has none of its own
	No    string // hosts that are asked directly: names with all below them, addresses, networks, or * for all
}

// ProxiesOf reads the environment as curl does: http_proxy in lower case only, since a web server hands a client's "Proxy" header to
// CGI programs as HTTP_PROXY; loopback is no exception.
func ProxiesOf(getenv func(string) string) Proxies {
	either := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToUpper(name))) }
	return Proxies{HTTP: getenv("http_proxy"), HTTPS: either("https_proxy"), All: either("all_proxy"), No: either("no_proxy")}
}

// errProxy says that the name of a proxy makes no sense.
var errProxy = errors.New("the proxy cannot be used")

// proxyPort is what curl takes where a proxy names none.
const proxyPort = "1080"

// For returns the proxy for a URL; nil for none.
func (p Proxies) For(u *url.URL) (*url.URL, error) {
	text := cmp.Or(map[string]string{"http": p.HTTP, "https": p.HTTPS}[u.Scheme], p.All)
	if text == "" || p.spares(u.Hostname()) {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" {
		return nil, fmt.Errorf("%w: it is no URL\nhint: write it like http://host:port", errProxy) // not the URL: it may hold a password
	}
	switch proxy.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, fmt.Errorf("%w: %q is none of http, https, socks5 and socks5h", errProxy, proxy.Scheme)
	}
	if proxy.Port() == "" {
		port := proxyPort
		if proxy.Scheme == "https" {
			port = "443"
		}
		proxy.Host = join(proxy.Hostname(), port)
	}
	return proxy, nil
}

// spares reports whether a host is asked directly.
func (p Proxies) spares(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	address, err := netip.ParseAddr(host)
	for entry := range strings.FieldsFuncSeq(strings.ToLower(p.No), func(r rune) bool { return r == ',' || r == ' ' }) {
		if entry == "*" || (err == nil && covers(entry, address.Unmap())) {
			return true
		}
		name := strings.Trim(entry, ".")
		if err != nil && name != "" && (host == name || strings.HasSuffix(host, "."+name)) {
			return true
		}
	}
	return false
}

// covers reports whether an address, or a network in the notation of CIDR, has the address.
func covers(entry string, address netip.Addr) bool {
	if network, err := netip.ParsePrefix(entry); err == nil {
		return network.Contains(address)
	}
	one, err := netip.ParseAddr(strings.Trim(entry, "[]"))
	return err == nil && one.Unmap() == address
}
