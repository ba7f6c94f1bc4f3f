package doors

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// While a file is odd that is reloaded, others are answered; afterwards a good one is taken over, and the program can be stopped.
func TestOthersAreAnsweredWhileAFileIsOdd(t *testing.T) {
	for _, file := range files {
		if !file.reloaded {
			continue
		}
		t.Run(file.flag, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			arguments, paths := s.withFiles(file.flag)
			if arguments[0] == "serve" {
				s.secure = true
				s.start(arguments)
			} else {
				s.inject(arguments)
			}
			during, end := context.WithCancel(t.Context())
			defer end()
			held := s.holdLock(during, t)
			good, err := os.ReadFile(paths[file.flag])
			expect.Must(t, err)
			for _, odd := range shapes {
				if odd.name != halfFile || file.half == refused {
					s.suffer(during, t, paths[file.flag], odd, good)
				}
			}
			expect.Must(t, os.RemoveAll(paths[file.flag]))
			expect.Must(t, s.renews(during, file.flag))
			expect.Must(t, held.isHeld(during))
			end()
			expect.Must(t, stops(s.attacked))
		})
	}
}

// suffer has others call while a file is odd. Policies are looked at each second, and others at each connection.
func (s *stage) suffer(ctx context.Context, t *testing.T, path string, odd shape, good []byte) {
	t.Helper()
	odd.place(t, path, good)
	looked := make(chan struct{})
	time.AfterFunc(1500*time.Millisecond, func() { close(looked) })
	for _, each := range s.callAll(ctx, looked, func(call) bool { return false }).wrong {
		t.Errorf("%s: %s", odd.name, each)
	}
	if told, taken := s.attacked.peak(); taken > s.limit && !raced {
		t.Errorf("%s: the program takes %s", odd.name, told)
	}
}

// renews puts a good file there that is another one, and says whether it is taken over.
func (s *stage) renews(ctx context.Context, flag string) (err error) {
	s.t.Helper()
	is := s.renewal(flag)
	overdue := time.After(patient)
	for {
		ctx, cancel := context.WithTimeout(ctx, patient)
		err = is(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-overdue:
			return fmt.Errorf("the good file is not taken over: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// renewal writes the file, and returns what is then so.
func (s *stage) renewal(flag string) func(ctx context.Context) error {
	s.t.Helper()
	other := authority.Named(s.t, "another")
	switch _, name, _ := strings.Cut(flag, " --"); name {
	case "policy":
		authority.Replace(s.t, s.path("policy"), policyFor("socket:newcomer"))
		locks := lockv1.NewLockServiceClient(s.dial(target{address: "unix://" + s.path("newcomer")}))
		return func(ctx context.Context) error {
			_, err := locks.Get(ctx, &lockv1.GetRequest{Name: "good/held"})
			return err
		}
	case "http-token-file":
		to := at("http-listen")(s)[0]
		to.bearer = token + "-2"
		authority.Replace(s.t, s.path("token"), to.bearer)
		return func(ctx context.Context) error {
			return ask(ctx, to, http.MethodPost, lockv1.LockService_Get_FullMethodName, "application/json", []byte(`{"name":"good/held"}`))
		}
	case "tls-cert", "tls-key":
		return s.newPair()
	case "tls-client-ca":
		other.WriteCertificate(s.path("ca"))
		return s.knows(other.Sign(&x509.Certificate{DNSNames: []string{"good"}}))
	case "tls-trust-domain":
		other.WriteCertificate(s.path("domain"))
		return s.knows(other.Sign(&x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "prod.example", Path: "/good"}}}))
	default: // tells it in the log alone
		authority.Replace(s.t, s.path("auth"), "user:password\nuser3:password3")
		return func(context.Context) error {
			if !strings.Contains(s.attacked.log.Text(), "files reloaded") {
				return errors.New("the log does not tell of it")
			}
			return nil
		}
	}
}

// knows has a caller with this certificate call.
func (s *stage) knows(certificate tls.Certificate) func(context.Context) error {
	to := at("listen")(s)[0]
	to.tls = s.clientTLS(certificate)
	return func(ctx context.Context) error { return probe(ctx, to) }
}

// newPair replaces the certificate of a server, and sees that new connections are shown it.
func (s *stage) newPair() func(context.Context) error {
	pair := s.sign("localhost")
	s.authority.WritePair(pair, s.path("cert"), s.path("key"))
	made, err := x509.ParseCertificate(pair.Certificate[0])
	expect.Must(s.t, err)
	to := at("listen")(s)[0]
	if s.sidecar == nil {
		to = at("webhook")(s)[0]
	}
	return func(ctx context.Context) error {
		conn, err := to.connect(ctx)
		if err != nil {
			return err
		}
		secure := tls.Client(conn, to.tls)
		defer secure.Close()
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		if secure.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(made.SerialNumber) != 0 {
			return errors.New("new connections are shown the old certificate")
		}
		return nil
	}
}
