package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A tlsFront is TLS in front of an ensemble that knows none. It takes every client's certificate and keeps in mind whose they were.
type tlsFront struct {
	t        *testing.T
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	shown *tls.Certificate
	met   map[string]bool // by serial number
	conns map[net.Conn]bool
}

func newTLSFront(t *testing.T, to string, a *testAuthority, name string) *tlsFront {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &tlsFront{t: t, listener: listener, met: map[string]bool{}, conns: map[net.Conn]bool{}}
	f.show(a, name)
	f.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.work.Go(func() { f.forward(conn, to) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		f.mu.Lock()
		for conn := range f.conns {
			conn.Close()
		}
		f.mu.Unlock()
		f.work.Wait()
	})
	return f
}

// show has new connections meet this certificate.
func (f *tlsFront) show(a *testAuthority, name string) {
	f.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = &pair
}

func (f *tlsFront) forward(conn net.Conn, to string) {
	secure := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.shown, nil
		},
	})
	defer secure.Close()
	onward, err := net.Dial("tcp", to)
	if err != nil || secure.Handshake() != nil {
		return
	}
	defer onward.Close()
	f.mu.Lock()
	f.met[serialOf(secure.ConnectionState().PeerCertificates[0])] = true
	f.conns[conn] = true
	f.mu.Unlock()
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(onward, secure); onward.Close() })
	io.Copy(secure, onward)
	conn.Close()
	copying.Wait()
}

func serialOf(certificate *x509.Certificate) string { return certificate.SerialNumber.String() }

func (f *tlsFront) hasMet(serial string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met[serial]
}

// serial is of the certificate in the authority's folder.
func (a *testAuthority) serial(name string) string {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.folder+"/"+name+".crt", a.folder+"/"+name+".key")
	if err != nil {
		a.t.Fatal(err)
	}
	return serialOf(pair.Leaf)
}

// A load takes and releases locks on one connection as fast as it can, and fails the test if one ever cannot be had.
type load struct {
	taken chan struct{} // once for each lock, to whoever listens
	stop  context.CancelFunc
	over  chan struct{}
}

func startLoad(t *testing.T, client *sidekeeper.Client, name string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{taken: make(chan struct{}), stop: cancel, over: make(chan struct{})}
	go func() {
		defer close(l.over)
		for ctx.Err() == nil {
			err := client.WithLock(ctx, name, sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error { return nil })
			if err != nil && ctx.Err() == nil {
				t.Errorf("under load: %v", err)
				return
			}
			select {
			case l.taken <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { l.stop(); <-l.over })
	return l
}

// goesOn waits until a lock that was asked for after now has been taken.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	for range 3 {
		select {
		case <-l.taken:
		case <-l.over:
			t.Fatal("the load has ended")
		}
	}
}

// Under load, everything that can be rotated is: each certificate, key and authority on both sides, the ensemble's credentials and the
// policy. What was held at first is held at the end, no lock was refused, and what is new is in use.
func TestRotationOfEveryCertificateAndCredentialDropsNoStream(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, part := range []string{"callers", "renewed", "ensemble", "ensemble2"} {
		if err := os.Mkdir(folder+"/"+part, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	callers, renewed := newTestAuthority(t, folder+"/callers"), newTestAuthority(t, folder+"/renewed")
	ensemble, ensemble2 := newTestAuthority(t, folder+"/ensemble"), newTestAuthority(t, folder+"/ensemble2")
	for _, each := range []*testAuthority{callers, renewed, ensemble, ensemble2} {
		each.issue("server")
		each.issue("client")
	}
	_, address := memoryEnsemble(t)
	front := newTLSFront(t, address, ensemble, "server")
	const everything = `rules: [{identities: ["dns:client.test"], methods: ["sidekeeper.lock.v1.LockService/*"]}]`
	for name, text := range map[string]string{
		"auth": "sidekeeper:old\n", "policy": everything, "zk-ca": content(t, folder+"/ensemble/ca.crt"),
		"zk-crt": content(t, folder+"/ensemble/client.crt"), "zk-key": content(t, folder+"/ensemble/client.key"),
		"ca": content(t, folder+"/callers/ca.crt"), "crt": content(t, folder+"/callers/server.crt"), "key": content(t, folder+"/callers/server.key"),
	} {
		replaceFile(t, folder+"/"+name, text)
	}
	s := serve(t, "--zookeeper="+front.listener.Addr().String(), "--zookeeper-tls-ca="+folder+"/zk-ca", "--zookeeper-tls-cert="+folder+"/zk-crt",
		"--zookeeper-tls-key="+folder+"/zk-key", "--zookeeper-auth-file="+folder+"/auth", "--policy="+folder+"/policy",
		"--tls-cert="+folder+"/crt", "--tls-key="+folder+"/key", "--tls-client-ca="+folder+"/ca", "--drain-timeout=100ms",
		"--audit-log="+folder+"/audit")
	dial := func(a *testAuthority) *sidekeeper.Client {
		client, err := sidekeeper.Dial(s.address, sidekeeper.WithTLS(a.clientConfig("client")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	t.Cleanup(cancel)
	client := dial(callers)
	held, err := client.Acquire(ctx, "held", sidekeeper.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	under := startLoad(t, client, "load")
	under.goesOn(t)

	// The listener's certificate and the callers' authority.
	replaceFile(t, folder+"/crt", content(t, folder+"/renewed/server.crt"))
	under.goesOn(t) // while half is renewed
	replaceFile(t, folder+"/key", content(t, folder+"/renewed/server.key"))
	replaceFile(t, folder+"/ca", content(t, folder+"/renewed/ca.crt"))
	under.goesOn(t)
	newcomer := dial(renewed)
	if _, err := newcomer.Acquire(ctx, "newcomer", sidekeeper.LockOptions{}); err != nil {
		t.Errorf("a caller with the new certificates: %v", err)
	}
	if served := servedSerial(t, s.address, renewed); served != renewed.serial("server") {
		t.Errorf("the listener shows certificate %s", served)
	}

	// The ensemble's authority: both first. Then our certificate towards it, and its own.
	replaceFile(t, folder+"/zk-ca", content(t, folder+"/ensemble/ca.crt")+content(t, folder+"/ensemble2/ca.crt"))
	under.goesOn(t)
	replaceFile(t, folder+"/zk-key", content(t, folder+"/ensemble2/client.key"))
	under.goesOn(t) // while half is renewed
	replaceFile(t, folder+"/zk-crt", content(t, folder+"/ensemble2/client.crt"))
	front.show(ensemble2, "server")
	replaceFile(t, folder+"/zk-ca", content(t, folder+"/ensemble2/ca.crt"))
	for ; !front.hasMet(ensemble2.serial("client")) && ctx.Err() == nil; under.goesOn(t) {
		continue
	}

	// The credentials, and the policy.
	replaceFile(t, folder+"/auth", "sidekeeper:old\nsidekeeper:new\n")
	under.goesOn(t)
	replaceFile(t, folder+"/policy", strings.ReplaceAll(everything, "dns:client.test", "*"))
	under.goesOn(t)
	replaceFile(t, folder+"/policy", strings.Replace(everything, "]}]", `], prefixes: ["load", "held"]}]`, 1))
	for ctx.Err() == nil {
		err := newcomer.WithLock(ctx, "elsewhere", sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error { return nil })
		if errors.Is(err, sidekeeper.ErrPolicyDenied) {
			break
		}
	}
	under.goesOn(t)
	if err := held.Context().Err(); err != nil {
		t.Errorf("what was held at first: %v", context.Cause(held.Context()))
	}
	if err := held.Release(ctx); err != nil {
		t.Errorf("its release: %v", err)
	}
	under.stop()
	<-under.over
	for line := range strings.Lines(content(t, folder+"/audit")) {
		if strings.Contains(line, `"event":"loss"`) && !strings.Contains(line, `"reason":"POLICY_DENIED"`) {
			t.Errorf("a loss is on record: %s", line)
		}
	}
}

// servedSerial is of the certificate that a listener shows.
func servedSerial(t *testing.T, address string, a *testAuthority) string {
	t.Helper()
	var shown string
	config := a.clientConfig("client")
	config.VerifyConnection = func(state tls.ConnectionState) error {
		shown = serialOf(state.PeerCertificates[0])
		return nil
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, _ = lockv1.NewLockServiceClient(connection).Get(t.Context(), &lockv1.GetRequest{Name: "held"})
	return shown
}
