package request

import (
	"fmt"
	"strings"
)

// CheckGuarded returns an error where a request that came through the API names what only a user of this machine may: a
// file, a socket, a proxy, or an address in place of the resolver's. A body may have blobs.
func CheckGuarded(r *Request) error {
	if !r.Guarded {
		return nil
	}
	n := &r.Network
	for _, wrong := range []struct {
		is   bool
		name string
	}{
		{n.UnixSocket != "", "a unix socket"},
		{n.Proxy != "" || n.NoProxy != nil, "a proxy"},
		{len(n.Resolve) > 0, "the address of a host"},
		{n.CACert+n.Cert+n.Key != "", "a file of certificates"},
		{r.Netrc != "" || r.NetrcNeeded, "a file of passwords"},
		{len(r.CookieFiles) > 0 || r.CookieJar != "", "a file of cookies"},
		{r.Output != "", "a file for the reply"},
		{r.namesFile(), "a file of this machine"},
	} {
		if wrong.is {
			return fmt.Errorf("it came through the API and names %s", wrong.name)
		}
	}
	return nil
}

func (r *Request) namesFile() bool {
	for _, line := range r.Header {
		if strings.HasPrefix(line, "@") {
			return true
		}
	}
	for i := range r.Body {
		if r.Body[i].File != "" {
			return true
		}
	}
	return false
}

// IsBlob reports whether a text can name a blob: the hexadecimal digits of a SHA-256.
func IsBlob(hash string) bool { return len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" }
