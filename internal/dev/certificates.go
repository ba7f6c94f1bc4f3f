package dev

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/server"
)

// certificatesLast is for how long certificates for development are good.
const certificatesLast = 30 * 24 * time.Hour

// An authority signs certificates. Its key is kept nowhere.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// makeCertificates fills a folder with what TLS takes, made anew: ca.pem, which signed all others, server.pem for
// loopback addresses with server-key.pem, and client.pem with client-key.pem for callers.
func makeCertificates(folder string) (server.TLSFiles, error) {
	files := server.TLSFiles{
		Certificate: filepath.Join(folder, "server.pem"),
		Key:         filepath.Join(folder, "server-key.pem"),
		ClientCA:    filepath.Join(folder, "ca.pem"),
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return files, err
	}
	own, err := newAuthority()
	if err != nil {
		return files, err
	}
	sidecar := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "sidekeeper dev"},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "client"}, DNSNames: []string{"client"}}
	return files, errors.Join(
		writePEM(files.ClientCA, "CERTIFICATE", own.certificate.Raw),
		own.issue(sidecar, files.Certificate, files.Key),
		own.issue(client, filepath.Join(folder, "client.pem"), filepath.Join(folder, "client-key.pem")),
	)
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sidekeeper dev authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	a.certificate = template
	der, err := a.sign(template, key)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(certificatesLast)
	return x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
}

// issue makes a key and a certificate for it.
func (a *authority) issue(template *x509.Certificate, certificateFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	certificate, err := a.sign(template, key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(keyFile, "PRIVATE KEY", encoded), writePEM(certificateFile, "CERTIFICATE", certificate))
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
