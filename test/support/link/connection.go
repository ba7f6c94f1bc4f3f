package link

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// A connection is one client's connection and the one to the server that it is forwarded to. Its fields are guarded
// by the link's mutex, save those that never change.
type connection struct {
	link   *Link
	client *net.TCPConn
	cancel context.CancelFunc
	pumps  [2]*pump

	server      *net.TCPConn // nil until it is dialled
	over        bool
	idle        *time.Timer // ends the connection; nil before it was set
	unread      bool        // it does not speak ZooKeeper's client protocol
	outstanding []request   // forwarded and not yet answered, oldest first
}

func newConnection(l *Link, client *net.TCPConn) (*connection, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connection{link: l, client: client, cancel: cancel, unread: !l.options.ZooKeeper && !l.options.HTTP2}
	c.pumps[ToServer] = newPump(c, ToServer)
	c.pumps[ToClient] = newPump(c, ToClient)
	return c, ctx
}

// serve forwards the connection until it ends.
func (c *connection) serve(ctx context.Context) {
	defer c.finally()
	up, down := c.pumps[ToServer], c.pumps[ToClient]
	c.link.running.Go(func() { up.collect(ctx, c.client) })
	if !c.awaitWay(ctx) || !c.dial(ctx) {
		return
	}
	c.link.running.Go(func() { down.collect(ctx, c.server) })
	c.link.running.Go(func() { down.deliver(ctx, c.client) })
	up.deliver(ctx, c.server)
	<-ctx.Done()
}

// awaitWay returns true when bytes may pass to the server, false when the connection has ended before.
func (c *connection) awaitWay(ctx context.Context) bool {
	for waited := false; ; waited = true {
		switch c.way(waited) {
		case passable:
			return true
		case gone:
			return false
		}
		select {
		case <-c.pumps[ToServer].awake:
		case <-ctx.Done():
			return false
		}
	}
}

// A prospect is what a connection can expect that has not been forwarded yet.
type prospect int

const (
	blocked prospect = iota
	passable
	gone
)

// way tells whether the connection can be forwarded. One that had to wait is gone once its client is.
func (c *connection) way(waited bool) prospect {
	c.link.mutex.Lock()
	defer c.link.mutex.Unlock()
	up := c.pumps[ToServer]
	if waited && up.ended {
		return gone
	}
	mode := c.link.ways[ToServer].mode
	if mode == Drop {
		up.swallow()
	}
	if mode == Pass && !up.lost {
		return passable
	}
	return blocked
}

// dial connects to the server.
func (c *connection) dial(ctx context.Context) bool {
	server, err := c.reach(ctx)
	if err != nil {
		return false
	}
	c.link.mutex.Lock()
	defer c.link.mutex.Unlock()
	c.server = server.(*net.TCPConn)
	if c.over {
		reset(c.server)
	} else {
		_ = c.lose() // if it cannot, who asked for it was told
	}
	return !c.over
}

// used notes that the connection carries something. The mutex is held.
func (c *connection) used() {
	after := c.link.idle
	switch {
	case c.over:
	case after == 0:
		if c.idle != nil {
			c.idle.Stop()
		}
	case c.idle == nil:
		c.idle = time.AfterFunc(after, c.finally)
	default:
		c.idle.Reset(after)
	}
}

// again is how long the link waits before it dials a target again that has refused.
const again = 5 * time.Millisecond

// reach dials the target, again and again if it refuses and the link has patience.
func (c *connection) reach(ctx context.Context) (net.Conn, error) {
	c.link.mutex.Lock()
	target := c.link.target
	c.link.mutex.Unlock()
	for until := time.Now().Add(c.link.options.Patience); ; {
		server, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(until) {
			return server, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finally ends the connection, if nothing else has.
func (c *connection) finally() {
	c.link.mutex.Lock()
	defer c.link.mutex.Unlock()
	c.end()
}

// end resets both sides. The mutex is held.
func (c *connection) end() { c.stop(reset) }

// stop closes both sides, in the way given, and lets go of the connection. The mutex is held.
func (c *connection) stop(shut func(*net.TCPConn)) {
	if c.over {
		return
	}
	c.over = true
	c.cancel()
	if c.idle != nil {
		c.idle.Stop()
	}
	shut(c.client)
	if c.server != nil {
		shut(c.server)
	}
	delete(c.link.connections, c)
	c.link.announce()
}

// settle closes the connection if both directions are finished. The mutex is held.
func (c *connection) settle() {
	if c.pumps[ToServer].finished && c.pumps[ToClient].finished {
		c.stop(func(side *net.TCPConn) { side.Close() })
	}
}

// wake has both pumps look at the link's state again.
func (c *connection) wake() {
	for _, p := range c.pumps {
		notify(p.awake)
		notify(p.room)
	}
}

// reset closes a side with a TCP reset.
func reset(side *net.TCPConn) {
	side.SetLinger(0) // fails only on a connection that is closed already
	side.Close()
}

// notify makes the next receive from a channel of capacity one return.
func notify(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
