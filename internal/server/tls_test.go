package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

// A testAuthority signs certificates of sidecars and of callers.
type testAuthority struct{ *authority.Authority }

func newAuthority(t testing.TB) *testAuthority {
	t.Helper()
	return &testAuthority{authority.New(t)}
}

// client makes the credentials of a caller whose certificate has this subject; none if the template is nil.
func (a *testAuthority) client(of *testAuthority, template *x509.Certificate) credentials.TransportCredentials {
	config := &tls.Config{RootCAs: of.Pool(), ServerName: "sidecar.test", MinVersion: tls.VersionTLS12}
	if template != nil {
		config.Certificates = []tls.Certificate{a.Sign(template)}
	}
	return credentials.NewTLS(config)
}

func (a *testAuthority) writeServer(files server.TLSFiles) {
	a.WritePair(a.Sign(&x509.Certificate{DNSNames: []string{"sidecar.test"}}), files.Certificate, files.Key)
}

func (a *testAuthority) writeClientCA(files server.TLSFiles) { a.WriteCertificate(files.ClientCA) }

// newTLSProbe serves TLS on loopback with certificates of a.
func newTLSProbe(t *testing.T, a *testAuthority, change ...func(*server.Options)) (*probe, server.TLSFiles) {
	t.Helper()
	folder := t.TempDir()
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	a.writeServer(files)
	a.writeClientCA(files)
	change = append(change, func(o *server.Options) { o.Listen, o.TLS = []string{"127.0.0.1:0"}, files })
	return newProbe(t, change...), files
}

func someCaller() *x509.Certificate { return &x509.Certificate{DNSNames: []string{"app.test"}} }

func TestCertificatesNameTheirCaller(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p, _ := newTLSProbe(t, a)
	met := make(chan caller.Caller, 1)
	p.get = func(ctx context.Context) error { met <- caller.Of(ctx); return nil }
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
		if got := receive(t, met); !strings.HasPrefix(got.Identity, want) || got.Operator {
			t.Errorf("got %s, want %s", described(got), want)
		}
	}
}

func TestCallersWithoutACertificateOfTheAuthorityAreRefused(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	old, renewed := newAuthority(t), newAuthority(t)
	p, files := newTLSProbe(t, old)
	ended := p.watchEnd()
	connection := p.dial(p.address(), withTransport(old.client(old, someCaller())))
	p.begin(within(t), connection)

	renewed.WriteCertificate(files.Certificate) // not this key's: half renewed
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
	same(t, "silent", receive(t, ended).FellSilent(), false)
}

func TestACallerThatFreezesUnderTLSIsSilent(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p, _ := newTLSProbe(t, a, pinging)
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address(), withTransport(a.client(a, someCaller())))
	p.begin(within(t), connection)
	close(freezer.frozen)
	same(t, "silent", receive(t, ended).FellSilent(), true)
}

// The guardian of a command has a second descriptor, and kills what counts on the connection before it lets go of that.
func TestWhoClosesATLSConnectionHasNotLeftWhileAnotherHoldsIt(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for name, lets := range map[string]bool{"until the sidecar gives up": false, "until it lets go": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newTLSProbe(t, a, pinging)
			ended := p.watchEnd()
			connection, socket := p.dialFreezer(p.address(), withTransport(a.client(a, someCaller())))
			p.begin(within(t), connection)
			second, err := socket.Conn.(*net.TCPConn).File()
			must(t, err)
			defer second.Close()
			must(t, connection.Close())
			if lets {
				must(t, second.Close())
			}
			same(t, "silent", receive(t, ended).FellSilent(), !lets)
		})
	}
}

func TestTLSFilesThatAreNotThereAreAnError(t *testing.T) {
	t.Parallel()
	for files, want := range map[server.TLSFiles]string{
		{Certificate: "/nowhere"}:            "all three or none",
		{"/nowhere", "/nowhere", "/nowhere"}: "no such file",
	} {
		_, err := opens(server.Options{Listen: []string{"127.0.0.1:0"}, TLS: files})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q in it", files, err, want)
		}
	}
}
