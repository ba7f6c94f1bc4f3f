package zookeeper

import (
	"crypto/tls"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A connectionState is how a session stands with the ensemble: its present connection, if any, and what was tried since it had one. The
// session's lock guards it.
type connectionState struct {
	auth        []byte              // is sent behind each handshake: the credentials of when the session was opened, or the reader's newest
	password    [passwordBytes]byte // which servers want of whoever comes back to the session
	wire        *wire               // the present connection, if any
	birth       *wire               // on which the session was made; nil if another process has opened it
	address     string              // of that connection
	certificate *tls.Config         // with which the newest connection was dialled; nil without
	generation  int                 // of connections that have answered the handshake
	attempts    int                 // dials since the last heartbeat that was answered
	nextAttempt instant             // the earliest for the next one
	refusals    map[string]bool     // servers that closed the connection instead of answering the handshake
	refusedView *view               // the reader's while they did
	connected   bool
	changed     chan struct{} // closed and made anew when connected or suspended changes
}

// change tells those who wait that connected or suspended has changed. The lock is held.
func (s *Session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// awaitConnected returns the number of the present connection, once there is one.
func (s *Session) awaitConnected() (generation int, err error) {
	for {
		s.mu.Lock()
		generation, connected, changed, err := s.generation, s.connected, s.changed, s.err
		s.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if connected {
			return generation, nil
		}
		select {
		case <-changed:
		case <-s.over.Done():
		}
	}
}

func (s *Session) connection() (generation int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation, s.changed
}

// untilAttempt is how long the next attempt has to wait.
func (s *Session) untilAttempt() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts == 0 {
		return 0
	}
	return s.nextAttempt.since(s.now())
}

// countAttempt counts an attempt to connect, and says when the next one may follow.
func (s *Session) countAttempt() {
	limit := s.timeout() / 8
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = min(20*time.Millisecond<<min(s.attempts, 10), limit)
	s.attempts++
	s.nextAttempt = s.now().add(s.client.upTo(limit) + time.Millisecond)
}

// attach makes w the present connection, unless the session has ended meanwhile or may have no second one.
func (s *Session) attach(w *wire, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fenced.Load() {
		return false
	}
	s.part()
	s.wire, s.address, s.plain = w, address, 0
	return true
}

// mayConnect refuses the handshake for any session but the one this Session is: after an expiry, the library
// would silently ask for a new one.
func (s *Session) mayConnect(id int64) error {
	s.mu.Lock()
	own := s.id
	s.mu.Unlock()
	if own == 0 || id == own {
		return nil
	}
	s.lose(errExpired)
	return errFenced
}

// handshakeRefused notes a server that closed the connection instead of answering. Refusals count together if the reader has
// had the same session all the while: a server without a leader closes connections too, and the reader's among them.
func (s *Session) handshakeRefused(w *wire) {
	present, _ := s.client.reader.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire != w {
		return
	}
	if s.refusedView != present {
		clear(s.refusals)
		s.refusedView = present
	}
	s.refusals[s.address] = true
	s.client.silentServers.refuse(s.address, errHungUp)
	s.change()
}

// isRefused says whether every server refuses this session, while the one that the reader is attached to serves. The lock is held.
func (s *Session) isRefused() bool {
	present, _ := s.client.reader.current()
	return present != nil && present == s.refusedView && present.session.Err() == nil && s.refusals[s.client.reader.address()] &&
		!slices.ContainsFunc(s.client.servers.members(), func(server string) bool { return !s.refusals[server] })
}

// remember keeps the session's password, which an answer to a handshake ends with.
func (s *Session) remember(password []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == 0 {
		copy(s.password[:], password)
	}
}

// connectAnswered takes the server's answer to a handshake, unless the session has ended meanwhile.
func (s *Session) connectAnswered(w *wire, id int64, timeout time.Duration) {
	s.mu.Lock()
	s.client.silentServers.end(s.address)
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	if id == 0 || (s.id != 0 && id != s.id) {
		s.mu.Unlock()
		s.lose(errExpired)
		return
	}
	s.generation++
	clear(s.refusals)
	if s.id != 0 && timeout < s.negotiated {
		s.mu.Unlock()
		s.lose(errShortened) // the ensemble ends it sooner than the proof would have it
		return
	}
	if s.id == 0 {
		s.birth = w
		s.client.sharedProofs.saw(serverOf(id), w.peer)
	}
	if s.guard == nil {
		s.established(id, timeout, w.handshake)
	} else {
		s.proof.reattached(w.handshake)
		s.tellProof(trace.Attached, w.handshake, 0)
	}
	s.mu.Unlock()
}

// server is the address of the server that the session is attached to, or was last.
func (s *Session) server() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// event is the library's callback: it must not block, except to authenticate.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		s.client.reader.fired(s, e)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if !s.authenticate() {
			return
		}
		s.setConnected(true)
	case zk.StateDisconnected:
		s.setConnected(false)
		if s.brief {
			s.lose(errReplaced)
		}
	case zk.StateExpired:
		s.lose(errExpired)
	}
}

func (s *Session) setConnected(connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected != connected {
		s.connected = connected
		if !connected {
			s.part()
		} else if s.beats != nil {
			s.beats.Reset(0) // a heartbeat waits for the connection, or is due over it
		}
		s.change()
	}
}
