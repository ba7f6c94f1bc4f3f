package caller

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// IdentityOf names the subject of a verified certificate in words that outlive its renewal: its SPIFFE id, else the first of its
// DNS names, else its common name if that is printable ASCII, else its key. What begins the identity says which, so that no
// certificate passes for one of another kind.
func IdentityOf(certificate *x509.Certificate) (string, error) {
	identity, err := spiffeOf(certificate)
	switch {
	case err != nil || identity != "":
		return identity, err
	case len(certificate.DNSNames) > 0:
		identity = policy.DNS + strings.ToLower(certificate.DNSNames[0])
	case policy.BrokenIdentityRule(policy.Certificate+certificate.Subject.CommonName) == "":
		identity = policy.Certificate + certificate.Subject.CommonName
	default:
		key := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		identity = policy.Key + hex.EncodeToString(key[:16])
	}
	if rule := policy.BrokenIdentityRule(identity); rule != "" {
		return "", fmt.Errorf("the certificate's identity is %.64q: %s", identity, rule)
	}
	return identity, nil
}

// spiffeOf is the SPIFFE id of a certificate; empty if it has none. One with several names nobody: the standard allows one URI.
func spiffeOf(certificate *x509.Certificate) (string, error) {
	if !hasSPIFFE(certificate.URIs) {
		return "", nil
	}
	if len(certificate.URIs) != 1 {
		return "", fmt.Errorf("a certificate with a SPIFFE id has one URI, not %d", len(certificate.URIs))
	}
	id := certificate.URIs[0].String()
	if rule := policy.BrokenIdentityRule(id); rule != "" {
		return "", fmt.Errorf("the SPIFFE id is %.64q: %s", id, rule)
	}
	return id, nil
}

func hasSPIFFE(uris []*url.URL) bool {
	return slices.ContainsFunc(uris, func(uri *url.URL) bool { return strings.EqualFold(uri.Scheme, "spiffe") })
}
