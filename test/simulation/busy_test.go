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

// The transactions of a lease that is used prove it as heartbeats would, for as long as any client's that asks for nothing.
func TestABusyLeaseSendsNoHeartbeat(t *testing.T) {
	for name, c := range map[string]struct {
		holds bool // a place besides, which has to be asked for
		pause time.Duration
		most  int // heartbeats in a minute
	}{
		"often":                {pause: 100 * time.Millisecond},
		"now and then":         {pause: 1700 * time.Millisecond, most: 1},
		"often, with a hold":   {pause: 100 * time.Millisecond, holds: true, most: 10},
		"seldom":               {pause: 10 * time.Second, most: 30},
		"seldom, with a hold":  {pause: 5 * time.Second, holds: true, most: 30},
		"at irregular moments": {pause: 1100 * time.Millisecond, most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client, requests := counted(t, e)
				defer client.Close()
				s := w.open(t, client)
				if c.holds {
					place(t, s, "/sidekeeper/locks/held")
				}
				time.Sleep(10 * time.Second)
				requests.forget()
				least := leastWhile(t, s, time.Minute, func() {
					s.Dequeue(t.Context(), place(t, s, "/sidekeeper/locks/busy"))
					time.Sleep(c.pause)
				})
				if sent := requests.of(s.ID())[kindMulti]; sent > c.most {
					t.Errorf("%d heartbeats in a minute", sent)
				}
				if want := 7350*time.Millisecond - 50*time.Millisecond; least < want { // as docs/configuration.md has it, less what answers take
					t.Errorf("valid for no more than %v, where heartbeats alone leave %v", least, want)
				}
				w.close(s)
			})
		})
	}
}

// Requests that are under way together, whose answers stall with what the leader sends, and what the server has to report is lost: all that is
// answered then was sent before any of it.
func TestABusySessionEndsInTimeThoughItsServerHearsOfTheLeaderLateAndIsNotHeard(t *testing.T) {
	schedules := int(share(100))
	ended := 0
	for seed := range uint64(schedules) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			leader, server := e.Leader(), follower(e)
			client := newClient(t, e, 0, short, e.Addresses()[server])
			defer client.Close()
			session := w.open(t, client)
			var callers sync.WaitGroup
			callers.Go(func() { acquireAndRelease(session, &callers) })
			time.Sleep(5*time.Second + time.Duration(seed*73)*time.Millisecond)

			e.Cut(leader, server)
			time.Sleep(300*time.Millisecond + time.Duration(seed%25)*50*time.Millisecond)
			e.Cut(server, leader)
			time.Sleep(10 * time.Millisecond)
			e.Mend(leader, server)
			time.Sleep(2 * short)
			if session.Err() == nil {
				t.Errorf("seed %d: the session is valid for %v", seed, session.ValidFor())
			}
			ended += w.ends
			e.Mend(server, leader)
			e.Await()
			callers.Wait()
		})
	}
	if ended < schedules*9/10 {
		t.Errorf("only %d of %d sessions were ended by the ensemble", ended, schedules)
	}
}

// acquireAndRelease makes and deletes places until the session ends, and waits for none before it makes the next.
func acquireAndRelease(s *zookeeper.Session, callers *sync.WaitGroup) {
	for s.Err() == nil {
		callers.Go(func() {
			if made, err := s.Enqueue(context.Background(), "/locks/busy", "-lock-", nil); err == nil {
				s.Dequeue(context.Background(), "/locks/busy/"+made.Name)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
}

// counted is a client whose requests are counted.
func counted(t *testing.T, e *simulation.Ensemble) (*zookeeper.Client, *requestCounter) {
	t.Helper()
	began, requests := time.Now(), &requestCounter{sent: map[int64]map[uint32]int{}}
	client, err := zookeeper.New(zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Directories: []string{"/sidekeeper"}, Dial: requests.dialer(e.Dialer(0)), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, requests
}

func place(t *testing.T, s *zookeeper.Session, dir string) string {
	t.Helper()
	made, err := s.Enqueue(t.Context(), dir, "-lock-", nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir + "/" + made.Name
}

// leastWhile does something again and again, and returns how long the session was valid at least.
func leastWhile(t *testing.T, s *zookeeper.Session, while time.Duration, do func()) (least time.Duration) {
	t.Helper()
	done, over := make(chan struct{}), make(chan struct{})
	least = s.Timeout()
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				least = min(least, s.ValidFor())
			}
		}
	}()
	func() {
		defer func() {
			close(done)
			<-over
		}()
		for began := time.Now(); time.Since(began) < while; {
			do()
		}
	}()
	return least
}

// A requestCounter counts what is sent for each session, by its kind.
type requestCounter struct {
	mu   sync.Mutex
	sent map[int64]map[uint32]int
}

type countedConn struct {
	net.Conn
	counter *requestCounter
	session int64
	greeted bool
}

func (r *requestCounter) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, counter: r}, nil
	}
}

// Read notes the session, which a server's first answer names behind length, version and timeout.
func (c *countedConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if !c.greeted && n >= 20 {
		c.greeted = true
		c.counter.mu.Lock()
		c.session = int64(binary.BigEndian.Uint64(buffer[12:]))
		c.counter.mu.Unlock()
	}
	return n, err
}

// Write takes whole frames.
func (c *countedConn) Write(frame []byte) (int, error) {
	if len(frame) >= 12 {
		c.counter.count(c, binary.BigEndian.Uint32(frame[8:]))
	}
	return c.Conn.Write(frame)
}

func (r *requestCounter) count(c *countedConn, kind uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent[c.session] == nil {
		r.sent[c.session] = map[uint32]int{}
	}
	r.sent[c.session][kind]++
}

// of is what was sent for the session.
func (r *requestCounter) of(session int64) map[uint32]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[session]
}

func (r *requestCounter) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sent)
}
