package simulation_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// witnessed runs a test in virtual time with an ensemble that is complete, and returns the promises that were broken.
func witnessed(t *testing.T, options simulation.Options, test func(*testing.T, *simulation.Ensemble, *witness)) []string {
	t.Helper()
	w := &witness{sessions: map[int64]*zookeeper.Session{}, closing: map[int64]bool{}}
	bubble.Test(t, func(t *testing.T) {
		options.Ended = w.ended
		e := simulation.New(options)
		defer e.Close()
		e.Await()
		test(t, e, w)
		if disagreement := e.Disagreement(); disagreement != "" {
			w.accusef("%s", disagreement)
		}
	})
	return w.broken
}

// inBubble runs a test in virtual time with an ensemble that is complete. No session may be valid when its end is committed.
func inBubble(t *testing.T, options simulation.Options, test func(*testing.T, *simulation.Ensemble, *witness)) {
	t.Helper()
	for _, broken := range witnessed(t, options, test) {
		t.Error(broken)
	}
}

// A witness looks at each session in the instant in which its end is committed, and collects what was promised and not kept.
type witness struct {
	mu       sync.Mutex
	sessions map[int64]*zookeeper.Session
	left     map[int64][]*zookeeper.Session // of processes that have died, which others have come back to
	closing  map[int64]bool                 // by whom opened them
	ends     int
	broken   []string
}

func (w *witness) accusef(format string, details ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, details...))
}

// watch says whether the session was watched before.
func (w *witness) watch(s *zookeeper.Session) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, again = w.sessions[s.ID()]
	w.sessions[s.ID()] = s
	return again
}

// comeBack says that a process has died, and what it believed is believed on by its callers, beside what another one does.
func (w *witness) comeBack(dead *zookeeper.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		w.left = map[int64][]*zookeeper.Session{}
	}
	w.left[dead.ID()] = append(w.left[dead.ID()], dead)
}

// ended looks at a session. One that sleeps may not know yet that it is over.
func (w *witness) ended(session int64) {
	w.mu.Lock()
	s, closing := w.sessions[session], w.closing[session]
	for _, dead := range w.left[session] {
		if valid := dead.ValidFor(); valid > 0 && !closing {
			w.broken = append(w.broken, fmt.Sprintf(
				"session %x is valid for %v for callers of a dead process when its end is committed", session, valid,
			))
		}
	}
	if s != nil {
		w.ends++
	}
	w.mu.Unlock()
	if s == nil {
		return
	}
	if valid := s.ValidFor(); valid > 0 {
		w.accusef("session %x is valid for %v when its end is committed", session, valid)
		return
	}
	select {
	case <-s.Done():
	default:
		if !closing && !s.Asleep() {
			w.accusef("session %x is not over when its end is committed", session)
		}
	}
}

// close closes a session, or gives it back.
func (w *witness) close(s interface {
	ID() int64
	Close(ctx context.Context)
},
) {
	w.mu.Lock()
	w.closing[s.ID()] = true
	w.mu.Unlock()
	s.Close(context.Background())
}

// newClient is one sidecar's, on a host.
func newClient(t *testing.T, e *simulation.Ensemble, host int, timeout time.Duration, servers ...string) *zookeeper.Client {
	t.Helper()
	all := len(servers) == 0
	if all {
		servers = e.Addresses()
	}
	began := time.Now()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: servers, SessionTimeout: timeout, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, FollowServers: all,
		Dial: e.Dialer(host), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *witness) open(t *testing.T, c *zookeeper.Client) *zookeeper.Session {
	t.Helper()
	s, err := c.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.watch(s)
	return s
}

// plainDialer is a dialer on a host, as go-zookeeper wants it.
func plainDialer(e *simulation.Ensemble, host int) func(string, string, time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return e.Dialer(host)(ctx, network, address)
	}
}
