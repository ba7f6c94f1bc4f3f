package endtoend

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/authority"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// pause is how long to wait before a look at what must change.
const pause = 50 * time.Millisecond

// A renewal is an ensemble and sidecars that speak TLS, with two generations of all that they need for it.
type renewal struct {
	t             *testing.T
	folder        string // of the files that they read
	ensemble      *ensemble.Ensemble
	crowd         *rollingCrowd
	before, after generation
}

// A generation is an authority for servers and one for sidecars, with what they have signed. A sidecar has the same name in both, since
// to the ensemble it is the subject of its certificate; the authorities have not.
type generation struct {
	servers, clients signer
	server, client   pair509
}

// A signer is an authority, with its certificate as it stands in files.
type signer struct {
	*authority.Authority

	certificate string
}

// A pair509 is a certificate and its key, also as they stand in files.
type pair509 struct {
	tls.Certificate

	certificate, key, serial string
}

func newGeneration(t *testing.T, name string) generation {
	t.Helper()
	g := generation{servers: newSigner(t, "servers "+name), clients: newSigner(t, "sidecars "+name)}
	g.server, g.client = g.servers.issue(t, "zookeeper"), g.clients.issue(t, "sidekeeper")
	return g
}

func newSigner(t *testing.T, name string) signer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authority")
	s := signer{Authority: authority.Named(t, name)}
	s.WriteCertificate(file)
	s.certificate = contentOf(t, file)
	return s
}

func (s signer) issue(t *testing.T, name string) pair509 {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	p := pair509{Certificate: s.Sign(template)}
	file := filepath.Join(t.TempDir(), name)
	s.WritePair(p.Certificate, file, file+".key")
	p.certificate, p.key, p.serial = contentOf(t, file), contentOf(t, file+".key"), template.SerialNumber.String()
	return p
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	return string(content)
}

// newRenewal returns when callers of every kind are served by two sidecars, all with what is of the generation before.
func newRenewal(t *testing.T) *renewal {
	t.Helper()
	r := &renewal{t: t, folder: t.TempDir(), before: newGeneration(t, "before"), after: newGeneration(t, "after")}
	r.startServers(t, 3)
	r.put("ca", r.before.servers.certificate)
	r.put("crt", r.before.client.certificate)
	r.put("key", r.before.client.key)
	with := setup{
		servers: r.ensemble.ClientAddresses(), tick: defaultTick, timeout: 15 * time.Second,
		flags: []string{
			"--zookeeper-tls-ca=" + r.path("ca"), "--zookeeper-tls-cert=" + r.path("crt"), "--zookeeper-tls-key=" + r.path("key"),
		},
	}
	r.crowd = newRollingCrowd(t, startSidecar(t, with), startSidecar(t, with))
	return r
}

// startServers starts servers that have a certificate and trust an authority of the generation before.
func (r *renewal) startServers(t *testing.T, count int) {
	t.Helper()
	r.put("server.pem", r.before.server.key+r.before.server.certificate)
	r.put("trust.pem", r.before.clients.certificate)
	closeShared()
	var err error
	r.ensemble, err = ensemble.Start(t.Context(), ensemble.Options{
		Servers: count, TLS: &ensemble.TLS{KeyStore: r.path("server.pem"), TrustStore: r.path("trust.pem")},
	})
	must(t, err)
	t.Cleanup(func() {
		if folder := os.Getenv("KEEP_TEST_LOGS"); folder != "" && t.Failed() {
			keepLogs(t, r.ensemble, folder)
		}
		r.ensemble.Close()
	})
}

func (r *renewal) path(name string) string { return filepath.Join(r.folder, name) }

// put has a new file take an older one's place.
func (r *renewal) put(name, content string) {
	r.t.Helper()
	authority.Replace(r.t, r.path(name), content)
}

// ask connects to a server and returns the serial number of the certificate that it shows, and what it answers whoever shows ours.
func (r *renewal) ask(address string, ours pair509) (serial, answer string, err error) {
	trusted := r.before.servers.Pool()
	trusted.AddCert(r.after.servers.Authority.Certificate)
	dialer := &net.Dialer{Timeout: patient}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: trusted, Certificates: []tls.Certificate{ours.Certificate},
	})
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	serial = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		return serial, "", err
	}
	if _, err := io.WriteString(conn, "ruok"); err != nil {
		return serial, "", err
	}
	said, err := io.ReadAll(conn)
	return serial, string(said), err
}

// logged is what the sidecar has logged so far, by line.
func (s *sidecar) logged(t *testing.T) []string {
	t.Helper()
	return strings.Split(contentOf(t, filepath.Join(s.folder, "log")), "\n")
}
