package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestACommandSaysWhatIsWrongWithTLSAndTheSidecarLogsIt(t *testing.T) {
	t.Parallel()
	_, ensemble := memoryEnsemble(t)
	folder, elsewhere := t.TempDir(), t.TempDir()
	ours, others := newTestAuthority(t, folder), newTestAuthority(t, elsewhere)
	ours.issue("server")
	ours.issue("client")
	ours.issueExpired("old")
	others.issue("client")
	ca, certificate, key := "--tls-ca="+folder+"/ca.crt", "--tls-cert="+folder+"/client.crt", "--tls-key="+folder+"/client.key"
	all := []string{ca, certificate, key}
	overTLS := []string{"--tls-cert=" + folder + "/server.crt", "--tls-key=" + folder + "/server.key", "--tls-client-ca=" + folder + "/ca.crt"}
	for name, c := range map[string]struct {
		sidecar, command []string
		says, logs       string
	}{
		"a caller without TLS": {
			overTLS, nil, "it demands TLS: give --tls-ca, and --tls-cert with --tls-key",
			"the caller does not speak TLS, and this listener demands it",
		},
		"a sidecar without TLS": {
			nil, all, "it does not answer over TLS: leave out --tls-ca, --tls-cert and --tls-key", "the caller speaks TLS, and this listener does not",
		},
		"another authority": {
			overTLS,
			[]string{"--tls-ca=" + elsewhere + "/ca.crt", certificate, key},
			"no CA of --tls-ca " + elsewhere + `/ca.crt has signed its certificate: that is of the CA "CN=authority"`, "bad certificate",
		},
		"no authority": {
			overTLS,
			[]string{certificate, key},
			`its certificate is of a CA that this machine does not trust, "CN=authority": give --tls-ca`, "bad certificate",
		},
		"no certificate": {
			overTLS, []string{ca}, "it demands a client certificate: give --tls-cert and --tls-key", "client didn't provide a certificate",
		},
		"a stranger's certificate": {
			overTLS,
			[]string{ca, "--tls-cert=" + elsewhere + "/client.crt", "--tls-key=" + elsewhere + "/client.key"},
			"it refuses the certificate of --tls-cert " + elsewhere + "/client.crt (", "x509: certificate signed by unknown authority",
		},
		"an expired certificate": {
			overTLS,
			[]string{ca, "--tls-cert=" + folder + "/old.crt", "--tls-key=" + folder + "/old.key"},
			"the certificate of --tls-cert " + folder + "/old.crt expired on 2020-01-02T00:00:00Z: renew it", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, append(c.sidecar, "--zookeeper="+ensemble, "--drain-timeout=100ms")...)
			for range 2 {
				_, said, code := output(t, append(c.command, "--address="+s.address, "lock", "ls")...)
				if code != exit.Unreachable || !strings.HasPrefix(said, "sidekeeper: cannot reach the sidecar at "+s.address+": "+c.says) {
					t.Errorf("exit %d, %q", code, said)
				}
			}
			s.signal(os.Interrupt)
			s.ends()
			lines := regexp.MustCompile(`.*"msg":"connection refused".*`).FindAllString(s.log.String(), -1)
			told := c.logs != "" // once, and before what the sidecar sees of the command's own diagnosis
			if told != (len(lines) > 0) || told && (!strings.Contains(lines[0], c.logs) || strings.Count(s.log.String(), c.logs) != 1) {
				t.Errorf("%q in %s", lines, s.log)
			}
		})
	}
}

func TestACommandSaysWhatIsWrongWithASidecarsCertificate(t *testing.T) {
	t.Parallel()
	ours := newTestAuthority(t, t.TempDir())
	ours.issue("client")
	ours.issueExpired("old")
	for name, says := range map[string]string{
		"old":    "its certificate expired on 2020-01-02T00:00:00Z: renew the --tls-cert of the sidecar",
		"client": "its certificate is not for localhost: call it by a name that is in its certificate",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config := ours.clientConfig(name)
		sidecar := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: config.Certificates})))
		t.Cleanup(sidecar.Stop)
		go func() { _ = sidecar.Serve(listener) }()
		address := strings.Replace(listener.Addr().String(), "127.0.0.1", "localhost", 1)
		_, said, code := output(t, "--tls-ca", ours.folder+"/ca.crt", "--address", address, "lock", "ls")
		if code != exit.Unreachable || !strings.Contains(said, says) {
			t.Errorf("%s: exit %d, %q", name, code, said)
		}
	}
}

// Each of these waits for a sidecar that is away, for an hour or for ever.
var waitingCommands = [][]string{
	{"lock", "run", "orders", "--wait=1h", "--", "true"},
	{"members", "join", "workers", "one", "--", "true"},
	{"barrier", "wait", "begin"},
	{"elect", "run", "leader", "--", "true"},
	{"semaphore", "run", "permits", "--wait=1h", "--", "true"},
	{"config", "watch", "app", "--timeout=1h"},
}

func TestACommandWithAnExpiredCertificateWaitsForNoSidecar(t *testing.T) {
	t.Parallel()
	ours := newTestAuthority(t, t.TempDir())
	ours.issueExpired("old")
	const want = "/old.crt expired on 2020-01-02T00:00:00Z: renew it"
	for _, command := range waitingCommands {
		flags := []string{"--address=127.0.0.1:1", "--tls-cert=" + ours.folder + "/old.crt", "--tls-key=" + ours.folder + "/old.key"}
		_, said, code := output(t, append(flags, command...)...)
		if code != exit.Unreachable || strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
			t.Errorf("%v: exit %d, %q", command, code, said)
		}
	}
}

func TestACommandDoesNotWaitForASidecarThatTakesItsCertificateForExpired(t *testing.T) {
	t.Parallel()
	ours := newTestAuthority(t, t.TempDir())
	ours.issue("server")
	ours.issue("client")
	config := ours.clientConfig("server")
	config.ClientCAs, config.ClientAuth = ours.Pool(), tls.RequireAndVerifyClientCert
	config.Time = func() time.Time { return time.Now().AddDate(100, 0, 0) }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sidecar := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	t.Cleanup(sidecar.Stop)
	go func() { _ = sidecar.Serve(listener) }()
	for _, command := range waitingCommands[:3] {
		folder := ours.folder
		flags := []string{"--address=" + listener.Addr().String(), "--tls-ca=" + folder + "/ca.crt", "--tls-cert=" + folder + "/client.crt"}
		_, said, code := output(t, append(append(flags, "--tls-key="+folder+"/client.key"), command...)...)
		want := "it takes the certificate of --tls-cert " + folder + "/client.crt for expired, which is valid until "
		if code != exit.Unreachable || !strings.Contains(said, want) {
			t.Errorf("%v: exit %d, %q", command, code, said)
		}
	}
}

// Commands that run for weeks come back to a sidecar with the certificate that is there by then.
func TestACommandShowsARenewedCertificate(t *testing.T) {
	t.Parallel()
	ours := newTestAuthority(t, t.TempDir())
	ours.issue("client")
	certificate, key := ours.folder+"/client.crt", ours.folder+"/client.key"
	config, err := (&reach{certificate: certificate, key: key}).tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	shown := func() []byte {
		pair, err := config.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	first := shown()
	if !bytes.Equal(first, config.Certificates[0].Certificate[0]) {
		t.Error("it shows another certificate than that of its files")
	}
	ours.issue("client")
	renewed := shown()
	if bytes.Equal(renewed, first) {
		t.Error("it shows the certificate that was replaced")
	}
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(shown(), renewed) {
		t.Error("it does not show the newest certificate while its files are being replaced")
	}
}

// issueExpired is issue, for a certificate that was valid for a day.
func (a *testAuthority) issueExpired(name string) {
	a.t.Helper()
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	pair := a.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, NotBefore: began, NotAfter: began.AddDate(0, 0, 1),
	})
	a.WritePair(pair, a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
}
