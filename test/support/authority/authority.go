// Package authority signs certificates for tests, and writes them where programs read them.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// An Authority signs certificates that are valid for an hour.
type Authority struct {
	Certificate *x509.Certificate

	t   testing.TB
	key *ecdsa.PrivateKey
}

// New makes an authority with a certificate of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	return Named(t, "authority")
}

// Named makes an authority that has this name in its certificate.
func Named(t testing.TB, name string) *Authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &Authority{Certificate: template, t: t}
	pair := a.Sign(template)
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	a.must(err)
	a.Certificate = certificate
	a.key = pair.PrivateKey.(*ecdsa.PrivateKey) //nolint:forcetypeassert // Sign has made it
	return a
}

// Sign makes a certificate of the template, whose serial number it sets, and its times unless the template has its end.
func (a *Authority) Sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	signer := a.key
	if signer == nil { // its own
		signer = key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	a.must(err)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, &key.PublicKey, signer)
	a.must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Pool trusts the authority, and nobody else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// WriteCertificate writes the authority's own certificate.
func (a *Authority) WriteCertificate(path string) {
	a.t.Helper()
	Replace(a.t, path, encoded("CERTIFICATE", a.Certificate.Raw))
}

// WritePair writes a certificate and its key, the key first.
func (a *Authority) WritePair(pair tls.Certificate, certificate, key string) {
	a.t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	a.must(err)
	Replace(a.t, key, encoded("PRIVATE KEY", private))
	Replace(a.t, certificate, encoded("CERTIFICATE", pair.Certificate[0]))
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Replace moves a new file over an older one, so that no reader finds half of it. It counts as written long enough ago to be taken over at once.
func Replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ago := time.Now().Add(-time.Minute)
	if err := os.Chtimes(path+".new", ago, ago); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
