package simulation_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

var breakSeeds = flag.Uint64("break-seeds", breaks, "how many random schedules with broken holds to run")

// Operators break holds and say nothing of for how long holders are left to their sidecars, whose readers are blind at times.
func TestNobodyHoldsBesideAnotherThoughHoldsAreBroken(t *testing.T) {
	var total breakTally
	for seed := *firstSeed; seed < *firstSeed+*breakSeeds; seed++ {
		for _, promise := range playBreaks(t, seed, &total) {
			t.Errorf("seed %d: %s", seed, promise)
		}
	}
	grants, seen, forced, played := total.grants.Load(), total.seen.Load(), total.forced.Load(), int64(*breakSeeds)
	t.Logf("%d grants, %d seen to be broken, %d removed by force", grants, seen, forced)
	if played >= 25 && (grants < played*5 || seen < played || forced < played/5) {
		t.Error("too little happens")
	}
}

type breakTally struct{ grants, seen, forced atomic.Int64 }

// playBreaks plays one schedule and returns the promises that were broken.
func playBreaks(t *testing.T, seed uint64, total *breakTally) []string {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 6))
	timeout := []time.Duration{4 * time.Second, 6 * time.Second, 15 * time.Second}[dice.IntN(3)]
	options := simulation.Options{Seed: seed, Hosts: 2}
	return witnessed(t, options, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		s := newStage(t, e, w, timeout)
		s.readers = lasting + time.Second
		s.dress = func(config *zookeeper.Config) {
			config.SessionTimeout = s.readers
			blinds := &blindfold{on: s.readers}
			config.Dial = blinds.dialer(config.Dial)
			go s.blind(blinds, rand.New(rand.NewPCG(dice.Uint64(), 7)))
		}
		go s.operate(newClient(t, e, 0, timeout), rand.New(rand.NewPCG(dice.Uint64(), 8)), total)
		s.run(dice, options.Hosts, func(c *caller) { (&breakable{c, total}).live() })
	})
}

// blind has a reader be blind now and then, until everything is healed.
func (s *stage) blind(blinds *blindfold, dice *rand.Rand) {
	for s.healed.Err() == nil {
		time.Sleep(upTo(dice, 15*time.Second))
		blinds.put()
		select {
		case <-time.After(upTo(dice, 30*time.Second)):
		case <-s.healed.Done():
		}
		blinds.take()
	}
}

// operate breaks one hold after the other until everything is healed, as an operator does who says nothing of its patience.
func (s *stage) operate(operator *zookeeper.Client, dice *rand.Rand, total *breakTally) {
	defer operator.Close()
	for s.healed.Err() == nil {
		time.Sleep(upTo(dice, 3*time.Second))
		lock := locks[dice.IntN(len(locks))]
		view, err := lock.View(s.healed, operator)
		if err != nil || len(view.Holders) == 0 {
			continue
		}
		forced, err := lock.Break(s.healed, operator, view.Holders[0].Token, "operator", "", recipes.ForceAfter{Timeout: s.timeout, Tick: tick})
		if forced && err == nil {
			total.forced.Add(1)
		}
	}
}

// A breakable caller looks at what is asked of it while it holds.
type breakable struct {
	*caller
	total *breakTally
}

func (b *breakable) live() {
	for {
		late := b.healed.Err() != nil
		held, err := b.visit()
		if late && held {
			return
		}
		if b.over.Err() != nil {
			b.accusef("%v: %v", errStuck, err)
			return
		}
		time.Sleep(upTo(b.dice, 500*time.Millisecond))
	}
}

func (b *breakable) visit() (held bool, err error) {
	session, err := b.client.Open(b.over, b.timeout)
	if err != nil {
		return false, err
	}
	b.watch(session)
	defer b.close(session)
	lock := locks[b.dice.IntN(len(locks))]
	place, err := lock.Join(context.Background(), session, recipes.Exclusive, recipes.About{Timeout: b.timeout})
	if err != nil {
		return false, err
	}
	defer place.Leave(context.Background())
	granted, err := b.await(place)
	if err != nil || granted == nil {
		return false, err
	}
	b.total.grants.Add(1)
	hold := b.board.enter(b.stage, lock, recipes.Exclusive, granted.Token, session)
	defer b.board.exit(hold)
	b.hold(granted, session)
	return true, nil
}

// await waits for the place's turn. It returns nil if the place is broken, or never will be granted.
func (b *breakable) await(place *recipes.Place) (*recipes.Hold, error) {
	for {
		turn, err := place.Look(b.over)
		switch {
		case err != nil, turn.Revocation.Break:
			return nil, err
		case turn.First:
			return place.Grant(b.over)
		}
		if err := wait(b.over, turn); err != nil {
			return nil, err
		}
	}
}

// hold holds until it is known to be broken or lost, or long enough, or until everything is healed.
func (b *breakable) hold(granted *recipes.Hold, session *zookeeper.Session) {
	ctx, cancel := context.WithTimeout(b.healed, upTo(b.dice, 3*b.timeout))
	defer cancel()
	asked, changed := granted.Revocation, granted.Changed
	for !asked.Break {
		select {
		case <-changed.Done():
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		}
		var err error
		if asked, changed, err = granted.Look(ctx); err != nil {
			return
		}
	}
	b.total.seen.Add(1)
}
