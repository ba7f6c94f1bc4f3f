package simulation_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
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

// A wiretap counts the transactions that are sent over each connection.
type wiretap struct {
	mu   sync.Mutex
	sent map[*tapped]int
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
		w.sent = map[*tapped]int{}
	}
	w.sent[c]++
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
}
