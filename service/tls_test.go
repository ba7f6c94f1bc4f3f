package service

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// An authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true}
	a.certificate, a.key = template, nil
	pair := a.sign(template)
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	must(t, err)
	a.certificate, a.key = certificate, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign makes a certificate of the template; of its own if it has no key yet.
func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	signer := a.key
	if signer == nil {
		signer = key
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(a.t, err)
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, signer)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// client makes the credentials of a caller whose certificate has this subject; none if the template is nil.
func (a *authority) client(server *authority, template *x509.Certificate) credentials.TransportCredentials {
	config := &tls.Config{RootCAs: server.pool(), ServerName: "sidecar.test", MinVersion: tls.VersionTLS12}
	if template != nil {
		config.Certificates = []tls.Certificate{a.sign(template)}
	}
	return credentials.NewTLS(config)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	must(t, os.Rename(file+".new", file))
}

func (a *authority) writeServer(files TLSFiles) {
	a.t.Helper()
	pair := a.sign(&x509.Certificate{DNSNames: []string{"sidecar.test"}})
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(a.t, err)
	writePEM(a.t, files.Key, "PRIVATE KEY", key)
	writePEM(a.t, files.Certificate, "CERTIFICATE", pair.Certificate[0])
}

func (a *authority) writeClientCA(files TLSFiles) {
	a.t.Helper()
	writePEM(a.t, files.ClientCA, "CERTIFICATE", a.certificate.Raw)
}

// newTLSProbe serves TLS on loopback with certificates of a.
func newTLSProbe(t *testing.T, a *authority) (*probe, TLSFiles) {
	t.Helper()
	folder := t.TempDir()
	files := TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	a.writeServer(files)
	a.writeClientCA(files)
	return newProbe(t, func(o *ServerOptions) { o.Listen, o.TLS = []string{"127.0.0.1:0"}, files }), files
}

func someCaller() *x509.Certificate { return &x509.Certificate{DNSNames: []string{"app.test"}} }

func TestCertificatesNameTheirCaller(t *testing.T) {
	a := newAuthority(t)
	p, _ := newTLSProbe(t, a)
	met := make(chan caller, 1)
	p.get = func(ctx context.Context) error { met <- callerOf(ctx); return nil }
	spiffe, err := url.Parse("spiffe://test/app")
	must(t, err)
	for want, template := range map[string]*x509.Certificate{
		"spiffe://test/app": {URIs: []*url.URL{spiffe}, DNSNames: []string{"app.test"}},
		"dns:app.test":      {DNSNames: []string{"App.test", "other.test"}, Subject: pkix.Name{CommonName: "other"}},
		"cert:app":          {Subject: pkix.Name{CommonName: "app"}},
		"cert:key:":         {Subject: pkix.Name{CommonName: "key:"}},
		"key:":              {},
	} {
		_, err := lockv1.NewLockServiceClient(p.dial(p.address(), withTransport(a.client(a, template)))).
			Get(within(t), &lockv1.GetRequest{})
		must(t, err)
		if got := receive(t, met); !strings.HasPrefix(got.identity, want) || got.operator {
			t.Errorf("got %s, want %s", described(got), want)
		}
	}
}

func TestCallersWithoutACertificateOfTheAuthorityAreRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	p, _ := newTLSProbe(t, a)
	for who, secure := range map[string]grpc.DialOption{
		"without a certificate":    withTransport(a.client(a, nil)),
		"of another authority":     withTransport(other.client(a, someCaller())),
		"in plaintext":             grpc.EmptyDialOption{},
		"who trusts somebody else": withTransport(a.client(other, someCaller())),
	} {
		_, err := lockv1.NewLockServiceClient(p.dial(p.address(), secure)).Get(within(t), &lockv1.GetRequest{})
		same(t, "caller "+who, status.Code(err), "Unavailable")
	}
}

func TestRenewedFilesAreUsedAndOpenStreamsGoOn(t *testing.T) {
	old, renewed := newAuthority(t), newAuthority(t)
	p, files := newTLSProbe(t, old)
	ended := p.watchEnd()
	connection := p.dial(p.address(), withTransport(old.client(old, someCaller())))
	p.begin(within(t), connection)

	writePEM(t, files.Certificate, "CERTIFICATE", renewed.certificate.Raw) // not this key's: half renewed
	get := func(connection *grpc.ClientConn) string {
		_, err := lockv1.NewLockServiceClient(connection).Get(within(t), &lockv1.GetRequest{})
		return status.Code(err).String()
	}
	same(t, "while half renewed", get(p.dial(p.address(), withTransport(old.client(old, someCaller())))), "OK")

	renewed.writeServer(files)
	renewed.writeClientCA(files)
	same(t, "with the new authority", get(p.dial(p.address(), withTransport(renewed.client(renewed, someCaller())))), "OK")
	same(t, "with the old one's caller", get(p.dial(p.address(), withTransport(old.client(renewed, someCaller())))), "Unavailable")
	same(t, "on the open connection", get(connection), "OK")
	must(t, connection.Close())
	same(t, "silent", receive(t, ended).fellSilent(), false)
}

func TestACallerThatFreezesUnderTLSIsSilent(t *testing.T) {
	a := newAuthority(t)
	p, _ := newTLSProbe(t, a)
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address(), withTransport(a.client(a, someCaller())))
	p.begin(within(t), connection)
	close(freezer.frozen)
	same(t, "silent", receive(t, ended).fellSilent(), true)
}

func TestTLSFilesThatAreNotThereAreAnError(t *testing.T) {
	for files, want := range map[TLSFiles]string{
		{Certificate: "/nowhere"}:            "all three or none",
		{"/nowhere", "/nowhere", "/nowhere"}: "no such file",
	} {
		_, err := NewServer(ServerOptions{Listen: []string{"127.0.0.1:0"}, TLS: files, MaxStreams: 1, Log: noLog(), Metrics: NewMetrics()},
			&probe{}, &probe{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q in it", files, err, want)
		}
	}
}
