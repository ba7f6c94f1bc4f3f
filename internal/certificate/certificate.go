// Package certificate issues certificates and reads them, all in PEM.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// A Pair is a certificate and its key.
type Pair struct{ Certificate, Key []byte }

// An Authority signs certificates that are valid for as long as its own. Its key is kept nowhere else.
type Authority struct {
	Certificate []byte

	parsed *x509.Certificate
	key    *ecdsa.PrivateKey
}

// NewAuthority makes an authority that is called so.
func NewAuthority(name string, from, until time.Time) (*Authority, error) {
	a := &Authority{parsed: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	key, der, err := a.sign(a.parsed)
	if err != nil {
		return nil, err
	}
	a.Certificate, a.key = encode("CERTIFICATE", der), key
	a.parsed, err = x509.ParseCertificate(der)
	return a, err
}

// Issue makes a key, and the template's certificate for it, for these uses of TLS. It is valid as the template has it, else as its authority.
func (a *Authority) Issue(template x509.Certificate, uses ...x509.ExtKeyUsage) (Pair, error) {
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = a.parsed.NotBefore, a.parsed.NotAfter
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, uses
	key, der, err := a.sign(&template)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	return Pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", encoded)}, err
}

// sign makes a key and the certificate for it, which an authority without a key signs with this one.
func (a *Authority) sign(template *x509.Certificate) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, &key.PublicKey, signer)
	return key, der, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Load parses a pair that these two say where it is from.
func (p Pair) Load(certificateFrom, keyFrom string) (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", certificateFrom, keyFrom, err)
	}
	return &loaded, nil
}

// Pool trusts the authorities in a bundle, which from says where it is from.
func Pool(bundle []byte, from string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%s: no certificate in it", from)
	}
	return pool, nil
}
