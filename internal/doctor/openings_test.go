package doctor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

// A port is one of a server that answers words, or not.
type port struct {
	secure *tls.Config // nil for plain
	says   string
}

// answer is what stands behind a connection to the port.
func (p port) answer(conn net.Conn) {
	defer conn.Close()
	if p.secure != nil {
		conn = tls.Server(conn, p.secure)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err == nil {
		_, _ = io.WriteString(conn, p.says)
	}
	if secure, ok := conn.(*tls.Conn); ok {
		_ = secure.CloseWrite()
	}
}

// A told ensemble answers nothing but the configuration.
type toldEnsemble struct {
	doctor.Ensemble
	conf string
}

func (e toldEnsemble) Ask(_ context.Context, _, word string) (string, error) {
	if word == "conf" && e.conf != "" {
		return e.conf, nil
	}
	return "", zookeeper.ErrSilent
}

func TestThePreflightTriesWhetherOthersReachTheEnsemble(t *testing.T) {
	pair := authority.New(t).Sign(&x509.Certificate{DNSNames: []string{"zk.example"}})
	closed := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	open := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	const mode, refusal = "Mode: leader\n", "srvr is not executed because it is not in the whitelist.\n"
	for name, c := range map[string]struct {
		server, conf string
		ports        map[string]port
		want         string
	}{
		"closed": {"zk.example:2281", "", map[string]port{"zk.example:2281": {closed, mode}}, ""},
		"without a certificate": {
			"zk.example:2281", "", map[string]port{"zk.example:2281": {open, mode}}, "without a certificate",
		},
		"the usual plain port": {
			"zk.example:2281", "", map[string]port{"zk.example:2281": {closed, mode}, "zk.example:2181": {nil, mode}}, "in plain at zk.example:2181",
		},
		"one that answers no words": {
			"zk.example:2281", "", map[string]port{"zk.example:2281": {open, refusal}, "zk.example:2181": {nil, refusal}},
			"without a certificate, in plain at zk.example:2181",
		},
		"a plain port that it tells of": {
			"zk.example:2281", "clientPort=2999\n", map[string]port{"zk.example:2281": {closed, mode}, "zk.example:2999": {nil, mode}},
			"in plain at zk.example:2999",
		},
		"both on one port": {"zk.example:2281", "", map[string]port{"zk.example:2281": {nil, mode}}, "in plain at zk.example:2281"},
		"this machine":     {"127.0.0.1:2281", "", map[string]port{"127.0.0.1:2281": {open, mode}, "127.0.0.1:2181": {nil, mode}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var answers sync.WaitGroup
			defer answers.Wait()
			settings := settingsFor(c.server)
			settings.Secure, settings.Credentials = true, true
			settings.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
				behind, ok := c.ports[address]
				if !ok {
					return nil, errors.New("nothing listens there")
				}
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return nil, err
				}
				defer listener.Close()
				ours, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					return nil, err
				}
				theirs, err := listener.Accept()
				if err == nil {
					answers.Go(func() { behind.answer(theirs) })
				}
				return ours, err
			}
			patient := newPatient(t)
			findings, err := doctor.Preflight(t.Context(), toldEnsemble{patient.client, c.conf}, settings)
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			for _, found := range findings {
				if text, ok := strings.CutPrefix(found.Text, "answers "); ok && found.Severity == doctor.Warning {
					text, _, _ = strings.Cut(text, ": whatever")
					seen = append(seen, strings.TrimPrefix(text, "clients "))
				}
			}
			if got := strings.Join(seen, ", "); got != c.want {
				t.Errorf("got %q, want %q: %s", got, c.want, fmt.Sprint(findings))
			}
		})
	}
}
