package doors

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// What the chart gives the sidecar and the injector, as a test sees.
const (
	sidecarLimit  = 384 << 20
	injectorLimit = 128 << 20
)

// token is that of callers over HTTP.
const token = "0123456789abcdef0123"

// A stage is what runs while a door is attacked.
type stage struct {
	t         *testing.T
	folder    string
	authority *authority.Authority
	sidecar   *program // nil where there is none
	attacked  *program
	limit     int               // bytes that it may take
	addresses map[string]string // by the flag that names them
	secure    bool              // TCP is with TLS
	bearer    map[string]string // tokens, by the same
	good      target            // where the others call
	others    []call
}

func newStage(t *testing.T) *stage {
	t.Helper()
	folder, err := os.MkdirTemp("", "stage-") // a short path, for sockets
	expect.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return &stage{
		t: t, folder: folder, authority: authority.New(t), addresses: map[string]string{}, bearer: map[string]string{}, limit: sidecarLimit,
	}
}

func (s *stage) path(name string) string { return filepath.Join(s.folder, name) }

// write writes a file of the stage.
func (s *stage) write(name, text string) (path string) {
	s.t.Helper()
	path = s.path(name)
	expect.Must(s.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sign makes a certificate of the stage's authority, with this name.
func (s *stage) sign(name string) tls.Certificate {
	return s.authority.Sign(&x509.Certificate{DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// sockets of callers that have an identity each: the good one, six attackers, one without a rule, and one that a policy may let in later.
var sockets6 = []string{"evil-1", "evil-2", "evil-3", "evil-4", "evil-5", "evil-6"}

// policyFor lets the good ones do what they do, and the attackers all that is not for operators below names of their own.
func policyFor(newcomers ...string) string {
	all := []string{}
	for _, row := range rpcs {
		if strings.HasPrefix(row.service, "sidekeeper.") {
			all = append(all, row.service+"/*")
		}
	}
	all = slices.Compact(all)
	evil := []string{"dns:evil"}
	for _, name := range sockets6 {
		evil = append(evil, "socket:"+name)
	}
	type rule struct {
		Identities, Methods, Prefixes []string
	}
	good := []string{"sidekeeper.lock.v1.LockService/*", "sidekeeper.config.v1.ConfigService/*"}
	text, err := yaml.Marshal(map[string]any{"rules": []rule{
		{append([]string{"socket:good", "dns:good"}, newcomers...), good, []string{"good"}},
		{[]string{"tcp:loopback"}, all, []string{"good", "evil"}},
		{evil, all, []string{"evil"}},
	}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// serving are the flags of a sidecar with all listeners.
func (s *stage) serving() []string {
	s.t.Helper()
	memory := embedded.New(embedded.Options{Tick: 2 * time.Second})
	server, err := embedded.Serve(memory, embedded.ServerOptions{})
	expect.Must(s.t, err)
	s.t.Cleanup(func() {
		server.Close()
		memory.Close()
	})
	flags := []string{
		"serve", "--zookeeper=" + server.Address(), "--session-timeout=30s", "--reflection",
		"--operator-listen=unix://" + s.path("operators"), "--metrics-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--audit-log=off",
	}
	for _, name := range append([]string{"good", "none", "newcomer"}, sockets6...) {
		flags = append(flags, "--listen=unix://"+s.path(name)+"?identity="+name)
	}
	return append(flags, "--listen=127.0.0.1:0") // the last, as the log has it
}

// ruled are those of a sidecar with a policy, which has its status page on a socket.
func (s *stage) ruled() []string {
	return []string{"--policy=" + s.write("policy", policyFor()), "--admin-listen=unix://" + s.path("admin")}
}

// withTLS are the flags for it.
func (s *stage) withTLS() []string {
	s.authority.WriteCertificate(s.path("ca"))
	s.authority.WritePair(s.sign("localhost"), s.path("cert"), s.path("key"))
	return []string{"--tls-cert=" + s.path("cert"), "--tls-key=" + s.path("key"), "--tls-client-ca=" + s.path("ca")}
}

// withToken is the flag for it.
func (s *stage) withToken() []string {
	s.bearer["http-listen"] = token
	return []string{"--http-token-file=" + s.write("token", token)}
}

// start starts the sidecar and has the others call it.
func (s *stage) start(flags []string) {
	s.t.Helper()
	s.sidecar = launch(s.t, sidecarLimit, flags...)
	s.attacked = s.sidecar
	ready := func() bool { return len(s.sidecar.listening()) == 5 }
	if !s.sidecar.await(s.t, "the listeners", ready) {
		s.t.Fatalf("the sidecar has ended: %s", s.sidecar.log.Text())
	}
	for purpose, address := range s.sidecar.listening() {
		s.addresses[purpose] = address
	}
	s.good = target{address: "unix://" + s.path("good"), calls: true}
	s.others = append(s.others, s.callers()...)
}

// plain is a sidecar whose callers over TCP have no TLS.
func plain(s *stage) { s.start(slices.Concat(s.serving(), s.ruled(), s.withToken())) }

// ruleless is one without a policy, which has its status page on a port.
func ruleless(s *stage) {
	s.start(slices.Concat(s.serving(), s.withToken(), []string{"--admin-listen=127.0.0.1:0"}))
}

// secure is one whose callers over TCP show certificates.
func secure(s *stage) {
	s.secure = true
	s.start(slices.Concat(s.serving(), s.ruled(), s.withTLS()))
}

// console is one beside a sidecar.
func console(s *stage) {
	plain(s)
	s.attacked = launch(s.t, sidecarLimit, "console", "--operator-address="+s.addresses["operator-listen"], "--admin="+s.addresses["admin-listen"])
	url := s.attacked.saying(s.t, "http://", 0)
	s.addresses["console"], s.bearer["console"], _ = strings.Cut(url, "/#token=")
	s.others = append(s.others, s.page("the console's page", at("console"), "/"))
}

// injector is one alone.
func injector(s *stage) {
	s.inject(s.injecting())
}

// inject starts an injector, and has others call it.
func (s *stage) inject(flags []string) {
	s.t.Helper()
	s.limit = injectorLimit
	s.attacked = launch(s.t, injectorLimit, flags...)
	s.addresses["webhook"] = s.attacked.saying(s.t, "listening on ", 0)
	s.addresses["metrics-listen"] = s.attacked.saying(s.t, "listening on ", 1)
	s.others = []call{
		s.page("the injector's readiness", at("metrics-listen"), "/readyz"), s.page("the injector's metrics", at("metrics-listen"), "/metrics"),
		s.review(),
	}
}

// injecting are the flags of an injector.
func (s *stage) injecting() []string {
	s.authority.WritePair(s.sign("localhost"), s.path("cert"), s.path("key"))
	return []string{
		"inject-webhook", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--shutdown-delay=0s",
		"--tls-cert=" + s.path("cert"), "--tls-key=" + s.path("key"), "--pattern=" + s.write("pattern", patternOf(s.t)),
	}
}

// patternOf is one that the chart renders for its own tests.
func patternOf(t *testing.T) string {
	t.Helper()
	file, err := os.Open("../../helm/sidekeeper/tests/golden/injector.yaml")
	expect.Must(t, err)
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var manifest struct {
			Kind string
			Data map[string]string
		}
		expect.Must(t, decoder.Decode(&manifest))
		if manifest.Kind == "ConfigMap" {
			return manifest.Data["pattern.json"]
		}
	}
}

// A target is where callers of one identity call.
type target struct {
	address string      // unix:///path or host:port
	tls     *tls.Config // nil without
	calls   bool        // takes gRPC; others take HTTP
	bearer  string
	below   string // what stands before a method's path over HTTP; with = before it, the one path that there is
}

// at is a listener, with whatever shows who calls.
func at(purpose string) func(*stage) []target {
	return func(s *stage) []target {
		to := target{address: s.addresses[purpose], bearer: s.bearer[purpose], calls: purpose == "listen" || purpose == "operator-listen"}
		switch purpose {
		case "listen", "http-listen":
			if s.secure && to.bearer == "" {
				to.tls = s.clientTLS(s.sign("evil"))
			}
		case "console":
			to.below = "/api"
		case "webhook":
			to.tls = s.clientTLS()
		}
		return []target{to}
	}
}

// overGRPC is a listener for HTTP that takes gRPC, too.
func overGRPC(purpose string) func(*stage) []target {
	return func(s *stage) []target {
		to := at(purpose)(s)[0]
		to.calls = true
		return []target{to}
	}
}

func (s *stage) clientTLS(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: s.authority.Pool(), ServerName: "localhost", Certificates: certificates, MinVersion: tls.VersionTLS12}
}

// nameless is a listener with TLS without a certificate.
func nameless(purpose string) func(*stage) []target {
	return func(s *stage) []target {
		to := at(purpose)(s)[0]
		to.tls = s.clientTLS()
		return []target{to}
	}
}

// tokenless is a listener without its token.
func tokenless(purpose string) func(*stage) []target {
	return func(s *stage) []target {
		to := at(purpose)(s)[0]
		to.bearer = ""
		return []target{to}
	}
}

// sockets are so many of the attackers' own.
func sockets(count int) func(*stage) []target {
	return func(s *stage) (targets []target) {
		for _, name := range sockets6[:count] {
			targets = append(targets, target{address: "unix://" + s.path(name), calls: true})
		}
		return targets
	}
}

func stranger(s *stage) []target { return []target{{address: "unix://" + s.path("none"), calls: true}} }

// connect opens a connection, without TLS yet.
func (t target) connect(ctx context.Context) (net.Conn, error) {
	network, address := "tcp", t.address
	if path, ok := strings.CutPrefix(t.address, "unix://"); ok {
		network, address = "unix", path
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// client calls over connections of its own, which the end of ctx closes.
func (t target) client(ctx context.Context) *http.Client {
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return t.connect(ctx) },
		TLSClientConfig: t.tls.Clone(), Protocols: &http.Protocols{},
	}
	transport.Protocols.SetHTTP1(!t.calls)
	transport.Protocols.SetHTTP2(t.calls && t.tls != nil)
	transport.Protocols.SetUnencryptedHTTP2(t.calls && t.tls == nil)
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// url is that of a path, under a name that each listener is called by.
func (t target) url(path string) string {
	scheme := "http"
	if t.tls != nil {
		scheme = "https"
	}
	return fmt.Sprintf("%s://localhost%s", scheme, path)
}
