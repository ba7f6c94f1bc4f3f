package zookeeper

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	handshakesAtOnce = 32 // a server's backlog is 50 by default
	readersAtOnce    = 4  // beside them: all wait for the reader, which waits for nobody
	openingsAtOnce   = 16 // each throws 1.5 MiB of the library's default buffer away

	leaseBuffer  = 1 << 10 // of the library, which only shakes hands, pings and closes for leases
	leaseAnswer  = 4 << 10 // the longest answer to what leases ask for, where it is not said to be longer: a path and little more
	readerBuffer = 4 << 20 // the longest list of children that can be read
)

// A Client is one sidecar's access to one ensemble: it opens a session for each lease, and keeps one of its own, the reader,
// that lists and watches for all of them. Close it after its sessions.
type Client struct {
	tree

	config        Config
	permanent     map[string]bool
	handshakes    gate // of leases
	readers       gate // is for the handshakes of the reader
	openings      gate
	lateClosings  gate
	deadlineWatch *deadlineWatch
	servers       *serverList
	silentServers *silentServers
	pool          sessionPool
	sharedProofs  sharedProofs
	shown         highWater
	demandsAuth   atomic.Bool      // whether the ensemble's newest answer was that it demands authentication
	denied        atomic.Bool      // whether it has denied the reader the configured directories when that tried last
	crowded       largeDirectories // whose lists are read by the reader alone
	saslState     saslState
	quotas        *quota.Keeper // or nil
	random        *rand.Rand
	life          context.Context //nolint:containedctx // ends with Close
	stop          context.CancelFunc
	work          sync.WaitGroup
}

// New checks the settings and starts connecting. A setting that cannot be safe is an error; an ensemble that does not
// answer is not: see Reachable.
func New(config Config) (*Client, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	c := &Client{
		config:        config,
		permanent:     make(map[string]bool),
		handshakes:    make(gate, handshakesAtOnce),
		readers:       make(gate, readersAtOnce),
		openings:      make(gate, openingsAtOnce),
		lateClosings:  make(gate, lateClosingsAtOnce),
		deadlineWatch: &deadlineWatch{clock: config.Clock, sessions: make(map[*Session]struct{})},
		servers:       newServerList(config.Servers, config.Log),
		random:        rand.New(config.Random),
		saslState:     saslState{told: make(map[saslReport]time.Time)},
		sharedProofs:  newSharedProofs(),
	}
	c.silentServers = newSilentServers(c.servers)
	for _, dir := range config.Directories {
		c.permanent[dir] = true
	}
	ctx, stop := context.WithCancel(context.Background())
	c.life, c.stop = ctx, stop
	c.tree = tree{reader: &reader{client: c, changed: make(chan struct{})}}
	if config.Quotas { // which the reader obeys
		c.quotas = quota.NewKeeper(config.Directories)
	}
	c.work.Go(func() { c.reader.run(ctx) })
	c.work.Go(func() { c.tellContact(ctx) })
	if config.Quotas {
		c.work.Go(func() { c.quotas.Run(ctx, c) })
	}
	if config.FollowServers {
		c.work.Go(func() { c.followServers(ctx) })
	}
	if config.Auth != nil {
		c.work.Go(func() { c.followCredentials(ctx) })
	}
	if config.SASL != nil {
		c.work.Go(func() { c.keepSASL(ctx) })
	}
	return c, nil
}

// Close closes idle sessions, ends the reader, and waits until every session's connection has been closed.
func (c *Client) Close() {
	c.pool.close()
	c.stop()
	c.work.Wait()
}

// Open opens a session with this timeout, or the configured one if it is 0. It gives up with ErrUnreachable after a
// third of the timeout, with ErrConnectionLimit as soon as the servers are seen to refuse it for being one too many, and at once with
// ErrRestored while the ensemble is older than it was.
func (c *Client) Open(ctx context.Context, timeout time.Duration) (*Session, error) {
	if timeout == 0 {
		timeout = c.config.SessionTimeout
	}
	if err := c.config.safe(timeout); err != nil {
		return nil, err
	}
	if c.shown.restored.Load() {
		return nil, recipes.ErrRestored // which the reader finds out to be over
	}
	return c.open(ctx, timeout, false)
}

func (c *Client) open(ctx context.Context, timeout time.Duration, brief bool) (*Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, givesUpAfter(timeout), recipes.ErrUnreachable)
	defer cancel()
	if !brief {
		leave, err := c.openings.enter(ctx.Done())
		if err != nil {
			return nil, context.Cause(ctx)
		}
		defer leave()
	}
	s := c.newSession(timeout, brief)
	if err := s.begin(ctx); err != nil {
		return nil, c.demanded(err)
	}
	if err := c.config.safe(s.Timeout()); err != nil {
		s.Close(ctx)
		return nil, fmt.Errorf("the ensemble changed the timeout %v: %w", timeout, err)
	}
	if !s.startPulse() {
		return nil, s.Err()
	}
	return s, nil
}

// begin connects, and returns when a server has answered the handshake.
func (s *Session) begin(ctx context.Context) error {
	began := time.Now()
	if err := s.start(s.Timeout()); err != nil {
		return err
	}
	err := s.awaitEstablished(ctx)
	s.client.config.Observe(ctx, "createSession", time.Since(began), err != nil)
	if err != nil {
		s.lose(errClosed)
	}
	return err
}

func (c *Client) newSession(timeout time.Duration, brief bool) *Session {
	s := &Session{
		client:          c,
		log:             c.config.Log,
		connectionState: connectionState{auth: c.introduction(), refusals: make(map[string]bool), changed: make(chan struct{})},
		ownership:       ownership{places: make(map[string]ownedNode)},
		life:            life{negotiated: timeout, brief: brief, barriers: barriers{placeBarriers: make(map[string]*placeBarrier)}},
		quitted:         make(chan struct{}),
		ready:           make(chan struct{}),
	}
	s.over, s.end = context.WithCancel(context.Background())
	s.tree = tree{reader: c.reader, owner: s}
	return s
}

// gate is what the session's handshakes go through.
func (s *Session) gate() gate {
	if s.brief {
		return s.client.readers
	}
	return s.client.handshakes
}

// start lets the library connect.
func (s *Session) start(timeout time.Duration) error {
	hosts := &hosts{session: s, generation: -1}
	hosts.order()
	send, receive := zk.WithMaxConnBufferSize(leaseBuffer), zk.WithMaxBufferSize(leaseBuffer)
	if s.brief {
		send, receive = zk.WithMaxConnBufferSize(readerBuffer), zk.WithMaxBufferSize(readerBuffer)
	}
	conn, _, err := zk.Connect(s.client.config.Servers, timeout, send, receive,
		zk.WithHostProvider(hosts),
		zk.WithDialer(s.dial),
		zk.WithEventCallback(s.event),
		zk.WithLogInfo(false),
		zk.WithLogger(libraryLog{s.log.Sugar()}))
	if err != nil {
		return err
	}
	s.conn = conn
	close(s.ready)
	return nil
}

// awaitEstablished waits for the first connection.
func (s *Session) awaitEstablished(ctx context.Context) error {
	for confirmed := false; ; {
		s.mu.Lock()
		connected, changed, err, refused := s.connected, s.changed, s.err, s.isRefused()
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case connected:
			return nil
		case refused && confirmed:
			return recipes.ErrConnectionLimit
		case refused: // perhaps by servers without a leader, of which the reader has not heard yet
			if err := s.CatchUp(ctx); err != nil {
				return err
			}
			confirmed = true
			continue
		}
		confirmed = false
		select {
		case <-changed:
		case <-s.over.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// discard closes what a session leaves behind when it has ended. The library takes up to three seconds to stop.
func (c *Client) discard(s *Session) {
	c.work.Go(func() {
		<-s.over.Done()
		<-s.ready
		s.quit()
		s.work.Wait()
	})
}

// Reachable says whether the ensemble answers, with a channel that is closed when that may have changed.
func (c *Client) Reachable() (bool, <-chan struct{}) { return c.reader.reachable() }

// libraryLog gives the library's errors to the log as details.
type libraryLog struct{ *zap.SugaredLogger }

func (l libraryLog) Printf(format string, args ...any) { l.Debugf(format, args...) }
