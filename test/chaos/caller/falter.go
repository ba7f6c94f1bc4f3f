package caller

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// A gate is what reads of a connection pass: while it is closed the connection stands still, as if its process did, and the
// rest of the process goes on.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

func (g *gate) close() (reopen func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open = open
	return func() { close(open) }
}

// falter closes the gate now and then, for less time than it takes a sidecar to notice, until the context ends.
func (c *caller) falter(ctx context.Context, g *gate) {
	for pause(ctx, c.between(300*time.Millisecond, 1500*time.Millisecond)) {
		reopen := g.close()
		pause(ctx, c.between(300*time.Millisecond, 800*time.Millisecond))
		reopen()
	}
}

// A faltering connection delivers what comes while its gate is closed when it is open again.
type faltering struct {
	net.Conn
	gate *gate
}

func (f faltering) Read(buffer []byte) (int, error) {
	n, err := f.Conn.Read(buffer)
	f.gate.pass()
	return n, err
}

// through has a connection's reads pass a gate.
func through(g *gate) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return faltering{conn, g}, err
	})
}
