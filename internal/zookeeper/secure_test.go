package zookeeper

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

func TestWithCredentialsOnlyTheCreatorSeesItsNodes(t *testing.T) {
	e := oneServer.ensemble(t)
	own := newClient(t, e, func(c *Config) { c.Auth = always("sidekeeper:secret"); c.Directories = nil })
	same := newClient(t, e, func(c *Config) { c.Auth = always("sidekeeper:secret"); c.Directories = nil })
	other := newClient(t, e, func(c *Config) { c.Directories = nil })
	s := openSession(t, own)
	path := enqueue(t, s, "/secure/locks/orders")

	if _, err := same.Get(t.Context(), path); err != nil {
		t.Errorf("a sidecar with the same credentials: %v", err)
	}
	if _, err := other.Get(t.Context(), path); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("without credentials, read: %v", err)
	}
	if _, err := other.Commit(t.Context(), recipes.Delete(path, -1)); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("without credentials, delete: %v", err)
	}
	if _, err := openSession(t, other).Enqueue(t.Context(), "/secure/locks/orders", "-lock-", nil); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("without credentials, create: %v", err)
	}
	// The credentials are sent again on every connection.
	e.Server(1).ClientLink().Reset()
	if err := s.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Dequeue(t.Context(), path)
	if _, err := own.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("after a new connection and Dequeue: %v", err)
	}
}

// always are credentials that never change.
func always(secret string) func() [][]byte {
	return func() [][]byte { return [][]byte{[]byte(secret)} }
}

func TestACLs(t *testing.T) {
	cases := []struct {
		acl, auth, want string
	}{
		{"", "", "world:anyone:31"},
		{"", "a:b", "auth::31"},
		{"creator", "a:b", "auth::31"},
		{"creator", "", "error"},
		{"open", "a:b", "world:anyone:31"},
		{"digest:u:hash=:rw,ip:10.0.0.1:r", "", "digest:u:hash=:3 ip:10.0.0.1:1"},
		{"digest", "", "error"},
		{"world:anyone:x", "", "error"},
	}
	for _, c := range cases {
		config := Config{ACL: c.acl}
		if c.auth != "" {
			config.Auth = always(c.auth)
		}
		acl, err := config.parseACL()
		got := ""
		for i, entry := range acl {
			if i > 0 {
				got += " "
			}
			got += entry.Scheme + ":" + entry.ID + ":" + big.NewInt(int64(entry.Perms)).String()
		}
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q with %q: got %q (%v), want %q", c.acl, c.auth, got, err, c.want)
		}
	}
}

func TestTLSTowardsTheEnsembleNeedsTheRightCertificates(t *testing.T) {
	authority := newAuthority(t)
	server, client := authority.issue(t, "server"), authority.issue(t, "sidekeeper")
	stranger := newAuthority(t).issue(t, "stranger")
	e := startEnsemble(t, ensemble.Options{Servers: 1, TLS: &ensemble.TLS{KeyStore: server.both, TrustStore: authority.file}})
	with := func(pair *tls.Certificate) func(*Config) {
		return func(c *Config) {
			secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.pool, ServerName: "127.0.0.1"}
			if pair != nil {
				secure.Certificates = []tls.Certificate{*pair}
			}
			c.TLS = func() *tls.Config { return secure }
		}
	}
	s := openSession(t, newClient(t, e, with(&client.pair)))
	path := enqueue(t, s, "/sidekeeper/tls") // creator-only: the certificate is the credential
	s.Dequeue(t.Context(), path)
	for name, pair := range map[string]*tls.Certificate{"no certificate": nil, "a stranger's": &stranger.pair} {
		if _, err := newClient(t, e, with(pair)).Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type authority struct {
	key  *ecdsa.PrivateKey
	self *x509.Certificate
	pool *x509.CertPool
	file string
}

type certificate struct {
	pair tls.Certificate
	both string // file with key and chain
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool(), file: filepath.Join(t.TempDir(), "ca.pem")}
	template := template(t, "authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	var der []byte
	a.key, der = sign(t, template, nil, nil)
	var err error
	if a.self, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.self)
	writePEM(t, a.file, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) issue(t *testing.T, name string) certificate {
	t.Helper()
	key, der := sign(t, template(t, name), a.self, a.key)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := certificate{both: filepath.Join(t.TempDir(), name+".pem")}
	c.pair = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	writePEM(t, c.both, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return c
}

func template(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

// sign makes a key and a certificate for it, signed by the issuer or by itself.
func sign(t *testing.T, template, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func writePEM(t *testing.T, file string, blocks ...*pem.Block) {
	t.Helper()
	var content []byte
	for _, block := range blocks {
		content = append(content, pem.EncodeToMemory(block)...)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The file of credentials has the old ones, then both, then the new ones. Whoever began with the old ones goes on with them, and
// everybody reads what those with the new ones make.
func TestCredentialsAreRotatedWhileSessionsGoOn(t *testing.T) {
	e := oneServer.ensemble(t)
	var now atomic.Pointer[[][]byte]
	set := func(secrets ...string) {
		var credentials [][]byte
		for _, secret := range secrets {
			credentials = append(credentials, []byte(secret))
		}
		now.Store(&credentials)
	}
	set("sidekeeper:old")
	rotated := func(c *Config) { c.Auth = func() [][]byte { return *now.Load() }; c.Directories = nil }
	own, other := newClient(t, e, rotated), newClient(t, e, rotated)
	before := openSession(t, own)
	kept := enqueue(t, before, "/before/locks/orders")
	if _, err := other.Get(t.Context(), kept); err != nil { // so that its reader is there, with the old ones
		t.Fatal(err)
	}

	set("sidekeeper:old", "sidekeeper:new")
	enqueue(t, openSession(t, own), "/rotated/locks/orders")
	set("sidekeeper:new")
	fresh := enqueue(t, openSession(t, own), "/rotated/locks/orders")
	if _, err := own.Get(t.Context(), fresh); err != nil {
		t.Errorf("read through the reader of who made it, at once: %v", err)
	}
	for ctx := within(t, 20*time.Second); ; { // the other sidecar opens no session, and looks every two seconds
		_, err := other.Get(ctx, fresh)
		if err == nil {
			break
		}
		if !errors.Is(err, recipes.ErrDenied) {
			t.Fatalf("read by the other sidecar: %v", err)
		}
	}
	e.Server(1).ClientLink().Reset()
	if err := before.flush(t.Context()); err != nil {
		t.Fatalf("the session from before, on a new connection: %v", err)
	}
	before.Dequeue(t.Context(), kept)
	reader := newClient(t, e, func(c *Config) { c.Auth = always("sidekeeper:old"); c.Directories = nil })
	if _, err := reader.Get(t.Context(), kept); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("what the session from before has given up: %v", err)
	}
	if _, err := reader.Get(t.Context(), fresh); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("what was made with the new ones, read with the old: %v", err)
	}
}
