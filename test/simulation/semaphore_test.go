package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

var semaphore = recipes.Semaphore{Path: "/locks/semaphore"}

type permitTally struct{ grants, crowded, losses, resized atomic.Int64 }

// Callers take one permit or several, with sessions that come and go, while an operator resizes the semaphore and everything else fails, too.
func TestNoMorePermitsAreGrantedThanThereAre(t *testing.T) {
	var total permitTally
	played := atMost(mostSemaphores)
	for seed := *firstSeed; seed < *firstSeed+played; seed++ {
		dice := rand.New(rand.NewPCG(seed, 9))
		timeout := []time.Duration{4 * time.Second, 6 * time.Second, 15 * time.Second}[dice.IntN(3)]
		for _, broken := range witnessed(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newStage(t, e, w, timeout)
			permits := &permitBoard{witness: w, limits: []limitTime{{limit: permitLimit}}, turn: make(chan struct{}, 1)}
			s.run(dice, 2, func(c *caller) { (&permitCaller{caller: c, permits: permits, total: &total}).live() })
		}) {
			t.Errorf("seed %d: %s", seed, broken)
		}
	}
	t.Logf("%d grants, %d of them with others, %d lost, %d times resized",
		total.grants.Load(), total.crowded.Load(), total.losses.Load(), total.resized.Load())
	if n := int64(played); n >= 25 && (total.crowded.Load() < 5*n || total.losses.Load() < n/2 || total.resized.Load() < 2*n) {
		t.Error("too little happens")
	}
}

// A permitBoard shows who takes permits for his own, and what the limit may be.
type permitBoard struct {
	*witness
	mu     sync.Mutex
	holds  []*permitHold
	limits []limitTime
	turn   chan struct{} // of who resizes
}

type permitHold struct {
	session believing
	permits int
	over    bool
}

// A limitTime is until when the limit was this one.
type limitTime struct {
	limit int
	to    int64 // the transaction that set a later one; 0 if none is known
}

// enter notes a grant. Its limit is one that there was since its nodes were made, which is when its reader may have stood still.
func (b *permitBoard) enter(session believing, permits int, token int64) (granted *permitHold, crowded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = slices.DeleteFunc(b.holds, func(h *permitHold) bool { return h.over })
	sum := permits
	for _, other := range b.holds {
		if other.session.ValidFor() > 0 {
			sum += other.permits
		}
	}
	most := 0
	for _, of := range b.limits {
		if of.to == 0 || of.to > token {
			most = max(most, of.limit)
		}
	}
	if sum > most {
		b.accusef("%d permits are granted, so that %d are held of %d", permits, sum, most)
	}
	granted = &permitHold{session: session, permits: permits}
	b.holds = append(b.holds, granted)
	return granted, sum > permits
}

func (b *permitBoard) exit(h *permitHold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.over = true
}

// resize notes that the limit is being set, and by which transaction it was.
func (b *permitBoard) resize(limit int) (done func(by int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.limits)
	b.limits = append(b.limits, limitTime{limit: limit})
	return func(by int64) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i := range before {
			if b.limits[i].to == 0 {
				b.limits[i].to = by
			}
		}
	}
}

// A permitCaller comes for permits again and again.
type permitCaller struct {
	*caller
	permits *permitBoard
	total   *permitTally
}

func (c *permitCaller) live() {
	c.create()
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
		if !late && c.dice.IntN(5) == 0 {
			c.resize()
		}
		time.Sleep(upTo(c.dice, 500*time.Millisecond))
	}
}

const permitLimit = 4

func (c *permitCaller) create() {
	for {
		err := semaphore.Create(c.over, c.client, permitLimit)
		if err == nil || errors.Is(err, recipes.ErrSemaphoreExists) || c.over.Err() != nil {
			return
		}
		time.Sleep(upTo(c.dice, time.Second))
	}
}

// resize sets the limit to what each caller can still be granted by.
func (c *permitCaller) resize() {
	select {
	case c.permits.turn <- struct{}{}:
		defer func() { <-c.permits.turn }()
	default:
		return
	}
	limit := 3 + c.dice.IntN(3)
	done := c.permits.resize(limit)
	for {
		_, err := semaphore.Resize(c.over, c.client, limit, "operator", "", nil)
		var node recipes.Node
		if err == nil {
			node, err = c.client.Get(c.over, semaphore.Path+recipes.LimitSuffix)
		}
		if err == nil {
			if stored := binary.BigEndian.Uint32(node.Data); stored != uint32(limit) {
				c.accusef("resized to %d by what is answered, and the limit is %d", limit, stored)
			}
			c.total.resized.Add(1)
			done(node.Mzxid)
			return
		}
		if c.over.Err() != nil || !errors.Is(err, recipes.ErrUnreachable) && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return // then any limit so far may be the one
		}
		time.Sleep(upTo(c.dice, time.Second))
	}
}

// visit waits for permits, holds them and leaves. A patient visitor does not go before they are granted.
func (c *permitCaller) visit(patient bool) (held bool, err error) {
	session, err := c.open()
	if err != nil {
		return false, err
	}
	defer c.close(session)
	count := 1 + c.dice.IntN(3)
	place, err := semaphore.Join(context.Background(), session, count, recipes.About{Owner: "caller", Timeout: c.timeout})
	if err != nil {
		return false, err
	}
	defer place.Leave(context.Background())
	ctx, cancel := context.WithCancel(c.over)
	defer cancel()
	if !patient && c.dice.IntN(3) == 0 {
		defer time.AfterFunc(upTo(c.dice, 6*time.Second), cancel).Stop()
	}
	if err := c.acquire(ctx, place); err != nil {
		return false, c.excuse(err)
	}
	c.hold(ctx, place, count, session)
	return true, nil
}

func (c *permitCaller) acquire(ctx context.Context, place *recipes.Permits) error {
	for {
		turn, err := place.Look(ctx)
		if err != nil || turn.Granted {
			return err
		}
		select {
		case <-turn.Changed.Done():
		case <-turn.Marked.Done():
		case <-turn.Resized.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hold holds until it has had enough, is asked for the permits and yields, is cancelled, or has lost them.
func (c *permitCaller) hold(ctx context.Context, place *recipes.Permits, count int, session leased) {
	c.total.grants.Add(1)
	held, crowded := c.permits.enter(session, count, place.Token)
	defer func() {
		if session.ValidFor() <= 0 {
			c.total.losses.Add(1)
		}
		c.permits.exit(held)
	}()
	if crowded {
		c.total.crowded.Add(1)
	}
	left := make(chan struct{}) // who leaves twice at a time would wait for a mutex, on which virtual time stands still
	go func() {
		defer close(left)
		place.LeaveQueue(context.Background())
	}()
	defer func() { <-left }()
	lasts, yields := upTo(c.dice, time.Second), true
	if c.dice.IntN(3) == 0 {
		lasts, yields = upTo(c.dice, 2*c.timeout), false
	}
	enough := time.After(lasts)
	changed := place.Changed()
	if changed == nil { // as service does
		changed = &recipes.Signal{}
		time.AfterFunc(25*time.Millisecond, changed.Give)
	}
	for {
		select {
		case <-enough:
			return
		case <-session.Done():
			return
		case <-place.Gone().Done():
			if session.ValidFor() > 0 {
				c.accusef("permits are gone that nobody has deleted")
			}
			return
		case <-ctx.Done():
			return
		case <-changed.Done():
			asked, again, err := place.LookAgain(ctx)
			if errors.Is(err, recipes.ErrGone) && session.ValidFor() > 0 {
				c.accusef("permits are gone that nobody has deleted")
			}
			if err != nil || asked.Asked && yields {
				return
			}
			changed = again
		}
	}
}
