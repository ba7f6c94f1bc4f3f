package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/trace"
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
	connectionState
	ownership
	life

	client *Client
	conn   *zk.Conn
	log    *zap.Logger

	fenced  atomic.Bool     // nothing more is written or dialled
	heardOf atomic.Bool     // the ensemble has answered that the session is closed
	over    context.Context //nolint:containedctx // ends when the session has ended
	end     context.CancelFunc

	mu         sync.Mutex // guards what follows, connectionState, ownership and life
	id         int64
	guard      *time.Timer // looks at the deadline
	closedLate bool

	looked instant // when Reattach began to read what the session owned

	newestZxid atomic.Int64 // of the answers to our own requests
	ownAsked   atomic.Int32 // requests of our own

	sharedProof *sharedProof // proves it, or is proved by it; nil while it proves itself alone
	roundWith   *sharedProof // what that was when the round began that is under way
	beats       *time.Timer  // of heartbeats; nil before there are any, and set once
	summoned    atomic.Bool  // a look is to be taken at once whether one is due

	atEnd    func()      // called at the end; nil unless the session is lent. See PooledSession
	doubtful atomic.Bool // a request was not answered, or not carried out

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
func (s *Session) Done() <-chan struct{} { return s.over.Done() }

// AfterEnd has f called in a goroutine of its own after the session has ended, unless stop is called before.
func (s *Session) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(s.over, f) }

// Err returns why the session has ended, or nil.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ValidFor returns for how long the session is certainly alive and the end of what it owns can wait, whoever has asked for it; 0
// once it has ended or begun to close, and while it sleeps.
func (s *Session) ValidFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.validFor(s.now())
}

// Suspended says whether a heartbeat is late, with a channel that is closed when that may have changed.
func (s *Session) Suspended() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended || s.doubted, s.changed
}

func (s *Session) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.negotiated
}

// patience is how long one server may take for a connection or a handshake.
func (s *Session) serverTimeout() time.Duration { return max(time.Second/2, s.timeout()/6) }

// established starts the life of the session. The lock is held.
func (s *Session) established(id int64, timeout time.Duration, handshake exchange) {
	s.id, s.negotiated = id, timeout
	s.interval = s.client.config.interval(timeout)
	s.least = s.client.config.Validity(timeout).Least
	s.unheard = s.client.config.unheard(timeout)
	s.proof = s.client.config.proof(timeout)
	s.proof.opened(handshake)
	s.wanted = s.now()
	s.tellProof(trace.Opened, handshake, 0)
	s.guard = time.AfterFunc(s.proof.deadline.since(s.now()), s.checkDeadline)
	if !s.brief {
		s.client.deadlineWatch.join(s)
	}
}

// tellProof tells what the session's proof has learned from, and until when it takes the session for alive since; and by which other session.
func (s *Session) tellProof(kind trace.Kind, from exchange, by int64) {
	if !trace.Told() {
		return
	}
	step := trace.Step{
		Kind: kind, Session: s.id, By: by,
		Sent: time.Duration(from.sent), Answered: time.Duration(from.answered), Until: time.Duration(s.proof.deadline),
	}
	if kind == trace.Opened {
		step.Clock = s.client.config.Clock
	}
	trace.Tell(step)
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
	trace.Tell(trace.Step{Kind: trace.Over, Session: s.id})
	s.connected = false
	s.part()
	w := s.wire
	if s.guard != nil {
		s.guard.Stop()
		if s.beats != nil {
			s.beats.Stop()
		}
		s.client.deadlineWatch.leave(s)
	}
	s.change()
	s.client.discard(s) // announced before anybody can learn of the end and close the client
	s.end()
	if s.atEnd != nil {
		s.atEnd()
	}
	s.mu.Unlock()
	if w != nil {
		w.abandon() // before the connection is closed, which may take its time
		w.drop()
	}
	if !s.brief && !errors.Is(err, errClosed) {
		s.log.Info("session ended", zap.Error(err))
	}
}
