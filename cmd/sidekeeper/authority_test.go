package main

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A testAuthority signs certificates, and writes them into a folder as files that sidecars read.
type testAuthority struct {
	*authority.Authority

	t      *testing.T
	folder string
}

// newTestAuthority writes `ca.crt`.
func newTestAuthority(t *testing.T, folder string) *testAuthority {
	t.Helper()
	a := &testAuthority{authority.New(t), t, folder}
	a.WriteCertificate(folder + "/ca.crt")
	return a
}

// issue writes `name.crt` and `name.key`, as files that take the place of older ones.
func (a *testAuthority) issue(name string) {
	a.t.Helper()
	pair := a.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name + ".test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	a.WritePair(pair, a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
}

// replaceFile moves a new file over the old one.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	authority.Replace(t, path, text)
}

// clientConfig is of who shows the certificate with this name, and trusts this authority.
func (a *testAuthority) clientConfig(name string) *tls.Config {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Pool(), Certificates: []tls.Certificate{pair}}
}

func TestTheEndOfTheCertificateTowardsTheEnsembleIsToldAndCounted(t *testing.T) {
	t.Parallel()
	ours := newTestAuthority(t, t.TempDir())
	ours.issueExpired("old")
	book, metrics := &expect.Logbook{}, server.NewMetrics()
	s := &settings{tlsCA: ours.folder + "/ca.crt", tlsCert: ours.folder + "/old.crt", tlsKey: ours.folder + "/old.key"}
	if _, err := s.ensembleTLS(book.Logger(), metrics); err != nil {
		t.Fatal(err)
	}
	if told := book.Text(); !strings.Contains(told, `"msg":"the certificate has expired","flag":"--zookeeper-tls-cert","expires":1577923200}`) {
		t.Error(told)
	}
	const sample = `sidekeeper_certificate_not_after_timestamp_seconds{side="ensemble"} 1.5779232e+09`
	if shown := expect.Scrape(metrics.Handler()); !strings.Contains(shown, sample) {
		t.Error(shown)
	}
}
