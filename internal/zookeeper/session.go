package zookeeper

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Why a session ended; each wraps recipes.ErrSessionEnded.
var (
	errExpired    = fmt.Errorf("%w: the ensemble expired it", recipes.ErrSessionEnded)
	errUnproved   = fmt.Errorf("%w: it can no longer be proved alive", recipes.ErrSessionEnded)
	errUnseen     = fmt.Errorf("%w: what is asked of its places can no longer be seen", recipes.ErrSessionEnded)
	errClosed     = fmt.Errorf("%w: closed", recipes.ErrSessionEnded)
	errShortened  = fmt.Errorf("%w: a server grants it a shorter timeout than the one before", recipes.ErrSessionEnded)
	errReplaced   = fmt.Errorf("%w: its connection was lost", recipes.ErrSessionEnded)
	errAuthFailed = fmt.Errorf("%w: %w: wrong credentials", recipes.ErrSessionEnded, recipes.ErrDenied)
)

// A Session is one ZooKeeper session. It ends once and never comes back: when the ensemble expires it, when it can no
// longer be proved alive (see the package comment), or when it is closed. It never becomes another session, whatever
// the library would like. All its calls return when it ends.
type Session struct {
	tree

	client *Client
	conn   *zk.Conn
	log    *zap.Logger
	brief  bool // ends with its first connection, as the reader's do

	fenced atomic.Bool   // nothing more is written or dialled
	done   chan struct{} // closed when the session has ended

	mu            sync.Mutex
	auth          []byte // is sent behind each handshake: the credentials of when the session was opened, or the reader's newest
	id            int64
	password      [passwordBytes]byte // which servers want of whoever comes back to the session
	negotiated    time.Duration
	interval      time.Duration // between heartbeats
	proof         proof
	wire          *wire           // the present connection, if any
	address       string          // of that connection
	generation    int             // of connections that have answered the handshake
	attempts      int             // dials since the last heartbeat that was answered
	refusals      map[string]bool // servers that closed the connection instead of answering the handshake
	refusedView   *view           // the reader's while they did
	connected     bool
	suspended     bool
	changed       chan struct{} // closed and made anew when connected or suspended changes
	guard         *time.Timer   // looks at the deadline
	places        map[string]ownedNode
	bytes         int                      // of the places' paths
	placeBarriers map[string]*placeBarrier // of the places that bound the validity
	barrier       instant                  // the oldest of theirs
	closing       bool
	closedLate    bool
	err           error
	ended         instant // when err was set

	making   chan struct{} // held while the library makes a container; see quit
	quitting atomic.Bool
	quitted  chan struct{} // closed when the library's connection is

	ready chan struct{}  // closed when conn is set
	work  sync.WaitGroup // goroutines that use the library
}

// ID returns the session's number in the ensemble, which never leaves the sidecar; 0 before the ensemble has given it one.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout returns the session timeout as the ensemble granted it.
func (s *Session) Timeout() time.Duration { return s.timeout() }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session has ended, or nil.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ValidFor returns for how long the session is certainly alive and the end of what it owns can wait, whoever has asked for it; 0
// once it has ended or begun to close.
func (s *Session) ValidFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.err != nil {
		return 0
	}
	return max(0, s.validUntil().since(s.now()))
}

// Suspended says whether a heartbeat is late, with a channel that is closed when that may have changed.
func (s *Session) Suspended() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended, s.changed
}

// Owns says whether the node lives with this session.
func (s *Session) Owns(node recipes.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return node.Owner != 0 && node.Owner == s.id
}

func (s *Session) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.negotiated
}

// patience is how long one server may take for a connection or a handshake.
func (s *Session) serverTimeout() time.Duration { return max(time.Second/2, s.timeout()/6) }

// change tells those who wait that connected or suspended has changed. The lock is held.
func (s *Session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// nextAttempt counts a dial and returns how many there were since the last heartbeat that was answered.
func (s *Session) nextAttempt() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	return s.attempts - 1
}

func (s *Session) dialFailed(address string, err error) {
	s.log.Debug("server not reached", zap.String("server", address), zap.Error(err))
}

// attach makes w the present connection, unless the session has ended meanwhile or may have no second one.
func (s *Session) attach(w *wire, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fenced.Load() {
		return false
	}
	s.wire, s.address = w, address
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
	s.change()
}

// isRefused says whether every server refuses this session, while the one that the reader is attached to serves. The lock is held.
func (s *Session) isRefused() bool {
	present, _ := s.client.reader.current()
	return present != nil && present == s.refusedView && present.session.Err() == nil &&
		len(s.refusals) == len(s.client.config.Servers) && s.refusals[s.client.reader.address()]
}

// remember keeps the session's password, which an answer to a handshake ends with.
func (s *Session) remember(password []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == 0 {
		copy(s.password[:], password)
	}
}

// connectAnswered takes the server's answer to a handshake.
func (s *Session) connectAnswered(w *wire, id int64, timeout time.Duration) {
	s.mu.Lock()
	if id == 0 || (s.id != 0 && id != s.id) {
		s.mu.Unlock()
		s.lose(errExpired)
		return
	}
	s.generation++
	clear(s.refusals)
	s.client.silentServers.end(s.address)
	if s.id != 0 && timeout < s.negotiated {
		s.mu.Unlock()
		s.lose(errShortened) // the ensemble ends it sooner than the proof would have it
		return
	}
	if s.id == 0 {
		s.established(id, timeout, w.handshake)
	} else {
		s.proof.reattached(w.handshake)
	}
	s.mu.Unlock()
}

// established starts the life of the session. The lock is held.
func (s *Session) established(id int64, timeout time.Duration, handshake exchange) {
	s.id, s.negotiated = id, timeout
	s.interval = s.client.config.interval(timeout)
	s.proof = s.client.config.proof(timeout)
	s.proof.opened(handshake)
	s.guard = time.AfterFunc(s.proof.deadline.since(s.now()), s.checkDeadline)
	if !s.brief {
		s.client.deadlineWatch.join(s)
	}
}

// event is the library's callback: it must not block.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		s.client.reader.fired(s, e)
		return
	}
	switch e.State {
	case zk.StateHasSession:
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
		s.change()
	}
}

// lose ends the session for good, in this order: nothing more is written or dialled; everybody learns it; the
// connection is closed. The ensemble may take until the timeout to notice.
func (s *Session) lose(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.fenced.Store(true)
	s.err, s.ended = err, s.now()
	s.connected = false
	w := s.wire
	if s.guard != nil {
		s.guard.Stop()
		s.client.deadlineWatch.leave(s)
	}
	s.change()
	s.client.discard(s) // announced before anybody can learn of the end and close the client
	close(s.done)
	s.mu.Unlock()
	if w != nil {
		w.drop()
	}
	if !s.brief && !errors.Is(err, errClosed) {
		s.log.Info("session ended", zap.Error(err))
	}
}
