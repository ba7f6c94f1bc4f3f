package simulation_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A fickle dialer connects to servers that, while they are told to, answer the handshake and then drop the connection.
type fickle struct {
	dial     dialer
	dropping atomic.Bool
	dials    atomic.Int64
}

func (f *fickle) connect(ctx context.Context, network, address string) (net.Conn, error) {
	f.dials.Add(1)
	conn, err := f.dial(ctx, network, address)
	if err != nil || !f.dropping.Load() {
		return conn, err
	}
	return &dropped{Conn: conn}, nil
}

// A dropped connection ends with the first request behind the handshake.
type dropped struct {
	net.Conn
	greeting sync.Once
}

func (d *dropped) Write(frame []byte) (int, error) {
	first := false
	d.greeting.Do(func() { first = true })
	if !first {
		_ = d.Close()
		return 0, net.ErrClosed
	}
	return d.Conn.Write(frame)
}

// A server that answers the handshake has said nothing of what it will do then.
func TestAServerThatDropsWhoHasJustComeIsNotHammered(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		servers := &fickle{dial: e.Dialer(0)}
		began := time.Now()
		c, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
			Heartbeat: 2 * time.Second, Dial: servers.connect, Clock: func() time.Duration { return time.Since(began) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s := w.open(t, c)
		time.Sleep(10 * time.Second)
		servers.dropping.Store(true)
		for server := range 3 {
			e.Reset(0, server)
		}
		before := servers.dials.Load()
		const while = 5 * time.Second
		time.Sleep(while)
		const most = 60 // of the session, and of the reader
		if dials := servers.dials.Load() - before; dials < 5 || dials > most {
			t.Errorf("%d dials in %v", dials, while)
		}
		if suspended, _ := s.Suspended(); !suspended {
			t.Error("nothing is proved any more, and it is not said")
		}
		servers.dropping.Store(false)
		time.Sleep(3 * time.Second)
		if suspended, _ := s.Suspended(); suspended || s.Err() != nil {
			t.Errorf("when all is well again: suspended %t, %v", suspended, s.Err())
		}
		w.close(s)
	})
}

func TestAServerThatRefusesHeartbeatsIsNotHammered(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		by := &refuser{}
		c := refusing(t, e, by)
		defer c.Close()
		s := w.open(t, c)
		time.Sleep(10 * time.Second)
		heartbeats := by.refuse(kindMulti, codeThrottled, -1)
		const while = 6 * time.Second // an interval until the first, one until it counts as late, and a pause of a second
		time.Sleep(while)
		const most = 96 // of the session, and of the reader
		if sent := by.count(heartbeats); sent < 5 || sent > most {
			t.Errorf("%d heartbeats in %v", sent, while)
		}
		if suspended, _ := s.Suspended(); !suspended {
			t.Error("nothing is proved any more, and it is not said")
		}
		by.refuse(kindMulti, codeThrottled, 0)
		time.Sleep(3 * time.Second)
		if suspended, _ := s.Suspended(); suspended || s.Err() != nil {
			t.Errorf("when all is well again: suspended %t, %v", suspended, s.Err())
		}
		w.close(s)
	})
}
