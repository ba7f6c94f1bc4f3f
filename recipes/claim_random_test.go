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

// brief are claims of a few seconds.
var brief = recipes.Claims{Path: "/claims", Clock: "/claims/=clock", Tolerance: 100 * time.Millisecond}

// A gallery is a random schedule of callers that claim a lock, of others that acquire it, and of machines that end claims whose time is over.
// Their readers lag, lose replies and send late.
type gallery struct {
	world
	readers []*standin.Reader

	mu      sync.Mutex
	counts  map[string]time.Time // until when each counts on the lock
	granted map[string]int
}

func TestNoCallerIsGrantedALockBesideAClaimThatCounts(t *testing.T) {
	all := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				g := &gallery{world: w, counts: map[string]time.Time{}, granted: all}
				g.run(rand.New(rand.NewPCG(seed, 9)))
			})
		})
	}
	t.Log(all)
	for _, what := range []string{"claim", "lock", "extended", "released", "ran out", "withdrawn"} {
		if all[what] < int(*seeds)/4 {
			t.Errorf("%s %d times in %d schedules", what, all[what], *seeds)
		}
	}
}

func (g *gallery) run(dice *rand.Rand) {
	for range 3 {
		g.readers = append(g.readers, g.NewReader())
	}
	sweeping, stop := context.WithCancel(g.living)
	var callers, sweepers sync.WaitGroup
	for i := range 2 {
		sweepers.Go(func() { g.sweep(sweeping, g.readers[i]) })
	}
	for i := range 4 {
		reader, seed := g.readers[dice.IntN(len(g.readers))], dice.Uint64()
		callers.Go(func() { g.claim(fmt.Sprint("claim-", i), reader, rand.New(rand.NewPCG(seed, 1))) })
		callers.Go(func() { g.acquire(fmt.Sprint("lock-", i), rand.New(rand.NewPCG(seed, 2))) })
	}
	disturb(rand.New(rand.NewPCG(dice.Uint64(), 3)), 300*time.Millisecond, g.readers...)
	callers.Wait()
	for _, reader := range g.readers {
		reader.Before(nil)
		reader.After(nil)
	}
	time.Sleep(time.Minute)
	stop()
	sweepers.Wait()
	if names, err := g.NewReader().Children(g.living, orders.Path); err == nil && len(names) > 0 {
		g.Errorf("%d places are left", len(names))
	}
}

// counted notes that one counts on the lock, and that no other does.
func (g *gallery) counted(who, what string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, end := range g.counts {
		if time.Now().Before(until) && other != who && time.Now().Before(end) {
			g.Errorf("%s is granted the lock while %s counts on it for %v", who, other, time.Until(end))
		}
	}
	g.counts[who] = until
	g.granted[what]++
}

func (g *gallery) tally(who, what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if who != "" {
		delete(g.counts, who)
	}
	g.granted[what]++
}

// claim claims the lock a few times, until that is known to be so or not.
func (g *gallery) claim(who string, reader *standin.Reader, dice *rand.Rand) {
	for i := range 3 {
		wanted := recipes.ClaimRequest{ID: fmt.Sprint(who, "/", i), For: upTo(dice, 3*time.Second)}
		beside := make(chan error, 1)
		if dice.IntN(3) > 0 {
			beside <- recipes.ErrClaimWaits
		} else { // a second call with the same id
			other, patience, pause := g.readers[dice.IntN(len(g.readers))], upTo(dice, 12*time.Second), upTo(dice, time.Second)
			go func() {
				_, err := g.asks(other, wanted, patience, pause)
				beside <- err
			}()
		}
		until, err := g.asks(reader, wanted, upTo(dice, 12*time.Second), upTo(dice, time.Second))
		if other := <-beside; err != nil && other == nil {
			until, err = g.asks(reader, wanted, time.Second, time.Second)
		}
		if err != nil {
			g.tally("", "withdrawn")
			continue
		}
		g.counted(who, "claim", until)
		g.goesOn(who, wanted.ID, reader, dice)
	}
}

// asks calls Claim until there is an answer, and says until when the claim counts.
func (g *gallery) asks(reader *standin.Reader, wanted recipes.ClaimRequest, patience, pause time.Duration) (until time.Time, _ error) {
	late := make(chan struct{})
	defer time.AfterFunc(patience, func() { close(late) }).Stop()
	for {
		got, err := brief.Claim(g.living, reader, orders, wanted, late)
		switch word := claimWord(err); word {
		case "ok", "late", "over":
			return time.Now().Add(got.Reserved), err
		case "gone":
			g.Error("told that an operator has ended the claim, and there is none")
			return until, err
		}
		time.Sleep(pause)
	}
}

// goesOn has a claim be extended, released, or run out.
func (g *gallery) goesOn(who, id string, reader *standin.Reader, dice *rand.Rand) {
	time.Sleep(upTo(dice, time.Second))
	if dice.IntN(2) == 0 {
		if got, err := brief.Extend(g.living, reader, id, upTo(dice, 4*time.Second)); err == nil {
			g.counted(who, "extended", time.Now().Add(got.Reserved))
		}
	}
	if dice.IntN(2) == 0 {
		time.Sleep(upTo(dice, 8*time.Second))
		g.tally(who, "ran out")
		return
	}
	g.tally(who, "released")
	for range 5 {
		if _, err := brief.Release(g.living, reader, id); err == nil || claimWord(err) == "over" || claimWord(err) == "none" {
			return
		}
		time.Sleep(upTo(dice, time.Second))
	}
}

// acquire holds the lock a few times, with sessions that do not end.
func (g *gallery) acquire(who string, dice *rand.Rand) {
	for range 3 {
		time.Sleep(upTo(dice, 2*time.Second))
		session := g.OpenSession(time.Hour)
		err := orders.Do(g.living, session, session, recipes.About{}, passed(time.Hour), func(*recipes.Hold) error {
			g.counted(who, "lock", time.Now().Add(time.Hour))
			time.Sleep(upTo(dice, time.Second))
			g.tally(who, "left")
			return nil
		})
		if err != nil {
			g.Error(err)
		}
		session.Close(g.living)
	}
}

func (g *gallery) sweep(ctx context.Context, reader *standin.Reader) {
	var book recipes.ClaimBook
	for ctx.Err() == nil {
		if _, err := brief.Sweep(g.living, reader, &book); err != nil && !errors.Is(err, recipes.ErrUnreachable) {
			g.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
