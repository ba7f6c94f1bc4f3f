package simulation_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// All leases read through one session, for which they would wait if it waited for them.
func TestReadsComeBackWhileAThousandLeasesConnect(t *testing.T) {
	const leases, handshake = 1000 / oneIn, 150 * time.Millisecond
	for _, c := range []struct {
		name  string
		storm func(t *testing.T, client *zookeeper.Client, by *tardy) (calm func())
	}{
		{"that are opened", func(t *testing.T, client *zookeeper.Client, _ *tardy) (calm func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var opening sync.WaitGroup
			for range leases {
				opening.Go(func() {
					if s, err := client.Open(ctx, 0); err == nil {
						s.Close(t.Context())
					}
				})
			}
			return func() {
				cancel()
				opening.Wait()
			}
		}},
		{"that have lost their connections", func(t *testing.T, client *zookeeper.Client, by *tardy) (calm func()) {
			w := &witness{sessions: map[int64]*zookeeper.Session{}, closing: map[int64]bool{}}
			by.wait(0)
			var sessions []*zookeeper.Session
			for range leases {
				sessions = append(sessions, w.open(t, client))
			}
			time.Sleep(10 * time.Second)
			by.wait(handshake)
			by.closeAll(1, leases)
			return func() { closeAll(w, sessions) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
				began, by := time.Now(), &tardy{dial: e.Dialer(0)}
				client, err := zookeeper.New(zookeeper.Config{
					Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
					Heartbeat: 2 * time.Second, Dial: by.connect, Clock: func() time.Duration { return time.Since(began) },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				time.Sleep(time.Second) // until the reader is there
				by.wait(handshake)
				calm := c.storm(t, client, by)
				time.Sleep(10 * time.Millisecond)
				by.closeAll(0, 1)
				time.Sleep(time.Millisecond)
				broken := time.Now()
				if _, err := client.Children(t.Context(), "/"); err != nil {
					t.Error(err)
				}
				if took := time.Since(broken); took < handshake || took > 5*handshake {
					t.Errorf("read after %v", took)
				}
				calm()
			})
		})
	}
}

// A tardy makes connections on which a handshake takes long.
type tardy struct {
	dial dialer

	mu          sync.Mutex
	connections []net.Conn
	handshake   time.Duration
}

type tardyConn struct {
	net.Conn
	late time.Duration
}

func (d *tardy) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connections = append(d.connections, conn)
	return &tardyConn{conn, d.handshake}, nil
}

func (d *tardy) wait(handshake time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handshake = handshake
}

// closeAll closes so many connections, in the order in which they were made.
func (d *tardy) closeAll(first, count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.connections[first : first+count] {
		conn.Close()
	}
}

func (c *tardyConn) Write(frame []byte) (int, error) {
	if c.late > 0 {
		time.Sleep(c.late)
		c.late = 0
	}
	return c.Conn.Write(frame)
}
