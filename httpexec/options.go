package httpexec

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Options are how a request is sent. The zero value is plain.
type Options struct {
	ConnectTimeout time.Duration // for the name, the connection, the proxy and TLS of one hop together; 0 = none
	Proxies        Proxies
	UnixSocket     string              // connect to this socket, whatever the host; no proxy is used
	Resolve        map[string][]string // addresses for a host:port, in the order in which they are tried
	TLS            TLS
	HTTP1          bool // do not offer HTTP/2
	Compressed     bool // ask for gzip, and unpack it
	MaxRedirects   int  // 0: a redirect is the reply; -1: it is one too many

	resolver *net.Resolver // nil: the system's; tests have their own
}

// TLS is how the two ends prove who they are. Files are read anew for each attempt: somebody may renew them meanwhile.
type TLS struct {
	Insecure bool   // believe any certificate
	CACert   string // a file of certificates that are believed instead of the system's
	Cert     string // the client's own, perhaps with its key
	Key      string // its key; empty: it is in Cert
}

// config reads the files.
func (o *TLS) config() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: o.Insecure} //nolint:gosec // who says -k means it
	if o.CACert != "" {
		text, err := os.ReadFile(o.CACert)
		config.RootCAs = x509.NewCertPool()
		if err == nil && !config.RootCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate in PEM form", o.CACert)
		}
		if err != nil {
			return nil, &localError{"read the certificates to believe", err, exitCACert}
		}
	}
	if o.Cert == "" {
		if o.Key != "" {
			return nil, &localError{"read the client's certificate", errors.New("there is a key but no certificate"), exitClientCert}
		}
		return config, nil
	}
	key := o.Key
	if key == "" {
		key = o.Cert
	}
	own, err := tls.LoadX509KeyPair(o.Cert, key)
	if err != nil {
		return nil, &localError{"read the client's certificate", err, exitClientCert}
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}
