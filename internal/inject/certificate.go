package inject

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/certificate"
)

type pair = certificate.Pair

// issue makes a pair for host, and the authority that has signed it and signs nothing else: its key is forgotten. Both are
// valid from an hour ago, for clocks that are behind, until lifetime from now.
func issue(host string, now time.Time, lifetime time.Duration) (made pair, authority []byte, err error) {
	signer, err := certificate.NewAuthority("sidekeeper injector, "+now.UTC().Format(time.RFC3339), now.Add(-time.Hour), now.Add(lifetime))
	if err != nil {
		return pair{}, nil, err
	}
	made, err = signer.Issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "sidekeeper injector"}, DNSNames: []string{host},
	}, x509.ExtKeyUsageServerAuth)
	return made, signer.Certificate, err
}

// stillValid keeps the certificates of a bundle that have not expired, and drops what is none.
func stillValid(bundle []byte, now time.Time) []byte {
	var kept []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if parsed, err := x509.ParseCertificate(block.Bytes); err == nil && parsed.NotAfter.After(now) {
			kept = append(kept, pem.EncodeToMemory(block)...)
		}
	}
	return kept
}
