package server_test

import (
	"crypto/x509"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

func TestAnAuthorityVouchesForItsOwnTrustDomainOnly(t *testing.T) {
	t.Parallel()
	common, prod, test := newAuthority(t), newAuthority(t), newAuthority(t)
	folder := t.TempDir()
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	common.writeServer(files)
	common.writeClientCA(files)
	prod.WriteCertificate(folder + "/prod")
	test.WriteCertificate(folder + "/test")
	p := newProbe(t, func(o *server.Options) {
		o.Listen, o.TLS = []string{"127.0.0.1:0"}, files
		o.TrustDomains = []string{"prod.test=" + folder + "/prod", "test.test=" + folder + "/test"}
	})
	named := func(id string) *x509.Certificate { return spiffe(t, id) }
	get := func(by *testAuthority, template *x509.Certificate) string {
		_, err := lockv1.NewLockServiceClient(p.dial(p.address(), withTransport(by.client(common, template)))).
			Get(within(t), &lockv1.GetRequest{})
		return status.Code(err).String()
	}
	for _, c := range []struct {
		what     string
		by       *testAuthority
		template *x509.Certificate
		want     string
	}{
		{"prod's of prod", prod, named("spiffe://prod.test/web"), "OK"},
		{"test's of test", test, named("spiffe://test.test/web"), "OK"},
		{"test's of prod", test, named("spiffe://prod.test/web"), "Unavailable"},
		{"the common one's of prod", common, named("spiffe://prod.test/web"), "Unavailable"},
		{"prod's of another domain", prod, named("spiffe://other.test/web"), "Unavailable"},
		{"prod's of a host", prod, someCaller(), "Unavailable"},
		{"the common one's of another domain", common, named("spiffe://other.test/web"), "OK"},
		{"the common one's of a longer domain", common, named("spiffe://prod.test.example/web"), "OK"},
		{"the common one's of a host", common, someCaller(), "OK"},
	} {
		same(t, c.what, get(c.by, c.template), c.want)
	}
	test.WriteCertificate(folder + "/prod")
	same(t, "test's of prod, when it is prod's authority", get(test, named("spiffe://prod.test/web")), "OK")
	same(t, "prod's of prod, then", get(prod, named("spiffe://prod.test/web")), "Unavailable")
}

func TestATrustDomainThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	authority := newAuthority(t)
	authority.writeServer(files)
	authority.writeClientCA(files)
	for domains, want := range map[string]string{
		"prod.test":                             `--tls-trust-domain "prod.test": a SPIFFE trust domain and the file`,
		"prod.test=":                            "a SPIFFE trust domain and the file",
		"Prod.test=/ca":                         "a SPIFFE trust domain and the file",
		"prod.test/a=/ca":                       "a SPIFFE trust domain and the file",
		"a=" + files.ClientCA + ",a=/ca":        "each trust domain once",
		"a=/nowhere":                            "no such file",
		"a=" + files.ClientCA + ",b=" + folder:  "is a directory",
		"a=" + files.Key:                        "no certificate in it",
		"a=" + files.ClientCA + ",b=" + "/none": "no such file",
	} {
		_, err := opens(server.Options{Listen: []string{"127.0.0.1:0"}, TLS: files, TrustDomains: strings.Split(domains, ",")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", domains, err, want)
		}
	}
}
