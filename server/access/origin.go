package access

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/10f93571/retry/server/problem"
)

// checkHost refuses a name under which we are not known. The page of a domain whose name server points it at this
// address (DNS rebinding) counts as our own page to a browser, but it cannot send another Host than that domain.
func (a *Access) checkHost(r *http.Request) error {
	if peerOf(r.Context()).unix {
		return nil // no browser speaks to a unix socket, and clients make up a Host
	}
	host := canonicalHost(r.Host)
	if host == "localhost" || host != "" && slices.Contains(a.hosts, host) {
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil && (address.Unmap().IsLoopback() || isOwn(r, address)) {
		return nil
	}
	return problem.Forbidden("the host %q is not known here\nhint: start the server with --allow-host NAME", r.Host)
}

// isOwn reports whether an address is the one that the request came to.
func isOwn(r *http.Request, address netip.Addr) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	return err == nil && own.Addr().Unmap().WithZone("") == address.Unmap()
}

// hostName cuts a port and the brackets of IPv6 off.
func hostName(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
}

// canonicalHost returns the name of a Host header as names are compared.
func canonicalHost(hostPort string) string {
	return strings.ToLower(strings.TrimSuffix(hostName(hostPort), "."))
}

// checkOrigin refuses what the page of another origin sends. Programs that are no browser send none of these headers.
func checkOrigin(r *http.Request) error {
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !sameOrigin(r, origins[0]) {
		return problem.Forbidden("a page of the origin %q may not call this API", strings.Join(origins, ", "))
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
		return nil
	default: // cross-site, and same-site: another port of the same machine is another program
		if followsLink(r) {
			return nil
		}
		return problem.Forbidden("a page of another origin may not call this API (Sec-Fetch-Site: %s)", site)
	}
}

// followsLink reports whether a browser opens what a person clicked on elsewhere. The other page sees nothing of it.
func followsLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// sameOrigin compares an Origin with the Host of its request. Where TLS ends in a proxy before us, the scheme of the
// origin is https and ours is not known.
func sameOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	usual := ":80"
	switch {
	case u.Scheme == "https":
		usual = ":443"
	case u.Scheme != "http" || r.TLS != nil:
		return false
	}
	canonical := func(host string) string { return strings.TrimSuffix(strings.ToLower(host), usual) }
	return canonical(u.Host) == canonical(r.Host)
}

// checkType refuses a body that does not say that it is JSON. A form of a page can send three types without a browser
// asking first, and JSON is none of them.
func checkType(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	const hint = "\nhint: send Content-Type: application/json"
	types := r.Header.Values("Content-Type")
	if len(types) != 1 {
		return problem.UnsupportedMediaType("want one Content-Type, got %d%s", len(types), hint)
	}
	media, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return problem.UnsupportedMediaType("want application/json, got %q%s", types[0], hint)
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problem.UnsupportedMediaType("want the charset utf-8, got %q%s", charset, hint)
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return problem.UnsupportedMediaType("a body with Content-Encoding %q cannot be read\nhint: send it as it is", coding)
	}
	return nil
}
