package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A caller comes for locks again and again, each time with a session of its own.
type caller struct {
	*stage
	client *zookeeper.Client
	dice   *rand.Rand
}

// upTo is a random duration below limit.
func upTo(dice *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(limit)))
}

// live lives until it has held a lock after everything was healed.
func (c *caller) live() {
	for {
		late := c.healed.Err() != nil
		held, err := c.visit(late)
		if late && held {
			return
		}
		if c.over.Err() != nil {
			c.Errorf("%v: %v", errStuck, err)
			return
		}
		time.Sleep(upTo(c.dice, 500*time.Millisecond))
	}
}

// visit opens a session, waits for a lock, holds it and leaves. A patient visitor does not go before it is granted.
func (c *caller) visit(patient bool) (held bool, err error) {
	session, err := c.client.Open(c.over, 0)
	if err != nil {
		return false, err
	}
	c.watch(session)
	defer c.close(session)
	lock := locks[c.dice.IntN(len(locks))]
	place, err := lock.Join(session, recipes.Exclusive, recipes.About{Owner: "caller"})
	if err != nil {
		return false, err
	}
	defer place.Leave()
	ctx, cancel := context.WithCancel(c.over)
	defer cancel()
	if !patient && c.dice.IntN(3) == 0 {
		defer time.AfterFunc(upTo(c.dice, 6*time.Second), cancel).Stop()
	}
	hold, err := acquire(ctx, place)
	if err != nil {
		return false, c.excuse(err)
	}
	c.hold(ctx, lock, hold, session)
	return true, nil
}

// excuse fails unless the error is one that a schedule brings about. ErrGone is none: nobody deletes another's node.
func (c *caller) excuse(err error) error {
	if !errors.Is(err, recipes.ErrSessionEnded) && !errors.Is(err, context.Canceled) && !errors.Is(err, errStuck) {
		c.Errorf("acquire: %v", err)
	}
	return err
}

func acquire(ctx context.Context, place *recipes.Place) (*recipes.Hold, error) {
	for {
		turn, err := place.Look(ctx)
		if err != nil {
			return nil, err
		}
		if turn.First {
			return place.Grant(ctx)
		}
		select {
		case <-turn.Changed:
		case <-turn.Marked:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// hold holds until it has had enough, is cancelled, or has lost the lock, and says so before it leaves.
func (c *caller) hold(ctx context.Context, lock recipes.Lock, hold *recipes.Hold, session *zookeeper.Session) {
	c.total.grants.Add(1)
	held := c.board.enter(c.stage, lock, hold.Token, session)
	defer c.board.exit(held)
	enough := upTo(c.dice, time.Second)
	if c.dice.IntN(3) == 0 {
		enough = upTo(c.dice, 2*c.timeout)
	}
	select {
	case <-time.After(enough):
	case <-session.Done():
		c.total.losses.Add(1)
	case <-ctx.Done():
	}
}

// A board shows who takes himself for the holder of what.
type board struct {
	mu     sync.Mutex
	locks  map[string]*queue
	broken []string // promises
}

type queue struct {
	holds []*held
	token int64 // the largest so far
}

type held struct {
	session *zookeeper.Session
	token   int64
	over    bool
}

// enter notes a grant: in this instant nobody else may be valid, the token must be new, and the node must be first in what
// is committed, and this session's.
func (b *board) enter(s *stage, lock recipes.Lock, token int64, session *zookeeper.Session) *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.locks[lock.Path]
	if q == nil {
		q = &queue{}
		b.locks[lock.Path] = q
	}
	q.holds = slices.DeleteFunc(q.holds, func(h *held) bool { return h.over })
	for _, other := range q.holds {
		if valid := other.session.ValidFor(); valid > 0 {
			b.broken = append(b.broken, fmt.Sprintf("%s: %x is granted while %x is valid for %v", lock.Path, token, other.token, valid))
		}
	}
	if token <= q.token {
		b.broken = append(b.broken, fmt.Sprintf("%s: %x is granted after %x", lock.Path, token, q.token))
	}
	if session.ValidFor() > 0 && !s.owns(lock, token, session) {
		b.broken = append(b.broken, fmt.Sprintf("%s: %x is granted and does not own the lock", lock.Path, token))
	}
	q.token = max(q.token, token)
	granted := &held{session: session, token: token}
	q.holds = append(q.holds, granted)
	return granted
}

func (b *board) exit(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.over = true
}

// owns says whether the oldest committed node of the lock has this token and is the session's.
func (s *stage) owns(lock recipes.Lock, token int64, session *zookeeper.Session) bool {
	oldest, owner := int64(0), int64(0)
	for _, name := range s.Names(lock.Path) {
		if stat, there := s.Stat(lock.Path + "/" + name); there && (oldest == 0 || stat.Czxid < oldest) {
			oldest, owner = stat.Czxid, stat.Owner
		}
	}
	return oldest == token && owner == session.ID()
}
