package server_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// newLimited starts a sidecar with two callers, of which a policy gives the first one little of something.
func newLimited(t *testing.T, limit string, change ...func(*server.Options)) (p *probe, one, other func() *grpc.ClientConn) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	methods := "['sidekeeper.lock.v1.LockService/*', 'sidekeeper.lock.v1.LockService/Break']"
	must(t, os.WriteFile(file, []byte("rules: [{identities: ['*'], methods: "+methods+"}]\n"+
		"limits: [{identities: ['socket:one'], "+limit+"}]\n"), 0o600))
	p, _, _ = newTwo(t, append(change, func(o *server.Options) { o.Policy, o.MaxConnections = file, 100 })...)
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	addresses := p.server.Addresses()
	return p, func() *grpc.ClientConn { return p.dial(addresses[0]) }, func() *grpc.ClientConn { return p.dial(addresses[1]) }
}

// acquires acquires locks until one is refused, a hundred at most, and returns how many there were and what the last one was told.
func acquires(t *testing.T, connection *grpc.ClientConn, name string) (granted int, err error) {
	t.Helper()
	for ; granted < 100; granted++ {
		stream, err := lockv1.NewLockServiceClient(connection).Acquire(within(t), &lockv1.AcquireRequest{Name: name})
		must(t, err)
		if _, err = stream.Recv(); err != nil {
			return granted, err
		}
	}
	return granted, nil
}

func TestACallerWithLittleIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, name, refused string }{
		{"streams: 3", "orders", "streams 3"},
		{"sessions_per_second: 3", "orders", "sessions_per_second 3"},
		{"writes_per_second: 4", "orders", "writes_per_second 4"},
		{"bytes_per_second: 1000", strings.Repeat("x", 100_000), "bytes_per_second 1000"},
	} {
		t.Run(c.limit, func(t *testing.T) {
			t.Parallel()
			p, one, other := newLimited(t, c.limit)
			_, err := acquires(t, one(), c.name)
			info, retry := expect.Details(err)
			same(t, "refused", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
			same(t, "limit", info["limit"]+" "+info["max"]+" of "+info["caller"], c.refused+" of socket:one")
			same(t, "the same time for those who read facts", info["retry_after_ms"] != "", retry > 0)
			same(t, "with a time to retry after", retry > 0, !strings.HasPrefix(c.limit, "streams"))
			granted, err := acquires(t, other(), c.name)
			same(t, "another caller", fmt.Sprint(granted, " ", outcome(err)), "100 OK")
			same(t, "a read of the caller", get(t, one()), "OK")
			limit, _, _ := strings.Cut(c.limit, ":")
			same(t, "metric", strings.Contains(expect.Scrape(p.metrics.Handler()), `sidekeeper_quota_refusals_total{limit="`+limit+`"} 1`), true)
		})
	}
}

func TestACallThatWritesIsRefusedAsAStreamIs(t *testing.T) {
	t.Parallel()
	_, one, other := newLimited(t, "writes_per_second: 2")
	breaks := func(connection *grpc.ClientConn) (err error) {
		for i := 0; i < 20 && err == nil; i++ {
			_, err = lockv1.NewLockServiceClient(connection).Break(within(t), &lockv1.BreakRequest{})
		}
		return err
	}
	same(t, "the caller", outcome(breaks(one())), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "another one", outcome(breaks(other())), "OK")
}

func TestACallerWithFewConnectionsIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	p, one, other := newLimited(t, "connections: 1")
	same(t, "the first", get(t, one()), "OK")
	same(t, "a second", get(t, one()), "Unavailable")
	for range 2 {
		same(t, "of another caller", get(t, other()), "OK")
	}
	same(t, "metric", strings.Contains(expect.Scrape(p.metrics.Handler()), `sidekeeper_quota_refusals_total{limit="connections"} 0`), false)
}

func TestWhereThereIsOneIdentityNoPaceHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options server.Options
		want    string
	}{
		{server.Options{Listen: []string{"unix:///s"}, MaxConnections: 100, MaxStreams: 10}, "75 40 48 750 75 150 1000 20000 8388608"},
		{server.Options{Listen: []string{"unix:///s"}, MaxStreams: 10, AllOperate: true}, "0 0 48 1000 100 0 0 0 0"},
		{server.Options{Listen: []string{"localhost:0"}, MaxConnections: 100, MaxStreams: 10}, "75 0 48 1000 100 0 0 0 0"},
	} {
		limits := server.NewLimits(c.options, 1000, 100, 200)
		var got []string
		for limit := range policy.LimitNames() {
			got = append(got, fmt.Sprint(limits.Of("uid:1", policy.Limit(limit))))
		}
		same(t, fmt.Sprint(c.options.Listen), strings.Join(got, " "), c.want)
	}
}

func TestOneConnectionTooManyIsClosedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.Listen, o.MaxConnections = []string{"127.0.0.1:0"}, 4 })
	var open []net.Conn
	greet := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.address(), "tcp://"))
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patient))
		return conn
	}
	answered := func(conn net.Conn) bool { // by the server's settings
		_, err := conn.Read(make([]byte, 9))
		return err == nil
	}
	for i := range 4 {
		conn := greet()
		open = append(open, conn)
		same(t, fmt.Sprintf("connection %d is served", i), answered(conn), i < 3)
	}
	open[0].Close()
	for conn := greet(); !answered(conn); conn = greet() {
		conn.Close() // the server has not seen the other one's end yet
	}
}
