package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A pool is a random schedule of callers that want numbers of a semaphore, with sessions that end. Their readers lag, lose replies and send
// late.
// Places in the queue are removed by hand.
type pool struct {
	world
	readers []*standin.Reader

	mu    sync.Mutex
	bears map[int]*standin.Session // that have a number, and have not given it up
	rests map[int]time.Time        // until when at least a number rests that was lost
	tally map[string]int
}

func TestNoNumberIsValidForTwoNorWithinItsQuarantine(t *testing.T) {
	all := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				p := &pool{world: w, bears: map[int]*standin.Session{}, rests: map[int]time.Time{}, tally: all}
				p.run(rand.New(rand.NewPCG(seed, 11)))
			})
		})
	}
	t.Log(all)
	for _, what := range []string{"granted", "released", "lost", "after a quarantine", "gave up", "late write"} {
		if all[what] < int(*seeds)/2 {
			t.Errorf("%s %d times in %d schedules", what, all[what], *seeds)
		}
	}
}

func (p *pool) run(dice *rand.Rand) {
	for range 3 {
		p.readers = append(p.readers, p.NewReader())
	}
	p.semaphoreOf(2 + dice.IntN(3))
	var callers sync.WaitGroup
	for range 6 {
		reader, seed := p.readers[dice.IntN(len(p.readers))], dice.Uint64()
		callers.Go(func() { p.call(reader, rand.New(rand.NewPCG(seed, 1))) })
	}
	over := make(chan struct{})
	disturb(rand.New(rand.NewPCG(dice.Uint64(), 2)), 3*time.Second, p.readers...)
	go p.removePlaces(rand.New(rand.NewPCG(dice.Uint64(), 3)), over)
	callers.Wait()
	close(over)
}

// call has a caller come for a number a few times.
func (p *pool) call(reader *standin.Reader, dice *rand.Rand) {
	for range 4 {
		time.Sleep(upTo(dice, time.Second))
		session := reader.OpenSession(10 * time.Second)
		store := &lateStore{Store: reader, pool: p, dice: dice}
		rest := []time.Duration{0, 5 * time.Second, 20 * time.Second}[dice.IntN(3)]
		of := calls
		if of.Numbers = (&recipes.Numbering{Store: store, Quarantine: rest}); dice.IntN(6) == 0 {
			of.Numbers = nil
		}
		permits, err := of.Join(p.living, session, 1, recipes.About{})
		if err != nil {
			p.Error(err)
			return
		}
		p.visit(session, permits, rest, dice)
		permits.Leave(p.living)
		session.Close(p.living)
		store.sent.Wait()
	}
}

func (p *pool) visit(session *standin.Session, permits *recipes.Permits, rest time.Duration, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.living, time.Minute)
	defer cancel()
	if err := p.await(ctx, permits); err != nil {
		p.count("gave up")
		return
	}
	number, bears := permits.Number()
	if bears {
		p.granted(number, session)
	}
	permits.LeaveQueue(p.living)
	time.Sleep(upTo(dice, 3*time.Second))
	switch dice.IntN(4) {
	case 0:
		session.Expire()
	case 1: // its sidecar stops
	case 2:
		session.Suspend()
		<-session.Done()
	default:
		p.ended(number, session, bears, 0)
		p.count("released")
		permits.LetGo(p.living)
		return
	}
	p.ended(number, session, bears, rest)
}

// await returns when the permit is granted.
func (p *pool) await(ctx context.Context, permits *recipes.Permits) error {
	for {
		turn, err := permits.Look(ctx)
		switch {
		case errors.Is(err, recipes.ErrUnreachable):
			turn.Due = time.Now().Add(100 * time.Millisecond)
		case err != nil:
			return err
		case turn.Granted:
			return nil
		case turn.Changed.IsGiven():
			continue
		}
		var due <-chan time.Time
		if !turn.Due.IsZero() {
			due = time.After(max(0, time.Until(turn.Due)) + time.Millisecond)
		}
		select {
		case <-turn.Changed.Done():
		case <-turn.Marked.Done():
		case <-turn.Resized.Done():
		case <-due:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *pool) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally[what]++
}

// granted notes that a caller has a number, and that no other has, nor has lost it within its quarantine.
func (p *pool) granted(number int, session *standin.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session.ValidFor() == 0 {
		return
	}
	p.tally["granted"]++
	if other := p.bears[number]; other != nil && other.ValidFor() > 0 {
		p.Errorf("number %d is granted while another caller has it", number)
	}
	if until, lost := p.rests[number]; lost && time.Now().Before(until) {
		p.Errorf("number %d is granted, and rests for %v", number, time.Until(until))
	} else if lost {
		p.tally["after a quarantine"]++
	}
	delete(p.rests, number)
	p.bears[number] = session
}

// ended notes that a caller has given its number up, or lost it, and for how long it rests.
func (p *pool) ended(number int, session *standin.Session, bears bool, rest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !bears || p.bears[number] != session {
		return
	}
	delete(p.bears, number)
	if rest > 0 {
		p.tally["lost"]++
		p.rests[number] = time.Now().Add(rest)
	}
}

// removePlaces removes places in the queue by hand.
func (p *pool) removePlaces(dice *rand.Rand, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(upTo(dice, 3*time.Second)):
		}
		if names := p.Names(calls.Path + "/locks"); len(names) > 0 {
			_ = p.Delete(calls.Path + "/locks/" + names[dice.IntN(len(names))])
		}
	}
}

// A lateStore is a store some of whose writes come after their caller has given them up, unless it catches up.
type lateStore struct {
	recipes.Store

	pool *pool
	dice *rand.Rand
	sent sync.WaitGroup
}

func (s *lateStore) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	if s.dice.IntN(4) > 0 {
		return s.Store.Commit(ctx, changes...)
	}
	late := time.Duration(s.dice.IntN(4000)) * time.Millisecond
	s.pool.count("late write")
	s.sent.Go(func() {
		time.Sleep(late)
		_, _ = s.Store.Commit(s.pool.living, changes...)
	})
	return nil, recipes.ErrOutcomeUnknown
}

func (s *lateStore) CatchUp(ctx context.Context) error {
	s.sent.Wait()
	return s.Store.CatchUp(ctx)
}
