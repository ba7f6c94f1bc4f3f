package dev

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/certificate"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// certificatesLast is for how long certificates for development are good.
const certificatesLast = 30 * 24 * time.Hour

// makeCertificates fills a folder with what TLS takes, made anew: ca.pem, which signed all others, server.pem for
// loopback addresses with server-key.pem, and client.pem with client-key.pem for callers. expired.pem with expired-key.pem is server.pem as it
// would be if it had expired an hour ago: callers and sidecars can try what they are told then.
func makeCertificates(folder string) (server.TLSFiles, error) {
	files := server.TLSFiles{
		Certificate: filepath.Join(folder, "server.pem"),
		Key:         filepath.Join(folder, "server-key.pem"),
		ClientCA:    filepath.Join(folder, "ca.pem"),
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return files, err
	}
	now := time.Now()
	own, err := certificate.NewAuthority("sidekeeper dev authority", now.Add(-time.Minute), now.Add(certificatesLast))
	if err != nil {
		return files, err
	}
	issue := func(template x509.Certificate, certificateFile, keyFile string) error {
		pair, err := own.Issue(template, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(keyFile, pair.Key, 0o600), os.WriteFile(certificateFile, pair.Certificate, 0o600))
	}
	named := x509.Certificate{
		Subject:     pkix.Name{CommonName: "sidekeeper dev"},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	expired := named
	expired.NotBefore, expired.NotAfter = now.Add(-certificatesLast), now.Add(-time.Hour)
	return files, errors.Join(
		os.WriteFile(files.ClientCA, own.Certificate, 0o600),
		issue(named, files.Certificate, files.Key),
		issue(expired, filepath.Join(folder, "expired.pem"), filepath.Join(folder, "expired-key.pem")),
		issue(x509.Certificate{Subject: pkix.Name{CommonName: "client"}, DNSNames: []string{"client"}},
			filepath.Join(folder, "client.pem"), filepath.Join(folder, "client-key.pem")),
	)
}
