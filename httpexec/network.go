package httpexec

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// errResolve says that a value of --resolve is invalid.
var errResolve = errors.New("the address for a host cannot be read")

// readNetwork reads how a request reaches its server: as the task says, else as the environment says.
func (p *plan) readNetwork(n *request.Network, guarded bool) (err error) {
	p.network = *n
	if p.resolved, err = readResolve(n.Resolve); err != nil || guarded {
		return err
	}
	p.proxies = proxiesOf(func(name string) string {
		value, _ := p.refs.Find(name)
		return value
	})
	if n.Proxy != "" {
		proxy, err := p.refs.ExpandAt(n.Proxy, request.EscapeIn(n.Proxy))
		if err != nil {
			return fmt.Errorf("the proxy: %w", err)
		}
		p.proxies = Proxies{All: proxy, No: p.proxies.No}
	}
	if n.NoProxy != nil {
		p.proxies.No = *n.NoProxy
	}
	return nil
}

// readResolve reads lines of host:port:address[,address], and returns what to connect to instead of each host:port. A
// later line for the same host and port replaces an earlier one.
func readResolve(lines []string) (map[string][]string, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	given := map[string][]string{}
	for _, line := range lines {
		// In curl the + makes the address expire after a while. An attempt does not last that long.
		place, addresses, err := cutResolve(strings.TrimPrefix(line, "+"))
		if err != nil {
			return nil, fmt.Errorf("%w: %q %w", errResolve, line, err)
		}
		given[strings.ToLower(place)] = addresses
	}
	return given, nil
}

func cutResolve(line string) (place string, addresses []string, err error) {
	host, rest, _ := strings.Cut(line, ":")
	port, list, found := strings.Cut(rest, ":")
	switch {
	case strings.HasPrefix(line, "-"), host == "*":
		return "", nil, errors.New("asks for what is not done here\nhint: name one host, as in host:443:192.0.2.1")
	case !found, host == "":
		return "", nil, errors.New("is not host:port:address")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", nil, errors.New("has no port after its host")
	}
	for text := range strings.SplitSeq(list, ",") {
		address, err := netip.ParseAddr(strings.Trim(text, "[]"))
		if err != nil {
			return "", nil, errors.New("has an address that is none" +
				"\nhint: write one of IPv6 in [], as in host:443:[2001:db8::1]")
		}
		addresses = append(addresses, net.JoinHostPort(address.String(), port))
	}
	return net.JoinHostPort(host, port), addresses, nil
}

// tlsConfig reads the files of certificates. That is done for each attempt, as they may have been renewed.
func tlsConfig(n *request.Network) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: n.Insecure} //nolint:gosec // the user asked for it with -k
	if n.CACert != "" {
		text, err := os.ReadFile(n.CACert)
		config.RootCAs = x509.NewCertPool()
		if err == nil && !config.RootCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate in PEM form", n.CACert)
		}
		if err != nil {
			return nil, &localError{"read the certificates to believe", err, exitCACert}
		}
	}
	if n.Cert == "" && n.Key == "" {
		return config, nil
	}
	own, err := tls.Certificate{}, errors.New("there is a key but no certificate")
	if n.Cert != "" {
		own, err = tls.LoadX509KeyPair(n.Cert, cmp.Or(n.Key, n.Cert))
	}
	if err != nil {
		return nil, &localError{"read the client's certificate", err, exitClientCert}
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}

// Proxies says through which proxy a request is sent. An empty text is no proxy.
type Proxies struct {
	HTTP  string // for http URLs
	HTTPS string // for https URLs
	All   string // for URLs without a proxy of their own
	No    string // the hosts without a proxy: names with their subdomains, addresses, networks, or * for all
}

// proxiesOf reads the environment as curl does. HTTP_PROXY is ignored: a web server gives a client's "Proxy" header to
// CGI programs under that name. Unlike in net/http, requests to loopback addresses go through the proxy, too.
func proxiesOf(getenv func(string) string) Proxies {
	either := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToUpper(name))) }
	return Proxies{
		HTTP: getenv("http_proxy"), HTTPS: either("https_proxy"), All: either("all_proxy"), No: either("no_proxy"),
	}
}

// errProxy says that the name of a proxy is invalid.
var errProxy = errors.New("the proxy cannot be used")

// For returns the proxy for a URL; nil for none.
func (p Proxies) For(u *url.URL) (*url.URL, error) {
	text := cmp.Or(map[string]string{"http": p.HTTP, "https": p.HTTPS}[u.Scheme], p.All)
	if text == "" || p.excludes(u.Hostname()) {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" {
		return nil, fmt.Errorf("%w: it is no URL"+
			"\nhint: write it like http://host:port", errProxy) // not the URL: it may hold a password
	}
	switch proxy.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, fmt.Errorf("%w: %q is none of http, https, socks5 and socks5h", errProxy, proxy.Scheme)
	}
	if proxy.Port() == "" {
		port := cmp.Or(map[string]string{"https": "443"}[proxy.Scheme], "1080") // as in curl
		proxy.Host = net.JoinHostPort(proxy.Hostname(), port)
	}
	return proxy, nil
}

// excludes reports whether requests to a host use no proxy.
func (p Proxies) excludes(host string) bool {
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

// covers reports whether an entry is the address, or a network in CIDR notation with the address in it.
func covers(entry string, address netip.Addr) bool {
	if network, err := netip.ParsePrefix(entry); err == nil {
		return network.Contains(address)
	}
	one, err := netip.ParseAddr(strings.Trim(entry, "[]"))
	return err == nil && one.Unmap() == address
}
