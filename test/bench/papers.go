package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// makePapers writes a certificate and a key for each name, signed by an authority that it makes for them.
func makePapers(directory string, names ...string) error {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if err := sign(directory, "authority", authority, authority, signer, signer); err != nil {
		return err
	}
	for _, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		named := &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}}
		if err := sign(directory, name, named, authority, key, signer); err != nil {
			return err
		}
	}
	return nil
}

func sign(directory, name string, named, by *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	named.SerialNumber = new(big.Int).SetBytes([]byte(name))
	named.NotBefore, named.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	certificate, err := x509.CreateCertificate(rand.Reader, named, by, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(directory, name+".crt"), "CERTIFICATE", certificate),
		writePEM(filepath.Join(directory, name+".key"), "PRIVATE KEY", private),
	)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func poolOf(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool, nil
}
