package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// A trustDomain has authorities of its own: they alone vouch for its SPIFFE ids, and for nothing else.
type trustDomain struct{ name, file string }

// parseTrustDomains reads DOMAIN=FILE, of each domain once.
func parseTrustDomains(list []string) (domains []trustDomain, err error) {
	known := map[string]bool{}
	for _, text := range list {
		name, file, _ := strings.Cut(text, "=")
		switch {
		case name == "" || strings.Contains(name, "/") || policy.BrokenIdentityRule(policy.SPIFFE+name) != "" || file == "":
			err = fmt.Errorf("--tls-trust-domain %q: a SPIFFE trust domain and the file with its CA certificates, as in prod.example=/ca.pem", text)
		case known[name]:
			err = fmt.Errorf("--tls-trust-domain %q: each trust domain once", text)
		}
		if err != nil {
			return nil, err
		}
		known[name] = true
		domains = append(domains, trustDomain{name, file})
	}
	return domains, nil
}

// A trust is which authorities vouch for whom.
type trust struct {
	others *x509.CertPool            // for whoever is of no trust domain that is bound
	bound  map[string]*x509.CertPool // by trust domain
}

// verify says whether the authority of a certificate, which one of all has signed, may vouch for its identity.
func (t trust) verify(state tls.ConnectionState) error {
	leaf := state.PeerCertificates[0]
	identity, err := caller.IdentityOf(leaf)
	if err != nil {
		return err
	}
	authorities := t.others
	if id, ok := strings.CutPrefix(identity, policy.SPIFFE); ok {
		domain, _, _ := strings.Cut(id, "/")
		if own := t.bound[domain]; own != nil {
			authorities = own
		}
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("its authority may not vouch for %s: %w", identity, err)
	}
	return nil
}
