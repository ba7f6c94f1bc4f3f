package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// A gate lets so many handshakes through at a time: a server's backlog is short, and a storm of a thousand sessions that
// reconnect would overflow it.
type gate chan struct{}

// enter returns once there is room and gives a function that leaves, any number of times.
func (g gate) enter(done <-chan struct{}) (leave func(), err error) {
	select {
	case g <- struct{}{}:
		return sync.OnceFunc(func() { <-g }), nil
	case <-done:
		return nil, errFenced
	}
}

// hosts hands the library one server after the other, unresolved, for ever; the dialer is where it waits. It begins anew when the list
// of servers changes. It implements the library's HostProvider.
type hosts struct {
	session    *Session
	servers    []string
	generation int // of the list that servers are in the order of
	next       int
}

func (h *hosts) Init([]string) error { return nil }
func (h *hosts) Len() int            { return len(h.servers) }
func (h *hosts) Connected()          {}

// Next returns the next server. Only a fenced session's library is told to pause, for there it looks whether it
// shall stop.
func (h *hosts) Next() (server string, retryStart bool) {
	h.order()
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, h.session.fenced.Load()
}

// order puts the servers in order, once for each list of them.
func (h *hosts) order() {
	client := h.session.client
	_, _, generation := client.servers.current()
	if generation == h.generation {
		return
	}
	preferred := ""
	if !h.session.brief {
		preferred = client.reader.address()
	}
	h.servers, h.generation, h.next = client.serversFrom(preferred), generation, 0
}

// serversFrom is the servers in random order, those that come last behind the others; but for the first, which is the preferred one if
// it is among them.
func (c *Client) serversFrom(preferred string) []string {
	first, rest, _ := c.servers.current()
	order := make([]string, 0, len(first)+len(rest))
	for _, servers := range [][]string{first, rest} {
		for _, i := range c.random.Perm(len(servers)) {
			order = append(order, servers[i])
		}
	}
	for i, server := range order {
		if server == preferred {
			order[0], order[i] = order[i], order[0]
		}
	}
	return order
}

// dial is the library's dialer: it waits as long as the failures so far ask for, resolves the name, and connects. A server that is
// avoided costs neither time nor an attempt.
func (s *Session) dial(_, address string, _ time.Duration) (net.Conn, error) {
	if s.client.silentServers.avoids(address) {
		return nil, errSilent
	}
	if err := s.backOff(); err != nil {
		return nil, err
	}
	if err := s.prepareSASL(address); err != nil {
		return nil, err
	}
	leave, err := s.enterGate(address)
	if err != nil {
		return nil, err
	}
	s.countAttempt()
	conn, err := s.connect(address)
	if err != nil {
		leave()
		s.client.silentServers.refuse(address, err)
		s.client.servers.doubt(address)
		s.unasked()
		s.log.Debug("server not reached", zap.String("server", address), zap.Error(err))
		return nil, err
	}
	w := newWire(conn, s, leave)
	if !s.attach(w, address) {
		w.Close()
		return nil, errFenced
	}
	return w, nil
}

// enterGate waits for room for a handshake. It is given back when the handshake is over, or when the server has left it unanswered
// for a while: one that is silent must not keep anybody from the others.
func (s *Session) enterGate(address string) (leave func(), err error) {
	giveBack, err := s.gate().enter(s.over.Done())
	if err != nil {
		return nil, err
	}
	if s.client.silentServers.avoids(address) {
		giveBack()
		return nil, errSilent
	}
	var over atomic.Bool
	unanswered := time.AfterFunc(silentAfter, func() {
		s.client.silentServers.beginUnless(address, over.Load)
		giveBack()
	})
	return func() {
		over.Store(true)
		unanswered.Stop()
		giveBack()
	}, nil
}

func (s *Session) connect(address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(time.Second, s.serverTimeout()))
	defer cancel()
	if s.client.config.TLS != nil {
		s.present(s.client.config.TLS())
	}
	return s.client.connect(ctx, address)
}

// present notes with which certificate the session is about to connect.
func (s *Session) present(certificate *tls.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate = certificate
}

// connect opens a connection to a server, secured if the ensemble's are.
func (c *Client) connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.config.Dial(ctx, "tcp", address)
	if err != nil || c.config.TLS == nil {
		return conn, err
	}
	config := c.config.TLS().Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// dialAlone looks a server's name up by itself, and connects. Go would have it wait for any look-up of the same name that is under way: also for
// one whose caller has given it up, and whose question was lost, though the name server answers by now. What is given up here ends at once.
func dialAlone(ctx context.Context, network, address string) (net.Conn, error) {
	usual := net.DefaultResolver
	ask := usual.Dial
	if ask == nil {
		ask = (&net.Dialer{}).DialContext
	}
	own := &net.Resolver{PreferGo: usual.PreferGo, StrictErrors: usual.StrictErrors}
	own.Dial = func(_ context.Context, network, address string) (net.Conn, error) {
		asked, err := ask(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = asked.Close() }) // Go waits for the answer until the resolver's own limit
		}
		return asked, err
	}
	return (&net.Dialer{Resolver: own}).DialContext(ctx, network, address)
}

// backOff waits before every attempt but the first since a heartbeat was last answered: full jitter, doubling, from the attempt before
// it. A handshake that was answered says little of the connection: a server may drop it at once.
func (s *Session) backOff() error {
	timer := time.NewTimer(s.untilAttempt())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.over.Done():
		return errFenced
	}
}
