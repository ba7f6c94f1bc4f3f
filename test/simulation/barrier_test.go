package simulation_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// Whoever asks for the end of a hold or a member and is not heard waits for the timeout of its session and a tick, counted from when
// the mark was written, and then removes it. Nothing that was told may count then, though the reader that would show the mark
// sees nothing.

func TestAMarkBoundsWhatIsToldOfAHoldThoughTheReaderIsBlind(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
			defer s.close()
			h := s.hold("orders")
			s.goBlind(seed)
			forced, err := h.lock.Break(t.Context(), s.operator, h.token, "operator", "", patience)
			s.wantForced(forced, err, h.teller)
		})
	}
}

// Another session of the same server asks for the place, and another one yet when that has closed: among eight there nearly always are such.
func TestAMarkBoundsWhatIsToldOfAHoldThatAnotherSessionAsksFor(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newSceneBeside(t, e, w, zookeeper.ProofQuorum, lasting, 8)
			defer s.close()
			h := s.hold("orders")
			s.wantValid(10 * time.Second)
			for _, each := range s.probers[:4] {
				w.close(each)
			}
			s.wantValid(10 * time.Second)
			if seed%2 == 0 {
				s.goBlind(seed)
			} else { // no answer is late: the session asks for nothing itself
				s.blindfold.put()
				time.Sleep(time.Duration(seed) * 137 * time.Millisecond)
			}
			forced, err := h.lock.Break(t.Context(), s.operator, h.token, "operator", "", patience)
			s.wantForced(forced, err, h.teller)
		})
	}
}

func TestAMarkBoundsWhatIsToldOfAMemberThoughTheReaderIsBlind(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
			defer s.close()
			m := s.join()
			s.goBlind(seed)
			forced, err := shop.Evict(t.Context(), s.operator, "a", recipes.Eviction{Replace: true, ForceAfter: patience})
			s.wantForced(forced, err, m)
		})
	}
}

// What a server shows to a plain read may be old: by as much as static proof takes into account.
func TestAMarkBoundsWhatIsToldWithStaticProof(t *testing.T) {
	for seed := range share(6) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newScene(t, e, w, zookeeper.ProofStatic, long)
			defer s.close()
			h := s.hold("orders")
			s.goBlind(seed)
			e.Lag(e.ServerOf(s.session.ID()), 9*time.Second)
			forced, err := h.lock.Break(t.Context(), s.operator, h.token, "operator", "", patience)
			s.wantForced(forced, err, h.teller)
		})
	}
}

func TestAMarkOnOneOfManyHoldsBoundsWhatIsTold(t *testing.T) {
	inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
		defer s.close()
		for i := range 300 {
			s.grant(fmt.Sprintf("before-%d", i))
		}
		broken := s.hold("orders")
		for i := range 300 {
			s.grant(fmt.Sprintf("after-%d", i))
		}
		s.wantValid(time.Minute)
		s.goBlind(0)
		forced, err := broken.lock.Break(t.Context(), s.operator, broken.token, "operator", "", patience)
		s.wantForced(forced, err, broken.teller)
	})
}

func TestAReaderInTroubleCostsNoLock(t *testing.T) {
	for _, c := range []struct {
		name    string
		proof   zookeeper.Proof
		timeout time.Duration
	}{
		{"quorum", zookeeper.ProofQuorum, lasting},
		{"quorum, short", zookeeper.ProofQuorum, short},
		{"static", zookeeper.ProofStatic, long},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				s := newScene(t, e, w, c.proof, c.timeout)
				defer s.close()
				s.hold("orders")
				s.join()
				s.blindfold.put()
				s.wantValid(3 * time.Minute)
			})
		})
	}
}

// The reader is also what finds a place again whose creation was not answered.
func TestALostReplyBesideAReaderInTroubleCostsNoLock(t *testing.T) {
	inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		s := newScene(t, e, w, zookeeper.ProofQuorum, short)
		defer s.close()
		s.hold("orders")
		s.refuser.refuse(kindPlace, codeLost, 1)
		s.blindfold.put()
		found := make(chan error, 1)
		go func() {
			_, err := s.session.Enqueue(s.over, "/locks/orders", "-lock-", nil)
			found <- err
		}()
		s.wantValid(20 * time.Second)
		select {
		case err := <-found:
			t.Fatalf("found by a reader that sees nothing: %v", err)
		default:
		}
		s.blindfold.take()
		s.wantValid(20 * time.Second)
		if err := <-found; err != nil {
			t.Error(err)
		}
	})
}

// What was asked for and seen, and does not end the hold, bounds it no longer.
func TestARequestThatEndsNothingBoundsNothingOnceItIsSeen(t *testing.T) {
	inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
		defer s.close()
		h := s.hold("orders")
		for range 3 {
			grace := time.Hour
			if asked, err := h.lock.Revoke(t.Context(), s.operator, "somebody", time.Now().String(), &grace); asked != 1 || err != nil {
				t.Fatalf("%d asked, %v", asked, err)
			}
			s.wantValid(20 * time.Second)
		}
	})
}

// Between a read and the end of the stream there is time, in which Check may be asked.
func TestWhatIsReadAndNotActedUponBoundsWhatIsTold(t *testing.T) {
	for _, c := range []struct {
		what string
		own  func(s *scene) (end func() error, look func() (over bool, err error))
	}{
		{"a hold", func(s *scene) (func() error, func() (bool, error)) {
			lock, granted := s.grant("orders")
			return func() error {
					_, err := lock.Break(s.over, s.operator, granted.Token, "operator", "", patience)
					return err
				}, func() (bool, error) {
					asked, _, err := granted.Look(s.over)
					return asked.Break, err
				}
		}},
		{"a member", func(s *scene) (func() error, func() (bool, error)) {
			member := s.enter()
			return func() error {
					_, err := shop.Evict(s.over, s.operator, "a", recipes.Eviction{Replace: true, ForceAfter: patience})
					return err
				}, func() (bool, error) {
					standing, _, err := member.Look(s.over)
					return standing.End != nil, err
				}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
				defer s.close()
				end, look := c.own(s)
				time.Sleep(5 * time.Second)
				s.lives.Go(func() { _ = end() })
				time.Sleep(time.Second)
				if over, err := look(); !over || err != nil {
					t.Fatalf("it is to end: %v, %v", over, err)
				}
				time.Sleep(lasting - time.Second)
				if valid := s.session.ValidFor(); valid > 0 {
					t.Errorf("%s is valid for %v", c.what, valid)
				}
			})
		})
	}
}

const (
	lasting = 15 * time.Second
	long    = 39 * time.Second // with static proof and a syncLimit of 3
	tick    = 2 * time.Second
)

// patience is what an operator has who says nothing of it.
var patience = recipes.ForceAfter{Timeout: lasting, Tick: tick}

var shop = recipes.Group{Path: "/locks/shop"}

// A scene has one sidecar with one lease, and another through which operators act.
type scene struct {
	*testing.T
	*simulation.Ensemble
	*witness
	refuser   refuser
	blindfold *blindfold
	sidecar   *zookeeper.Client
	operator  *zookeeper.Client
	session   *zookeeper.Session
	probers   []*zookeeper.Session // by which session is proved; none in a scene of one session
	lives     sync.WaitGroup
	over      context.Context
	end       context.CancelFunc
}

func newScene(t *testing.T, e *simulation.Ensemble, w *witness, proof zookeeper.Proof, timeout time.Duration) *scene {
	t.Helper()
	return newSceneBeside(t, e, w, proof, timeout, 0)
}

// newSceneBeside is a scene in which so many sessions stand before the one.
func newSceneBeside(t *testing.T, e *simulation.Ensemble, w *witness, proof zookeeper.Proof, timeout time.Duration, probers int) *scene {
	t.Helper()
	began := time.Now()
	s := &scene{T: t, Ensemble: e, witness: w, blindfold: &blindfold{on: long + time.Second}}
	s.over, s.end = context.WithCancel(context.Background())
	var err error
	s.sidecar, err = zookeeper.New(zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: s.blindfold.on, TickTime: tick, SyncLimit: 3, Proof: proof,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, FollowServers: true,
		Dial: s.blindfold.dialer(s.refuser.dialer(e.Dialer(0))), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range probers {
		s.probers = append(s.probers, s.open(timeout))
	}
	s.session = s.open(timeout)
	others := e.Addresses()
	server := e.ServerOf(s.session.ID())
	s.operator = newClient(t, e, 1, lasting, append(others[:server:server], others[server+1:]...)...)
	return s
}

func (s *scene) open(timeout time.Duration) *zookeeper.Session {
	s.Helper()
	opened, err := s.sidecar.Open(s.Context(), timeout)
	if err != nil {
		s.Fatal(err)
	}
	s.watch(opened)
	return opened
}

func (s *scene) close() {
	s.end()
	s.blindfold.take()
	s.lives.Wait()
	for _, each := range append(s.probers, s.session) {
		s.witness.close(each)
	}
	s.sidecar.Close()
	s.operator.Close()
}

// goBlind lets the reader see nothing any more, and lets the lease's answers be late for a while.
func (s *scene) goBlind(seed uint64) {
	time.Sleep(5*time.Second + time.Duration(seed)*137*time.Millisecond)
	s.blindfold.put()
	for server := range 3 {
		s.CutHost(0, server, false, true)
		time.AfterFunc(1900*time.Millisecond, func() { s.MendHost(0, server) })
	}
	time.Sleep(time.Duration(seed%10) * 150 * time.Millisecond)
}

// wantValid fails if the session is not valid for long at any time of the next while.
func (s *scene) wantValid(while time.Duration) {
	s.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if valid := s.session.ValidFor(); valid < s.session.Timeout()/10 || s.session.Err() != nil {
			s.Fatalf("valid for %v, %v", valid, s.session.Err())
		}
	}
}

// wantForced fails unless something was removed whose holder did not know, and who was told nothing that counts after that, or longer
// than a mark allows.
func (s *scene) wantForced(forced bool, err error, told *teller) {
	s.Helper()
	removed := time.Now()
	if !forced || err != nil {
		s.Errorf("forced: %v, %v", forced, err)
	}
	marked, until := told.words()
	if marked.IsZero() {
		s.Fatal("nothing was marked")
	}
	lifetime := s.session.Timeout()*98/100 - max(250*time.Millisecond, s.session.Timeout()/20)
	if late := until.Sub(marked.Add(lifetime)); late > 0 {
		s.Errorf("what was told counts for %v longer than a mark allows", late)
	}
	if until.After(removed) {
		s.Errorf("what was told counts for %v after the removal", until.Sub(removed))
	}
	if earliest := marked.Add(s.session.Timeout() + tick - glance); removed.Before(earliest) {
		s.Errorf("removed %v too soon after the mark", earliest.Sub(removed))
	}
}

// A holding is a lock that is held.
type holding struct {
	*teller
	lock  recipes.Lock
	token int64
}

func (s *scene) hold(name string) *holding {
	s.Helper()
	lock, granted := s.grant(name)
	told := s.tell(lock.Path+"/"+s.Names(lock.Path)[0], func(ctx context.Context) (over bool, changed <-chan struct{}, err error) {
		asked, again, err := granted.Look(ctx)
		return asked.Break, again.Done(), err
	})
	return &holding{told, lock, granted.Token}
}

func (s *scene) grant(name string) (recipes.Lock, *recipes.Hold) {
	s.Helper()
	lock := recipes.Lock{Path: "/locks/" + name}
	place, err := lock.Join(s.over, s.session, recipes.Exclusive, recipes.About{Timeout: s.session.Timeout()})
	if err != nil {
		s.Fatal(err)
	}
	turn, err := place.Look(s.over)
	if err != nil || !turn.First {
		s.Fatalf("%+v, %v", turn, err)
	}
	granted, err := place.Grant(s.over)
	if err != nil {
		s.Fatal(err)
	}
	return lock, granted
}

func (s *scene) enter() *recipes.Membership {
	s.Helper()
	member, err := shop.Join(s.over, s.session, "a", recipes.About{Timeout: s.session.Timeout()})
	if err != nil {
		s.Fatal(err)
	}
	return member
}

func (s *scene) join() *teller {
	s.Helper()
	return s.attend(s.enter())
}

func (s *scene) attend(member *recipes.Membership) *teller {
	return s.tell(shop.Path+"/a", func(ctx context.Context) (over bool, changed <-chan struct{}, err error) {
		standing, again, err := member.Look(ctx)
		return standing.End != nil, again.Done(), err
	})
}

const glance = 10 * time.Millisecond

// A teller tells a caller again and again for how long something is its own, until it knows that it is not.
type teller struct {
	mu     sync.Mutex
	marked time.Time // when somebody has written to the node
	until  time.Time // the latest that was told
}

func (t *teller) words() (marked, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marked, t.until
}

func (s *scene) tell(path string, look func(context.Context) (bool, <-chan struct{}, error)) *teller {
	t := &teller{}
	before, _ := s.Stat(path)
	alive, end := context.WithCancel(s.over)
	s.lives.Go(func() {
		defer end()
		for {
			over, changed, err := look(alive)
			if over || err != nil {
				return
			}
			select {
			case <-changed:
			case <-s.session.Done():
				return
			case <-alive.Done():
				return
			}
		}
	})
	s.lives.Go(func() {
		for alive.Err() == nil {
			now, there := s.Stat(path)
			t.mu.Lock()
			if there && now.Version > before.Version && t.marked.IsZero() {
				t.marked = time.Now()
			}
			if valid := s.session.ValidFor(); valid > 0 {
				t.until = time.Now().Add(valid)
			}
			t.mu.Unlock()
			select {
			case <-time.After(glance):
			case <-alive.Done():
			}
		}
	})
	return t
}

// A blindfold keeps what servers send from the sessions of one timeout: the reader's.
type blindfold struct {
	on time.Duration

	mu    sync.Mutex
	taken chan struct{} // closed when it is taken off; nil while it is not on
}

func (b *blindfold) put() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = make(chan struct{})
}

func (b *blindfold) take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken != nil {
		close(b.taken)
		b.taken = nil
	}
}

func (b *blindfold) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &blinded{Conn: conn, blindfold: b, closed: make(chan struct{})}, nil
	}
}

// A blinded connection may see nothing.
type blinded struct {
	net.Conn
	*blindfold
	greeted bool
	wears   bool
	closing sync.Once
	closed  chan struct{}
}

// Write finds out from the handshake whose connection it is: length, protocol, the newest transaction seen, timeout.
func (c *blinded) Write(frame []byte) (int, error) {
	if !c.greeted {
		c.mu.Lock()
		c.greeted, c.wears = true, time.Duration(binary.BigEndian.Uint32(frame[16:]))*time.Millisecond == c.on
		c.mu.Unlock()
	}
	return c.Conn.Write(frame)
}

func (c *blinded) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	c.mu.Lock()
	taken, wears := c.taken, c.wears
	c.mu.Unlock()
	if taken != nil && wears {
		select {
		case <-taken:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func (c *blinded) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
