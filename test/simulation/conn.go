package simulation

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// A conn is a client's end of a connection.
type conn struct {
	ensemble *Ensemble
	host     int
	server   *server
	client   *client // the other end, once there is one

	// Behind the ensemble's mutex.
	opened  chan struct{} // closed when the server has answered
	refused bool
	input   []byte
	over    bool // nothing more comes
	closed  bool
	readBy  time.Time
	changed chan struct{} // closed and made anew when any of these changes
}

// Dialer gives what connects from a host to the server with an address of Addresses.
func (e *Ensemble) Dialer(host int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for i, known := range e.Addresses() {
			if address == known {
				return e.dial(ctx, host, i)
			}
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%s: no such server", address)}
	}
}

func (e *Ensemble) dial(ctx context.Context, host, number int) (net.Conn, error) {
	e.mu.Lock()
	c := &conn{
		ensemble: e, host: host, server: e.servers[number],
		opened: make(chan struct{}), changed: make(chan struct{}),
	}
	e.up[host][number].send(func() { c.server.accept(c) })
	e.mu.Unlock()
	select {
	case <-c.opened:
	case <-e.stopped:
		return nil, net.ErrClosed
	case <-ctx.Done():
		_ = c.Close()
		return nil, context.Cause(ctx)
	}
	if c.refused {
		return nil, syscall.ECONNREFUSED
	}
	return c, nil
}

// accept takes a connection, as the machine does even for a server that is frozen.
func (s *server) accept(c *conn) {
	if s.role == down {
		s.ensemble.down[c.host][s.number].send(func() { c.refused = true; close(c.opened) })
		return
	}
	c.client = &client{server: s, conn: c, open: true}
	s.clients = append(s.clients, c.client)
	s.ensemble.down[c.host][s.number].send(func() { close(c.opened) })
}

// tell has the server take something in, in order with what was sent before.
func (c *conn) tell(do func(*client)) {
	c.ensemble.up[c.host][c.server.number].send(func() {
		other := c.client
		if other == nil {
			return
		}
		c.server.receive(func() {
			if other.open {
				do(other)
			}
		})
	})
}

func (c *conn) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// take takes in what has come from the server.
func (c *conn) take(bytes []byte) {
	if !c.over && !c.closed {
		c.input = append(c.input, bytes...)
		c.change()
	}
}

// end takes in that the server has closed the connection.
func (c *conn) end() {
	c.over = true
	c.change()
}

func (c *conn) Read(buffer []byte) (int, error) {
	for {
		n, changed, wait, err := c.read(buffer)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// read reads what is there, or tells for how long to wait for what.
func (c *conn) read(buffer []byte) (n int, changed <-chan struct{}, wait time.Duration, err error) {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	wait = 1 << 62
	if !c.readBy.IsZero() {
		wait = time.Until(c.readBy)
	}
	switch {
	case c.closed:
		return 0, nil, 0, net.ErrClosed
	case len(c.input) > 0:
		n = copy(buffer, c.input)
		c.input = c.input[n:]
		return n, nil, 0, nil
	case c.over:
		return 0, nil, 0, io.EOF
	case wait <= 0:
		return 0, nil, 0, os.ErrDeadlineExceeded
	}
	return 0, c.changed, wait, nil
}

// Write never blocks: what the network does not take yet waits.
func (c *conn) Write(bytes []byte) (int, error) {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.over:
		return 0, syscall.EPIPE
	}
	sent := append([]byte(nil), bytes...)
	c.tell(func(other *client) { other.take(sent) })
	return len(bytes), nil
}

func (c *conn) Close() error {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.tell((*client).close)
	c.change()
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.ensemble.mu.Lock()
	defer c.ensemble.mu.Unlock()
	c.readBy = t
	c.change()
	return nil
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) LocalAddr() net.Addr { return endpoint(fmt.Sprintf("host-%d:1", c.host)) }

func (c *conn) RemoteAddr() net.Addr { return endpoint(c.ensemble.Addresses()[c.server.number]) }

// An endpoint is an address in the simulation.
type endpoint string

func (e endpoint) Network() string { return "simulation" }
func (e endpoint) String() string  { return string(e) }
