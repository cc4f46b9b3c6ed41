package httpexec

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// errResolve says that an address for a host cannot be read.
var errResolve = errors.New("the address for a host cannot be read")

// optionsOf reads how a request gets to its server: as the task says, else as the environment does.
func optionsOf(n *request.Network, refs *references) (Options, error) {
	o := Options{
		ConnectTimeout: n.ConnectTimeout, UnixSocket: n.UnixSocket, HTTP1: n.HTTP1, Compressed: n.Compressed, MaxRedirects: n.MaxRedirects,
		TLS: TLS{Insecure: n.Insecure, CACert: n.CACert, Cert: n.Cert, Key: n.Key},
	}
	o.Proxies = ProxiesOf(func(name string) string {
		value, _ := refs.find(name)
		return value
	})
	if n.Proxy != "" {
		proxy, err := refs.expandAt(n.Proxy, escapeIn(n.Proxy))
		if err != nil {
			return o, fmt.Errorf("the proxy: %w", err)
		}
		o.Proxies = Proxies{All: proxy, No: o.Proxies.No}
	}
	if n.NoProxy != nil {
		o.Proxies.No = *n.NoProxy
	}
	var err error
	o.Resolve, err = readResolve(n.Resolve)
	return o, err
}

// readResolve reads lines of host:port:address[,address]. A later one for the same place replaces an earlier one.
func readResolve(lines []string) (map[string][]string, error) {
	given := map[string][]string{}
	for _, line := range lines {
		place, addresses, err := cutResolve(strings.TrimPrefix(line, "+")) // with it curl forgets the line in time; an attempt is shorter
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
			return "", nil, errors.New("has an address that is none\nhint: write one of IPv6 in [], as in host:443:[2001:db8::1]")
		}
		addresses = append(addresses, address.String())
	}
	return join(host, port), addresses, nil
}
