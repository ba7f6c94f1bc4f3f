package inject

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

// A pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

// issue makes a pair for host, and the authority that has signed it and signs nothing else: its key is forgotten. Both are
// valid from an hour ago, for clocks that are behind, until lifetime from now.
func issue(host string, now time.Time, lifetime time.Duration) (made pair, authority []byte, err error) {
	template := x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime)}

	root := template
	root.Subject = pkix.Name{CommonName: "sidekeeper injector, " + now.UTC().Format(time.RFC3339)}
	root.IsCA, root.BasicConstraintsValid, root.MaxPathLenZero = true, true, true
	root.KeyUsage = x509.KeyUsageCertSign
	rootKey, rootBytes, err := sign(&root, nil, nil)
	if err != nil {
		return pair{}, nil, err
	}
	parent, err := x509.ParseCertificate(rootBytes)
	if err != nil {
		return pair{}, nil, err
	}

	leaf := template
	leaf.Subject, leaf.DNSNames = pkix.Name{CommonName: "sidekeeper injector"}, []string{host}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leafKey, leafBytes, err := sign(&leaf, parent, rootKey)
	if err != nil {
		return pair{}, nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return pair{}, nil, err
	}
	return pair{encode("CERTIFICATE", leafBytes), encode("PRIVATE KEY", key)}, encode("CERTIFICATE", rootBytes), nil
}

// sign makes a key and the certificate for it, signed by the parent or, without one, by itself.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	made, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	return key, made, err
}

func encode(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

// load parses a pair.
func (p pair) load() (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		return nil, fmt.Errorf("certificate and key: %w", err)
	}
	return &loaded, nil
}

// stillValid keeps the certificates of a bundle that have not expired, and drops what is none.
func stillValid(bundle []byte, now time.Time) []byte {
	var kept []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(now) {
			kept = append(kept, pem.EncodeToMemory(block)...)
		}
	}
	return kept
}
