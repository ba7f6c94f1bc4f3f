package simulation_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// What a heartbeat proves of the one before rests on its having been sent after that one's answer had come.
func TestAHeartbeatIsSentWhenTheOneBeforeWasAnswered(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		server, began, wires := follower(e), time.Now(), &wiretap{}
		c, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses()[server : server+1], SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
			Heartbeat: 2 * time.Second, Dial: wires.dialer(e.Dialer(0)), Clock: func() time.Duration { return time.Since(began) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s := w.open(t, c)
		time.Sleep(10 * time.Second)
		if before := wires.most(); before < 4 {
			t.Fatalf("only %d transactions in ten seconds", before)
		}
		e.CutHost(0, server, false, true) // answers come no more
		wires.forget()
		time.Sleep(10 * time.Second)
		if sent := wires.most(); sent != 1 {
			t.Errorf("%d transactions were sent, one after the other, without an answer", sent)
		}
		e.MendHost(0, server)
		w.close(s)
	})
}

// A heartbeat that was being written when its connection broke is sent anew over the next one, which is given up if it swallows that.
func TestAHeartbeatIsNotWaitedForWhereItIsSwallowed(t *testing.T) {
	for range 20 {
		inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			began, by := time.Now(), &clogger{dial: e.Dialer(0)}
			c, err := zookeeper.New(zookeeper.Config{
				Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
				Dial: by.connect, Clock: func() time.Duration { return time.Since(began) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s := w.open(t, c)
			by.clog()
			time.Sleep(30 * time.Second)
			if swallowed := by.swallowed.Load(); swallowed != 1 {
				t.Errorf("%d heartbeats were swallowed", swallowed)
			}
			if s.Err() != nil || s.ValidFor() < 5*time.Second {
				t.Errorf("valid for %v: %v", s.ValidFor(), s.Err())
			}
			w.close(s)
		})
	}
}

// The library sees none of the answers to heartbeats, and gives up a connection from which it has read nothing for long.
func TestAConnectionOverWhichOnlyHeartbeatsGoIsKept(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c, p := tappedClient(t, e)
		defer c.Close()
		s := w.open(t, c)
		time.Sleep(5 * time.Minute)
		if handshakes := p.handshakes(s.ID()); len(handshakes) > 0 {
			t.Errorf("the session has come back over %d connections", len(handshakes))
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
		w.close(s)
	})
}

// The sidecar wakes up for many heartbeats at once, and so does the server.
func TestLeasesSendTheirHeartbeatsTogether(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		const leases, watched = 200, 20 * time.Second
		began, wires := time.Now(), &wiretap{}
		c, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
			Dial: wires.dialer(e.Dialer(0)), Clock: func() time.Duration { return time.Since(began) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var sessions []*zookeeper.Session
		for range leases {
			sessions = append(sessions, w.open(t, c))
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		wires.forget()
		time.Sleep(watched)
		sent, instants := wires.sums()
		if sent < leases*9 || sent > leases*12 {
			t.Errorf("%d heartbeats in %v", sent, watched)
		}
		if most := int(watched / (2 * time.Second) * 64); instants > most+most/20 { // and the reader's
			t.Errorf("%d heartbeats at %d instants", sent, instants)
		}
		for _, s := range sessions {
			w.close(s)
		}
	})
}

// A clogger makes connections. The newest can be clogged: the next heartbeat that is written to it stays there for longer than it is from one
// to the next, and then it breaks. The connection after it swallows transactions.
type clogger struct {
	dial      dialer
	swallowed atomic.Int32

	mu     sync.Mutex
	newest *clogged
	broken bool
}

type clogged struct {
	net.Conn
	by      *clogger
	clogs   atomic.Bool
	swallow bool
}

func (c *clogger) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = &clogged{Conn: conn, by: c, swallow: c.broken}
	c.broken = false
	return c.newest, nil
}

func (c *clogger) clog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest.clogs.Store(true)
}

// Write takes whole frames.
func (c *clogged) Write(frame []byte) (int, error) {
	kind := uint32(0)
	if len(frame) >= 12 {
		kind = binary.BigEndian.Uint32(frame[8:])
	}
	switch {
	case kind == kindMulti && c.clogs.Swap(false):
		time.Sleep(2500 * time.Millisecond)
		c.by.mu.Lock()
		c.by.broken = true
		c.by.mu.Unlock()
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	case kind == kindMulti && c.swallow:
		c.by.swallowed.Add(1)
		return len(frame), nil
	}
	return c.Conn.Write(frame)
}

// A wiretap counts the transactions that are sent over each connection.
type wiretap struct {
	mu   sync.Mutex
	sent map[*tapped]int
	at   map[time.Time]bool // when
}

type tapped struct {
	net.Conn
	tap *wiretap
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

func (w *wiretap) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tapped{conn, w}, nil
	}
}

// Write takes whole frames: length, number and kind of the request, and what it asks for.
func (c *tapped) Write(frame []byte) (int, error) {
	const multi = 14
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == multi {
		c.tap.count(c)
	}
	return c.Conn.Write(frame)
}

func (w *wiretap) count(c *tapped) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent, w.at = map[*tapped]int{}, map[time.Time]bool{}
	}
	w.sent[c]++
	w.at[time.Now()] = true
}

// most is how many were sent over one connection.
func (w *wiretap) most() (most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sent := range w.sent {
		most = max(most, sent)
	}
	return most
}

func (w *wiretap) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sent)
	clear(w.at)
}

// sums are how many were sent, and at how many instants.
func (w *wiretap) sums() (sent, instants int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.sent {
		sent += each
	}
	return sent, len(w.at)
}
