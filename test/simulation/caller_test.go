package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A caller comes for locks again and again, each time with a session of its own, which may have been another's before.
type caller struct {
	*stage
	client *zookeeper.Client
	host   int
	pooled bool
	dice   *rand.Rand
}

// A leased session is a caller's until it is closed.
type leased interface {
	recipes.MemberSession
	believing
	Close(ctx context.Context)
}

// open opens a session, or takes one that is idle. Nobody can tell the one from the other by what it owns.
func (c *caller) open() (leased, error) {
	if !c.pooled {
		session, err := c.client.Open(c.over, 0)
		if err == nil {
			c.watch(session)
		}
		return session, err
	}
	session, err := c.client.OpenPooled(c.over, 0)
	if err != nil {
		return nil, err
	}
	if c.watch(session.Session) {
		c.total.reused.Add(1)
	}
	if owned := c.Owned(session.ID()); len(owned) > 0 {
		c.accusef("session %x is handed out and owns %q", session.ID(), owned)
	}
	return session, nil
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
			c.accusef("%v: %v", errStuck, err)
			return
		}
		time.Sleep(upTo(c.dice, 500*time.Millisecond))
	}
}

// visit opens a session, waits for a lock, holds it and leaves. A patient visitor does not go before it is granted.
func (c *caller) visit(patient bool) (held bool, err error) {
	session, err := c.open()
	if err != nil {
		return false, err
	}
	defer c.close(session)
	if c.dice.IntN(8) == 0 {
		c.doze(session)
	}
	which := c.dice.IntN(len(locks))
	lock, mode := locks[which], modes[which][c.dice.IntN(len(modes[which]))]
	place, err := lock.Join(context.Background(), session, mode, recipes.About{Owner: "caller"})
	if err != nil {
		return false, err
	}
	defer place.Leave(context.Background())
	ctx, cancel := context.WithCancel(c.over)
	defer cancel()
	if !patient && c.dice.IntN(3) == 0 {
		defer time.AfterFunc(upTo(c.dice, 6*time.Second), cancel).Stop()
	}
	token, err := c.acquire(ctx, place)
	if err != nil {
		return false, c.excuse(err)
	}
	c.hold(ctx, lock, mode, token, session)
	return true, nil
}

// doze leaves the session without anything on it, for so long that it may sleep.
func (c *caller) doze(session leased) {
	select {
	case <-time.After(c.timeout + upTo(c.dice, 2*c.timeout)):
	case <-session.Done():
	case <-c.healed.Done():
	}
}

// excuse fails unless the error is one that a schedule brings about. ErrGone is none: nobody deletes another's node.
func (c *caller) excuse(err error) error {
	if err != nil && !errors.Is(err, recipes.ErrSessionEnded) && !errors.Is(err, context.Canceled) && !errors.Is(err, errStuck) {
		c.accusef("acquire: %v", err)
	}
	return err
}

// An acquirer waits for a place's turn and returns the fencing token of the hold.
type acquirer func(context.Context, *recipes.Place) (int64, error)

func acquire(ctx context.Context, place *recipes.Place) (int64, error) {
	if hold := place.GrantAtOnce(); hold != nil {
		return hold.Token, nil
	}
	for {
		turn, err := place.Look(ctx)
		if err != nil {
			return 0, err
		}
		if turn.First {
			return granted(place.Grant(ctx))
		}
		if err := wait(ctx, turn); err != nil {
			return 0, err
		}
	}
}

func wait(ctx context.Context, turn recipes.Turn) error {
	select {
	case <-turn.Changed.Done():
	case <-turn.Marked.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func granted(hold *recipes.Hold, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return hold.Token, nil
}

// hold holds until it has had enough, is cancelled, or has lost the lock, and says so before it leaves.
func (c *caller) hold(ctx context.Context, lock recipes.Lock, mode recipes.Mode, token int64, session leased) {
	c.total.grants.Add(1)
	held := c.board.enter(c.stage, lock, mode, token, session)
	defer c.board.exit(held)
	enough := upTo(c.dice, time.Second)
	switch {
	case c.healed.Err() != nil && c.awaitAnother(lock):
		enough = upTo(c.dice, 10*time.Millisecond) // while that one looks
	case c.dice.IntN(3) == 0:
		enough = upTo(c.dice, 2*c.timeout)
	}
	select {
	case <-time.After(enough):
	case <-session.Done():
		c.total.losses.Add(1)
	case <-ctx.Done():
	}
}

// awaitAnother says whether somebody else comes for a lock that nobody else wants yet. It does not wait for that for long.
func (c *caller) awaitAnother(lock recipes.Lock) (came bool) {
	alone := func() bool { return len(c.Names(lock.Path)) == 1 }
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && alone(); came = !alone() {
		time.Sleep(upTo(c.dice, 2*time.Millisecond))
	}
	return came
}
