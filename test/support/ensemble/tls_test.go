package ensemble

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestClientsAreServedOverTLS(t *testing.T) {
	directory := t.TempDir()
	certificate := selfSigned(t, directory)
	options := quick
	options.Servers = 1
	options.TLS = &TLS{KeyStore: filepath.Join(directory, "key.pem"), TrustStore: filepath.Join(directory, "trust.pem")}
	e := start(t, options)
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	for name, test := range map[string]struct {
		present []tls.Certificate
		answer  string
	}{
		"with a certificate":    {[]tls.Certificate{certificate}, "imok"},
		"without a certificate": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := askSafely(e.ClientAddresses()[0], &tls.Config{RootCAs: trusted, Certificates: test.present})
			if answer != test.answer {
				t.Errorf("the server answers %q, %v", answer, err)
			}
		})
	}
}

// askSafely asks a server over TLS whether it is well.
func askSafely(address string, config *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(conn, "ruok"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// selfSigned makes a certificate that is its own authority, and the files a server wants of it.
func selfSigned(t *testing.T, directory string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "server"}, // Java wants one
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	write(t, filepath.Join(directory, "key.pem"), append(private, certificate...))
	write(t, filepath.Join(directory, "trust.pem"), certificate)
	pair, err := tls.X509KeyPair(certificate, private)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
