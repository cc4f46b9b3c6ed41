// Package guard keeps requests that came over the API away from what only this machine or its network may reach:
// private, loopback, link-local, multicast and metadata addresses.
//
// A name is judged where a connection is dialled: after it was resolved, for each address, and again for each redirect.
// A check of the name alone would not hold, as the name may resolve to another address a moment later (DNS rebinding).
package guard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// Guard says which targets may be dialled. It never changes, and many goroutines may use it.
type Guard struct {
	prefixes []netip.Prefix
	hosts    []string // lower case, without a dot at the end
	special  *ssrf.Guardian
}

// Refused is the error for a target that may not be reached. Rule and Target say why, as in "loopback address" and
// "127.0.0.1". Allow is what --allow-target needs to let it pass, or "" where nothing does.
type Refused struct {
	Rule, Target, Allow string
}

func (r *Refused) Error() string {
	if r.Allow == "" {
		return fmt.Sprintf("%s %s: refused", r.Rule, r.Target)
	}
	return fmt.Sprintf("%s %s: refused unless --allow-target %s", r.Rule, r.Target, r.Allow)
}

// Control is the type of net.Dialer.Control.
type Control = func(network, address string, c syscall.RawConn) error

// New returns a Guard that lets pass what is on the public internet, and what --allow-target lists: addresses, networks
// (CIDR) and host names. An allowed name allows every address that it resolves to.
func New(allow []string) (*Guard, error) {
	g := &Guard{special: ssrf.New(ssrf.WithAnyPort())}
	for _, entry := range allow {
		if err := g.allow(entry); err != nil {
			return nil, fmt.Errorf("invalid target %q: %w", entry, err)
		}
	}
	return g, nil
}

func (g *Guard) allow(entry string) error {
	const hint = "\nhint: give an address, a network such as 10.0.0.0/8, or a host name without scheme and port"
	if address, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		address = address.Unmap()
		if address.Zone() != "" {
			return fmt.Errorf("an address with a zone%s", hint)
		}
		g.prefixes = append(g.prefixes, netip.PrefixFrom(address, address.BitLen()))
		return nil
	}
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		switch {
		case err != nil:
			return fmt.Errorf("invalid network%s", hint)
		case prefix.Addr().Is4In6():
			return fmt.Errorf("a network of mapped addresses\nhint: write it as IPv4")
		case prefix != prefix.Masked():
			return fmt.Errorf("the address has bits beyond the network\nhint: did you mean %s?", prefix.Masked())
		}
		g.prefixes = append(g.prefixes, prefix)
		return nil
	}
	name := canonical(entry)
	if !isName(name) || looksNumeric(name) {
		return fmt.Errorf("neither an address nor a host name%s", hint)
	}
	g.hosts = append(g.hosts, name)
	return nil
}

// AllowsHost reports whether --allow-target lists a host name.
func (g *Guard) AllowsHost(name string) bool { return slices.Contains(g.hosts, canonical(name)) }

// ForHost returns the Control of a dialer that connects to a host, as the URL names it without its port. After a
// redirect the host is another one.
func (g *Guard) ForHost(host string) Control {
	if g.AllowsHost(host) {
		return onlyTCP
	}
	return g.Control
}

func onlyTCP(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &Refused{Rule: "network " + network, Target: address}
	}
	return nil
}

// Control judges the address that a dialer is about to connect to. The error is a *Refused.
func (g *Guard) Control(network, address string, c syscall.RawConn) error {
	if err := onlyTCP(network, address, c); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refused{Rule: "unreadable address", Target: address}
	}
	return g.CheckAddr(to.Addr())
}

// CheckAddr judges an address. The error is a *Refused.
func (g *Guard) CheckAddr(address netip.Addr) error {
	address = address.WithZone("").Unmap() // ::ffff:127.0.0.1 reaches 127.0.0.1
	if g.allows(address) {
		// A gateway sends what is allowed here on to an IPv4 address, which is judged by itself.
		if inner, translated := behindNAT64(address); translated {
			return g.CheckAddr(inner)
		}
		return nil
	}
	if isMetadata(address) || g.special.SafeAddr(address) != nil {
		return &Refused{Rule: rule(address), Target: address.String(), Allow: address.String()}
	}
	return nil
}

func (g *Guard) allows(address netip.Addr) bool {
	return slices.ContainsFunc(g.prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// behindNAT64 returns the IPv4 address that an address of 64:ff9b::/96 stands for.
func behindNAT64(address netip.Addr) (netip.Addr, bool) {
	if !ssrf.IPv6NAT64Prefix.Contains(address) {
		return netip.Addr{}, false
	}
	bytes := address.As16()
	inner, ok := netip.AddrFromSlice(bytes[12:])
	return inner, ok
}

// isMetadata reports whether a cloud's machines find their credentials at an address. That of Azure is a public one.
func isMetadata(address netip.Addr) bool {
	switch address.String() {
	case "169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "169.254.170.2",
		"169.254.170.23", "fd00:ec2::23", "fd20:ce::254":
		return true
	}
	return false
}

// rule says in words why an address is refused.
func rule(address netip.Addr) string {
	in := func(network string) bool { return netip.MustParsePrefix(network).Contains(address) }
	switch {
	case isMetadata(address):
		return "metadata address"
	case address.IsUnspecified():
		return "unspecified address"
	case address.IsLoopback():
		return "loopback address"
	case address.IsPrivate():
		return "private address"
	case address.IsLinkLocalUnicast():
		return "link-local address"
	case address.IsMulticast():
		return "multicast address"
	case in("100.64.0.0/10"):
		return "carrier-grade NAT address"
	case in("64:ff9b::/96"), in("64:ff9b:1::/48"):
		return "NAT64 address"
	case in("2002::/16"):
		return "6to4 address"
	case in("2001::/32"):
		return "Teredo address"
	}
	return "special-purpose address"
}

// canonical returns a host name as names are compared.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
