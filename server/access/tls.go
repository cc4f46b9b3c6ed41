package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// TLS returns a configuration with the certificate of two PEM files, which are read again when they change. Files that
// cannot be used then leave the old certificate, and warn is told why; it must not block. With clientCA, certificates
// of clients are verified by that file; who sends none is asked for a token.
func TLS(certFile, keyFile, clientCA string, warn func(error)) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, warn: warn}
	if err := c.load(); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if clientCA != "" {
		content, err := os.ReadFile(clientCA)
		if err != nil {
			return nil, fmt.Errorf("read --client-ca: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !config.ClientCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("read --client-ca: %s has no certificate\nhint: give a file in PEM", clientCA)
		}
	}
	return config, nil
}

type certificate struct {
	certFile, keyFile string
	warn              func(error)

	mu     sync.Mutex
	loaded *tls.Certificate
	seen   [2]fs.FileInfo // of the files when they were last read
	broken string         // what was last warned of
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed() {
		if err := c.load(); err == nil {
			c.broken = ""
		} else if err.Error() != c.broken {
			c.broken = err.Error()
			c.warn(fmt.Errorf("the old TLS certificate stays in use: %w", err))
		}
	}
	return c.loaded, nil
}

func (c *certificate) changed() bool {
	for i, path := range []string{c.certFile, c.keyFile} {
		now, err := os.Stat(path)
		if err != nil || c.seen[i] == nil || !unchanged(now, c.seen[i]) {
			return true
		}
	}
	return false
}

// unchanged compares two looks at a file.
func unchanged(a, b fs.FileInfo) bool { return sameContent(a, b) && a.Mode() == b.Mode() }

func sameContent(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// load reads both files. Between the replacement of one and of the other they do not match: the next handshake tries
// again.
func (c *certificate) load() error {
	var seen [2]fs.FileInfo
	var failed error
	for i, path := range []string{c.certFile, c.keyFile} {
		var err error
		seen[i], err = os.Stat(path)
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("read the TLS certificate: %w", failed)
	}
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the TLS certificate: %w"+
			"\nhint: give PEM files, --tls-cert with the chain, --tls-key with its key", err)
	}
	c.loaded, c.seen = &loaded, seen
	return nil
}
