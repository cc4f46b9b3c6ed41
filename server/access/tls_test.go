package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// issue makes a certificate, signed by a parent or by itself, as PEM.
func issue(t *testing.T, name string, parent *tls.Certificate) (certPEM, keyPEM string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IsCA: parent == nil, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, signerKey := template, any(key)
	if parent != nil {
		signer, signerKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	testkit.Must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Must(t, err)
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	pair, err = tls.X509KeyPair([]byte(certPEM), []byte(keyPEM))
	testkit.Must(t, err)
	return certPEM, keyPEM, pair
}

// presented connects, and returns the name in the certificate that the server shows.
func presented(t *testing.T, address string) string {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	testkit.Must(t, err)
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// A new certificate is used from the next handshake on; broken files leave the old one and say so once.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	put := func(cert, key string) {
		testkit.Write(t, certFile, cert)
		testkit.Write(t, keyFile, key)
	}
	cert, key, _ := issue(t, "first", nil)
	put(cert, key)
	var warned []string
	config, err := TLS(certFile, keyFile, "", func(err error) { warned = append(warned, err.Error()) })
	testkit.Must(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = config
	server.StartTLS()
	defer server.Close()
	server.TLS.Certificates = nil
	address := server.Listener.Addr().String()

	want := func(when, name string) {
		t.Helper()
		if got := presented(t, address); got != name {
			t.Errorf("%s: got the certificate %q, want %q", when, got, name)
		}
	}
	want("at first", "first")
	cert2, key2, _ := issue(t, "second", nil)
	testkit.Write(t, certFile, cert2)
	want("half replaced", "first")
	want("half replaced", "first")
	testkit.Write(t, keyFile, key2)
	want("replaced", "second")
	put("no PEM", key2)
	want("broken", "second")
	testkit.Must(t, os.Remove(certFile))
	want("removed", "second")
	put(cert, key)
	want("back", "first")

	if len(warned) != 3 || !strings.Contains(warned[0], "private key does not match public key") ||
		!strings.Contains(warned[1], "failed to find any PEM data") || !strings.Contains(warned[2], "no such file") ||
		!strings.HasPrefix(warned[0], "the old TLS certificate stays in use: read the TLS certificate: ") {
		t.Errorf("got the warnings %q, want three", warned)
	}
}

func TestTLSRefuses(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key, _ := issue(t, "x", nil)
	testkit.Write(t, certFile, cert)
	testkit.Write(t, keyFile, key)
	for _, tt := range []struct{ cert, key, ca, want string }{
		{filepath.Join(dir, "absent"), keyFile, "", "read the TLS certificate: stat "},
		{certFile, certFile, "", "\nhint: give PEM files"},
		{certFile, keyFile, filepath.Join(dir, "absent"), "read --client-ca: open "},
		{certFile, keyFile, keyFile, "has no certificate\nhint: give a file in PEM"},
	} {
		if _, err := TLS(tt.cert, tt.key, tt.ca, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	caFile := filepath.Join(dir, "ca.pem")
	caPEM, _, ca := issue(t, "our CA", nil)
	cert, key, _ := issue(t, "server", &ca)
	testkit.Write(t, caFile, caPEM)
	testkit.Write(t, certFile, cert)
	testkit.Write(t, keyFile, key)
	config, err := TLS(certFile, keyFile, caFile, nil)
	testkit.Must(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	testkit.Must(t, err)
	server := NewServer(New(Config{ClientCA: true}).Handler(whoAmI))
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(caPEM))
	get := func(certificates ...tls.Certificate) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}}
		defer transport.CloseIdleConnections()
		reply, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String())
		if err != nil {
			return "", err
		}
		_ = reply.Body.Close()
		return reply.Status, nil
	}
	_, _, ours := issue(t, "billing", &ca)
	if got, err := get(ours); err != nil || got != "200 OK" {
		t.Errorf("our certificate: got %q, %v, want 200", got, err)
	}
	if got, err := get(); err != nil || got != "401 Unauthorized" {
		t.Errorf("no certificate: got %q, %v, want 401", got, err)
	}
	_, _, otherCA := issue(t, "our CA", nil)
	_, _, forged := issue(t, "billing", &otherCA)
	if got, err := get(forged); err == nil && got != "401 Unauthorized" {
		t.Errorf("forged certificate: got %q, want it refused", got)
	}
}
