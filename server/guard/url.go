package guard

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxHost is the length of the longest host name in bytes.
const maxHost = 253

// CheckURL judges a target before anything is sent: its scheme, its port, its host where that is an address or a name
// of this machine. Every other name passes here, and is judged by Control once it is resolved. The error is a *Refused.
func (g *Guard) CheckURL(u *url.URL) error {
	switch {
	case !slices.Contains([]string{"http", "https", "grpc", "grpcs"}, u.Scheme):
		return &Refused{Rule: "scheme", Target: strconv.Quote(u.Scheme)}
	case u.Hostname() == "": // also where the URL is opaque, as http:example.org
		return &Refused{Rule: "URL without a host", Target: strconv.Quote(u.Redacted())}
	case u.User != nil:
		return &Refused{Rule: "URL with a user or password", Target: strconv.Quote(u.Redacted())}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return &Refused{Rule: "port", Target: strconv.Quote(port)}
		}
	}
	return g.checkHost(u.Hostname())
}

func (g *Guard) checkHost(host string) error {
	if g.AllowsHost(host) {
		return nil
	}
	name := canonical(host)
	if address, err := netip.ParseAddr(name); err == nil {
		return g.CheckAddr(address)
	}
	switch {
	case len(name) > maxHost || !isName(name):
		return &Refused{Rule: "invalid host", Target: strconv.Quote(host)}
	case looksNumeric(name):
		// C libraries read 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1. Nobody writes that in good faith.
		return &Refused{Rule: "host that is a number but no dotted address", Target: strconv.Quote(host)}
	case (name == "localhost" || strings.HasSuffix(name, ".localhost")) && !g.allowsLoopback():
		return &Refused{Rule: "name of this machine", Target: strconv.Quote(host), Allow: name}
	}
	return nil
}

// allowsLoopback reports whether any loopback address is allowed. Then localhost is judged by what it resolves to.
func (g *Guard) allowsLoopback() bool {
	return slices.ContainsFunc(g.prefixes, func(p netip.Prefix) bool {
		return p.Overlaps(netip.MustParsePrefix("127.0.0.0/8")) || p.Overlaps(netip.MustParsePrefix("::1/128"))
	})
}

// isName reports whether a host, in lower case, may be a name: labels of letters, digits, _ and -, not empty, parted by
// single dots. Letters beyond ASCII are for internationalised names; what they turn into is judged by Control.
func isName(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return r < 0x80 && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// looksNumeric reports whether the last label of a host is a number, decimal or 0x…: by the URL standard of browsers it
// is an IPv4 address then, and no name.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if rest, hex := strings.CutPrefix(last, "0x"); hex {
		last, digits = rest, "0123456789abcdef"
	} else if last == "" {
		return false
	}
	return strings.Trim(last, digits) == ""
}
