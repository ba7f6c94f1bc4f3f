package zookeeper

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	certificates "github.com/sidekeeper/sidekeeper/test/support/authority"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A moving ensemble is one whose servers come and go, beside a server of another ensemble that is called foreign.
type moving struct {
	*testing.T
	ensemble, other *standin.Ensemble
	client          *Client
	logs            *observer.ObservedLogs
	logged          chan struct{}
	certificateOf   func(name string) tls.Certificate

	mu      sync.Mutex
	servers map[string]*embedded.Server
}

func newMoving(t *testing.T, follow bool, given ...string) *moving {
	t.Helper()
	return newSecureMoving(t, nil, Config{FollowServers: follow}, given...)
}

// newSecureMoving is one whose servers speak TLS with the certificate for their name, if there are such.
func newSecureMoving(t *testing.T, certificateOf func(name string) tls.Certificate, config Config, given ...string) *moving {
	t.Helper()
	m := &moving{T: t, certificateOf: certificateOf, servers: map[string]*embedded.Server{}, logged: make(chan struct{}, 1)}
	for _, each := range []**standin.Ensemble{&m.ensemble, &m.other} {
		*each = standin.New(standin.Options{Tick: tick})
		t.Cleanup((*each).Close)
	}
	m.serve(m.other, "foreign:2181")
	for _, server := range given {
		m.serve(m.ensemble, server)
	}
	core, logs := observer.New(zap.InfoLevel)
	m.logs = logs
	config.Servers, config.SessionTimeout, config.TickTime, config.SyncLimit = given, 10*time.Second, tick, 5
	config.Heartbeat, config.Directories, config.Dial = 250*time.Millisecond, []string{"/sidekeeper"}, m.dial
	config.Log = zap.New(core, zap.Hooks(func(zapcore.Entry) error {
		select {
		case m.logged <- struct{}{}:
		default:
		}
		return nil
	}))
	var err error
	if m.client, err = New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.client.Close)
	return m
}

func (m *moving) serve(e *standin.Ensemble, name string) {
	m.Helper()
	server, err := embedded.Serve(e.Ensemble, embedded.ServerOptions{})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(server.Close)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[name] = server
}

func (m *moving) stop(name string) {
	m.mu.Lock()
	server := m.servers[name]
	delete(m.servers, name)
	m.mu.Unlock()
	server.Close()
}

func (m *moving) dial(ctx context.Context, network, name string) (net.Conn, error) {
	m.mu.Lock()
	server := m.servers[name]
	m.mu.Unlock()
	if server == nil {
		return nil, syscall.ECONNREFUSED
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, server.Address())
	if err != nil || m.certificateOf == nil {
		return conn, err
	}
	ours, theirs := net.Pipe()
	secured := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{m.certificateOf(name)}, MinVersion: tls.VersionTLS12})
	for from, to := range map[net.Conn]net.Conn{secured: conn, conn: secured} {
		go func() {
			_, _ = io.Copy(to, from)
			_ = conn.Close()
			_ = theirs.Close()
		}()
	}
	return ours, nil
}

// list has the ensemble list these servers.
func (m *moving) list(version string, servers ...string) {
	m.Helper()
	var text strings.Builder
	for i, server := range servers {
		text.WriteString("server." + string(rune('1'+i)) + "=" + strings.TrimSuffix(server, ":2181") + ":2888:3888:participant;2181\n")
	}
	m.show(text.String() + "version=" + version)
}

func (m *moving) show(data string) {
	m.Helper()
	if err := m.ensemble.Set(ConfigPath, []byte(data)); err != nil {
		m.Fatal(err)
	}
}

// until waits for a condition that a line of the log may go with.
func (m *moving) until(what string, holds func() bool) {
	m.Helper()
	for ctx := within(m.T, 30*time.Second); !holds(); {
		select {
		case <-m.logged:
		case <-ctx.Done():
			m.Fatalf("%s: not yet; the order is %s, the log %v", what, m.client.servers.order(), m.logs.All())
		}
	}
}

func (m *moving) awaitOrder(want string) {
	m.Helper()
	m.until(want, func() bool { return m.client.servers.order() == want })
}

// said is how often the log has a line of that level with that error.
func (m *moving) said(level zapcore.Level, message, text string) (times int) {
	lines := m.logs.FilterLevelExact(level).FilterMessage(message).All()
	for i := range lines {
		if err, _ := lines[i].ContextMap()["error"].(string); strings.Contains(err, text) {
			times++
		}
	}
	return times
}

func TestSessionsGoWhereTheEnsembleIs(t *testing.T) {
	m := newMoving(t, true, "zk1:2181")
	s := openSession(t, m.client)
	path := enqueue(t, s, "/sidekeeper/moving")
	id := s.ID()
	others := m.other.Zxid()
	stands := func(when string) {
		t.Helper()
		if err := s.flush(t.Context()); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if node, err := m.ensemble.Read(path); err != nil || node.Owner != id {
			t.Fatalf("%s: the place is %+v, %v", when, node, err)
		}
	}
	m.serve(m.ensemble, "zk2:2181")
	m.list("1", "zk1:2181", "zk2:2181", "zk3:2181", "foreign:2181")
	m.awaitOrder("zk1:2181 zk2:2181")
	m.until("foreign", func() bool { return m.said(zap.WarnLevel, "server not used", errForeign.Error()) == 1 })
	m.serve(m.ensemble, "zk3:2181")
	m.awaitOrder("zk1:2181 zk2:2181 zk3:2181")

	m.list("2", "zk2:2181", "zk3:2181")
	m.awaitOrder("zk2:2181 zk3:2181")
	m.stop("zk1:2181")
	stands("without its first server")
	m.list("3", "zk3:2181")
	m.awaitOrder("zk3:2181")
	m.stop("zk2:2181")
	stands("with the last server alone")
	if late := openSession(t, m.client); late.Err() != nil {
		t.Error(late.Err())
	}
	if m.other.Zxid() != others {
		t.Error("the other ensemble was written to")
	}
}

// An address may be another server's after it was not reached: it comes last until it is known whose it is.
func TestAServerThatWasNotReachedHasToProveItselfAnew(t *testing.T) {
	m := newMoving(t, true, "zk1:2181")
	m.serve(m.ensemble, "zk2:2181")
	m.list("1", "zk1:2181", "zk2:2181")
	m.awaitOrder("zk1:2181 zk2:2181")
	m.stop("zk2:2181")
	m.stop("zk1:2181")
	m.awaitOrder("zk1:2181 | zk2:2181")
	m.serve(m.ensemble, "zk1:2181")
	m.serve(m.other, "zk2:2181")
	others := m.other.Zxid()
	m.awaitOrder("zk1:2181")
	openSession(t, m.client)
	if m.other.Zxid() != others {
		t.Error("the other ensemble was written to")
	}
	m.stop("zk2:2181")
	m.serve(m.ensemble, "zk2:2181")
	m.awaitOrder("zk1:2181 zk2:2181")
}

func TestAListOfServersThatCannotBeRightChangesNothing(t *testing.T) {
	const unfollowed = "servers of the ensemble not followed; those known so far are used"
	m := newMoving(t, true, "zk1:2181")
	m.until("standalone", func() bool { return m.said(zap.InfoLevel, unfollowed, ErrNoServerList.Error()) == 1 })
	m.serve(m.ensemble, "zk2:2181")
	m.list("5", "zk1:2181", "zk2:2181")
	m.awaitOrder("zk1:2181 zk2:2181")
	for data, why := range map[string]string{
		"":                                       ErrNoServerList.Error(),
		"<html>":                                 `line "<html>"`,
		"version=6":                              "0 servers",
		"server.1=zk2":                           `line "server.1=zk2"`,
		"server.1=zk2:2888:3888;2181\nversion=4": "version 4 is older than version 5",
		"server.1=zk2:2888:3888\nversion=6":      ErrPartServerList.Error(),
	} {
		m.show(data)
		m.until(why, func() bool { return m.said(zap.WarnLevel, unfollowed, why) == 1 })
		m.show(data)
		for range 5 {
			if err := m.client.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if said := m.said(zap.WarnLevel, unfollowed, why); said != 1 {
			t.Errorf("%q: %d lines", data, said)
		}
		if got, want := m.client.servers.order(), "zk1:2181 zk2:2181"; got != want {
			t.Errorf("%q: %s, not %s", data, got, want)
		}
	}
	m.list("6", "zk2:2181")
	m.awaitOrder("zk2:2181")
}

func TestWithTLSAServerIsFollowedIfItsCertificateIsForItsName(t *testing.T) {
	authority := certificates.New(t)
	certificateOf := func(name string) tls.Certificate {
		host, _, _ := strings.Cut(strings.Replace(name, "zk3", "elsewhere", 1), ":")
		return authority.Sign(&x509.Certificate{DNSNames: []string{host}})
	}
	secure := func() *tls.Config { return &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12} }
	m := newSecureMoving(t, certificateOf, Config{FollowServers: true, TLS: secure}, "zk1:2281")
	s := openSession(t, m.client)
	for _, server := range []string{"zk2:2281", "zk3:2281", "zk4:2281"} {
		m.serve(m.ensemble, server)
	}
	m.list("1", "zk1:2181", "zk3:2181", "zk2:2181", "zk4:2181")
	m.awaitOrder("zk1:2281 zk2:2281 zk4:2281")
	m.list("2", "zk3:2181", "zk2:2181", "zk4:2181")
	m.awaitOrder("zk2:2281 zk4:2281")
	m.stop("zk1:2281")
	if err := s.flush(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestObserversAreFollowedOnlyWhereTheyMayBeBehindOthers(t *testing.T) {
	const listed = "server.1=zk1:2888:3888:participant;2181\nserver.2=zk2:2888:3888:observer;2181\nserver.3=zk3:2888:3888:participant;2181\n" +
		"server.4=zk4:2888:3888|zk4b:2888:3888:observer;2181\nversion=1"
	for behind, want := range map[bool]string{false: "zk1:2181 zk3:2181 zk4:2181", true: "zk1:2181 zk2:2181 zk3:2181 zk4:2181"} {
		m := newSecureMoving(t, nil, Config{FollowServers: true, Observers: behind}, "zk1:2181", "zk4:2181")
		for _, server := range []string{"zk2:2181", "zk3:2181"} {
			m.serve(m.ensemble, server)
		}
		m.show(listed)
		m.awaitOrder(want)
	}
}

func TestServersAreNotFollowedUnlessAskedFor(t *testing.T) {
	m := newMoving(t, false, "zk1:2181")
	m.list("5", "zk1:2181", "zk2:2181")
	for range 20 {
		if err := m.client.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	v, _ := m.client.reader.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes[ConfigPath] != nil {
		t.Error("the list is watched")
	}
}

func TestWhoDoesNotAnswerProvesNothing(t *testing.T) {
	m := newMoving(t, false, "zk1:2181")
	if err := m.client.CatchUp(t.Context()); err != nil { // so that there is a reader
		t.Fatal(err)
	}
	m.serve(m.ensemble, "zk2:2181")
	before := m.ensemble.Zxid()
	for address, want := range map[string]error{"zk2:2181": nil, "foreign:2181": errForeign, "zk9:2181": syscall.ECONNREFUSED} {
		if err := m.client.proveServer(t.Context(), address); !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", address, err, want)
		}
	}
	if made := m.ensemble.Zxid() - before; made < 4 {
		t.Errorf("%d transactions: sessions that were opened are to be closed", made)
	}
}
