package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A mortal is a process that can die: its connections are closed by its kernel, and it makes no more.
type mortal struct {
	*zookeeper.Client

	mu          sync.Mutex
	dead        bool
	connections []net.Conn
}

var errDead = errors.New("the process is dead")

func (s *stage) mortal(host int, dice *rand.Rand) *mortal {
	m := &mortal{}
	m.Client = s.sidecar(host, dice, func(config *zookeeper.Config) {
		dial := config.Dial
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.dead {
				return nil, errors.Join(errDead, connection.Close())
			}
			m.connections = append(m.connections, connection)
			return connection, nil
		}
	})
	return m
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, connection := range m.connections {
		_ = connection.Close()
	}
}

// returns counts what became of those who came back.
type returns struct{ deaths, held, waiting, late, gone atomic.Int64 }

// Processes die and others come back to their sessions, while everything else fails, too. Whatever the dead one had told is believed on.
func TestNobodyHoldsBesideWhoComesBack(t *testing.T) {
	var total returns
	played := atMost(mostReturns)
	for seed := *firstSeed; seed < *firstSeed+played; seed++ {
		dice := rand.New(rand.NewPCG(seed, 7))
		timeout := []time.Duration{4 * time.Second, 6 * time.Second, 15 * time.Second}[dice.IntN(3)]
		for _, broken := range witnessed(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newStage(t, e, w, timeout)
			s.acquire = acquire
			s.run(dice, 2, func(c *caller) { (&returner{c, &total}).live() })
		}) {
			t.Errorf("seed %d: %s", seed, broken)
		}
	}
	t.Logf("%d deaths: %d came back to what they held, %d to where they waited, %d too late; %d found nothing",
		total.deaths.Load(), total.held.Load(), total.waiting.Load(), total.late.Load(), total.gone.Load())
	if n := int64(played); n >= 25 && (total.held.Load() < n || total.waiting.Load() < n/2 || total.late.Load() < n/10) {
		t.Error("too little happens")
	}
}

// A returner is a caller whose processes die now and then.
type returner struct {
	*caller
	total *returns
}

func (r *returner) live() {
	for {
		late := r.healed.Err() != nil
		held, err := r.visit(late)
		if late && held {
			return
		}
		if r.over.Err() != nil {
			r.accusef("%v: %v", errStuck, err)
			return
		}
		time.Sleep(upTo(r.dice, 500*time.Millisecond))
	}
}

// visit waits for a lock and holds it, through as many processes as it takes.
func (r *returner) visit(patient bool) (had bool, err error) {
	process := r.mortal(r.host, r.dice)
	defer func() { process.Close() }()
	session, err := process.Open(r.over, 0)
	if err != nil {
		return false, err
	}
	r.watch(session)
	lock, about := locks[r.dice.IntN(len(locks))], recipes.About{Owner: "returner", Request: 1}
	var place *recipes.Place
	if hasty := !patient && r.dice.IntN(4) == 0; hasty { // it dies when it has asked for a place, or is about to
		go func() { _, _ = lock.Join(context.Background(), session, recipes.Exclusive, about) }()
		time.Sleep(upTo(r.dice, 3*time.Millisecond))
		var back bool
		if process, session, place, back = r.dieAndReturn(process, session, lock, about, 0); !back {
			return false, nil
		}
	} else if place, err = lock.Join(context.Background(), session, recipes.Exclusive, about); err != nil {
		r.close(session)
		return false, err
	}
	var believed []*held
	token, known := int64(0), false
	for lives := r.dice.IntN(4); ; lives-- {
		mortal := lives > 0 && !patient
		ctx, cancel := context.WithCancel(r.over)
		if mortal {
			time.AfterFunc(upTo(r.dice, 8*time.Second), cancel)
		}
		now, err := r.acquire(ctx, place)
		switch {
		case err == nil && known && now != token:
			r.accusef("came back to %x and was granted %x", token, now)
		case err == nil && known:
			believed = append(believed, r.board.goOn(r.stage, lock, token, session))
			r.total.held.Add(1)
		case err == nil:
			token, known = now, true
			believed = append(believed, r.board.enter(r.stage, lock, recipes.Exclusive, token, session))
		}
		if err == nil {
			select {
			case <-time.After(upTo(r.dice, 2*time.Second)):
			case <-session.Done():
				err = session.Err()
			case <-ctx.Done():
			}
		}
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) || !mortal {
			had = err == nil
			for _, each := range believed {
				r.board.exit(each) // its caller knows before anybody else does
			}
			place.Leave(context.Background())
			r.close(session)
			return had, r.excuse(err)
		}
		if r.dice.IntN(3) == 0 { // it dies when it has given the place up, or is about to
			for _, each := range believed {
				r.board.exit(each)
			}
			go place.Leave(context.Background())
			time.Sleep(upTo(r.dice, 3*time.Millisecond))
		}
		var back bool
		if process, session, place, back = r.dieAndReturn(process, session, lock, about, token); !back {
			return false, nil
		}
	}
}

// dieAndReturn has a process die and another come back to its session and its place, unless they are gone. token is that of the hold, 0 if
// it waits.
func (r *returner) dieAndReturn(
	dead *mortal, left *zookeeper.Session, lock recipes.Lock, about recipes.About, token int64,
) (*mortal, *zookeeper.Session, *recipes.Place, bool) {
	dead.kill()
	r.total.deaths.Add(1)
	r.comeBack(left)
	go func() {
		<-left.Done()
		dead.Close()
	}()
	gap := r.timeout
	if r.dice.IntN(2) == 0 {
		gap = 20 * time.Millisecond
	}
	time.Sleep(upTo(r.dice, gap))
	process := r.mortal(r.host, r.dice)
	session, standing, err := process.Reattach(r.over, left.Key())
	for err != nil && !errors.Is(err, recipes.ErrSessionEnded) && r.over.Err() == nil {
		session, standing, err = process.Reattach(r.over, left.Key())
	}
	if err != nil {
		r.total.late.Add(1)
		return process, nil, nil, false
	}
	r.watch(session)
	if owned := r.Owned(session.ID()); len(owned) != len(standing) && session.ValidFor() > 0 {
		r.accusef("session %x is shown %v and owns %q", session.ID(), standing, owned)
	}
	if len(standing) == 0 {
		r.total.gone.Add(1)
		r.close(session)
		return process, nil, nil, false
	}
	if recipes.RequestIn(standing[0].Node) != 1 || token != 0 && standing[0].Node.Czxid != token {
		r.accusef("session %x has %v, not %x", session.ID(), standing, token)
	}
	place, err := lock.Rejoin(session, standing[0], about)
	if err != nil {
		r.accusef("cannot rejoin: %v", err)
		r.close(session)
		return process, nil, nil, false
	}
	if token == 0 {
		r.total.waiting.Add(1)
	}
	return process, session, place, true
}

// goOn notes that what was granted before is held still, as another session object believes it.
func (b *board) goOn(s *stage, lock recipes.Lock, token int64, session believing) *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.locks[lock.Path]
	for _, other := range q.holds {
		if valid := other.session.ValidFor(); valid > 0 && other.token != token && !other.over {
			b.accusef("%s: %x is held on while %x is valid for %v", lock.Path, token, other.token, valid)
		}
	}
	if session.ValidFor() > 0 && !s.owns(lock, recipes.Exclusive, token, session) {
		b.accusef("%s: %x is held on and does not own the lock", lock.Path, token)
	}
	held := &held{session: session, token: token}
	q.holds = append(q.holds, held)
	return held
}

// The server over which a process comes back to a session may not have heard yet of what the earlier one has made on it.
func TestWhoComesBackIsShownWhatALateServerHasYetToHearOf(t *testing.T) {
	inBubble(t, simulation.Options{Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		leader, late := e.Leader(), follower(e)
		earlier := newClient(t, e, 0, 15*time.Second, e.Addresses()[leader])
		defer earlier.Close()
		later := newClient(t, e, 1, 15*time.Second, e.Addresses()[late])
		defer later.Close()
		w.close(w.open(t, later))                 // it is there
		left, err := earlier.Open(t.Context(), 0) // by a process that is dead soon, so that nobody looks what it believes
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		e.Lag(late, time.Second)
		if _, err := bed.Join(t.Context(), left, recipes.Exclusive, recipes.About{}); err != nil {
			t.Fatal(err)
		}
		e.CutHost(0, leader, true, true)
		session, standing, err := later.Reattach(t.Context(), left.Key())
		if err != nil {
			t.Fatal(err)
		}
		if owned := e.Owned(session.ID()); len(owned) != 1 || len(standing) != 1 {
			t.Errorf("session %x is shown %v and owns %q", session.ID(), standing, owned)
		}
		w.close(session)
		<-left.Done()
	})
}
