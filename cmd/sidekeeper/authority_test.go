package main

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
	"os"
	"testing"
	"time"
)

// A testAuthority signs certificates, and writes them into a folder as files that sidecars read.
type testAuthority struct {
	t           *testing.T
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newTestAuthority writes `ca.crt`.
func newTestAuthority(t *testing.T, folder string) *testAuthority {
	t.Helper()
	a := &testAuthority{t: t, folder: folder}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = template
	der, key := a.sign(template)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.certificate, a.key = certificate, key
	a.writeCA("ca.crt")
	return a
}

func (a *testAuthority) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	template.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// issue writes `name.crt` and `name.key`, as files that take the place of older ones.
func (a *testAuthority) issue(name string) {
	a.t.Helper()
	der, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name + ".test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".key", "PRIVATE KEY", private)
	a.write(name+".crt", "CERTIFICATE", der)
}

func (a *testAuthority) writeCA(name string) { a.write(name, "CERTIFICATE", a.certificate.Raw) }

func (a *testAuthority) write(name, kind string, der []byte) {
	a.t.Helper()
	replaceFile(a.t, a.folder+"/"+name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// replaceFile moves a new file over the old one.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// clientConfig is of who shows the certificate with this name, and trusts this authority.
func (a *testAuthority) clientConfig(name string) *tls.Config {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}
}
