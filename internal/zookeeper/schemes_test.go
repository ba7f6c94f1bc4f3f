package zookeeper

import (
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// The table of schemes in docs/security.md, on real servers: who an entry lets in, and whom it keeps out. Scheme sasl is in
// TestKerberosProvesBothSides.
func TestEachSchemeOfAnACL(t *testing.T) {
	e := oneServer.ensemble(t)
	secret := sha1.Sum([]byte("app:secret"))
	for i, c := range []struct {
		name, acl string
		auth      func() [][]byte
		denied    bool
	}{
		{"world", "world:anyone:cdrwa", nil, false},
		{"digest, its user", "digest:app:" + base64.StdEncoding.EncodeToString(secret[:]) + ":cdrwa", always("app:secret"), false},
		{"digest, another user", "digest:app:" + base64.StdEncoding.EncodeToString(secret[:]) + ":cdrwa", always("other:secret"), true},
		{"ip, this one", "ip:127.0.0.1:cdrwa", nil, false},
		{"ip, this network", "ip:127.0.0.0/8:cdrwa", nil, false},
		{"ip, another one", "ip:192.0.2.1:cdrwa", nil, true},
	} {
		client := newClient(t, e, func(config *Config) { config.ACL, config.Auth, config.Directories = c.acl, c.auth, nil })
		_, err := openSession(t, client).Enqueue(t.Context(), fmt.Sprint("/schemes-", i), "-lock-", nil) // below a node that it makes, too
		if errors.Is(err, recipes.ErrDenied) != c.denied || err != nil && !c.denied {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheSchemeX509KnowsACertificateBySubject(t *testing.T) {
	authority := newAuthority(t)
	server, client, other := authority.issue(t, "server"), authority.issue(t, "sidekeeper"), authority.issue(t, "other")
	e := startEnsemble(t, ensemble.Options{Servers: 1, TLS: &ensemble.TLS{KeyStore: server.both, TrustStore: authority.file}})
	with := func(shown certificate) func(*Config) {
		return func(c *Config) {
			secure := &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: authority.pool, ServerName: "127.0.0.1", Certificates: []tls.Certificate{shown.pair},
			}
			c.TLS, c.ACL, c.Directories = func() *tls.Config { return secure }, "x509:CN=sidekeeper:cdrwa", nil
		}
	}
	own := newClient(t, e, with(client))
	path := enqueue(t, openSession(t, own), "/schemes")
	if _, err := own.Get(t.Context(), path); err != nil {
		t.Errorf("its certificate: %v", err)
	}
	if _, err := newClient(t, e, with(other)).Get(t.Context(), path); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("another certificate: %v", err)
	}
}
