package recipes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// circles are how many seeds are played, each of which draws 80 sets of locks.
var circles = flag.Uint64("circles", 100, "how many seeds draw sets of locks, 80 each, that are taken at once")

// severalLocks are those that callers take several of at once: mutexes and read/write locks.
var severalLocks = []recipes.Lock{
	{Path: "/locks/a"}, {Path: "/locks/b"}, {Path: "/locks/c"}, {Path: "/locks/d"}, {Path: "/locks/e"},
}

// A circle is callers that take random sets of locks at once, of which none may wait for another in a circle.
type circle struct {
	world

	mu      sync.Mutex
	holding map[string][]recipes.Mode // by path
	grants  int
}

func TestWhoeverTakesSeveralLocksAtOnceNeverWaitsInACircle(t *testing.T) {
	grants := uint64(0)
	for seed := range *circles {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				c := &circle{world: w, holding: map[string][]recipes.Mode{}}
				c.run(rand.New(rand.NewPCG(seed, 0)))
				grants += uint64(c.grants)
			})
		})
	}
	t.Logf("%d grants", grants)
	if grants != *circles*8*10 {
		t.Errorf("%d grants", grants)
	}
}

func (c *circle) run(dice *rand.Rand) {
	reader := c.NewReader()
	var done sync.WaitGroup
	for range 8 {
		dice := rand.New(rand.NewPCG(dice.Uint64(), 1))
		session := reader.OpenSession(10 * time.Second)
		session.Delay(upTo(dice, 20*time.Millisecond))
		done.Go(func() {
			for range 10 {
				c.visit(session, dice)
				time.Sleep(upTo(dice, 30*time.Millisecond))
			}
			session.Close(c.living)
		})
	}
	done.Wait()
	for _, lock := range severalLocks {
		if names := c.Names(lock.Path); len(names) > 0 {
			c.Errorf("left behind in %s: %q", lock.Path, names)
		}
	}
}

// visit takes a random set in random order, holds it for a while and leaves.
func (c *circle) visit(session *standin.Session, dice *rand.Rand) {
	var wanted []recipes.Wanted
	for _, i := range dice.Perm(len(severalLocks))[:2+dice.IntN(3)] {
		mode := recipes.Exclusive
		if i%2 == 1 {
			mode = []recipes.Mode{recipes.Read, recipes.Write}[dice.IntN(2)]
		}
		wanted = append(wanted, recipes.Wanted{Lock: severalLocks[i], Mode: mode})
	}
	places, err := recipes.JoinAll(c.living, session, wanted, recipes.About{})
	if err != nil {
		c.Error(err)
		return
	}
	defer places.Leave(c.living)
	ctx, cancel := context.WithTimeout(c.living, time.Hour)
	defer cancel()
	if err := acquireAll(ctx, places, c.NewReader()); err != nil {
		c.Errorf("not granted in an hour: %v", err)
		return
	}
	c.enter(wanted)
	time.Sleep(upTo(dice, 20*time.Millisecond))
	c.exit(wanted)
}

func acquireAll(ctx context.Context, places *recipes.Places, store recipes.Store) error {
	for {
		turn, err := places.Look(ctx, store)
		if err != nil || turn.Granted {
			return err
		}
		if err := wait(ctx, turn.Changed.Done(), nil); err != nil {
			return err
		}
	}
}

func (c *circle) enter(wanted []recipes.Wanted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants++
	for _, of := range wanted {
		held := c.holding[of.Lock.Path]
		if len(held) > 0 && (of.Mode != recipes.Read || held[0] != recipes.Read) {
			c.Errorf("%s is held by %v beside %v", of.Lock.Path, held, of.Mode)
		}
		c.holding[of.Lock.Path] = append(held, of.Mode)
	}
}

func (c *circle) exit(wanted []recipes.Wanted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range wanted {
		c.holding[of.Lock.Path] = c.holding[of.Lock.Path][1:]
	}
}

// holdTwo takes the first two of the locks.
func (w world) holdTwo(session *standin.Session) *recipes.Places {
	w.Helper()
	wanted := []recipes.Wanted{{Lock: severalLocks[0]}, {Lock: severalLocks[1], Mode: recipes.Write}}
	places, err := recipes.JoinAll(w.living, session, wanted, recipes.About{Owner: "both"})
	if err != nil {
		w.Fatal(err)
	}
	if err := acquireAll(w.living, places, w.NewReader()); err != nil {
		w.Fatal(err)
	}
	return places
}

func TestWhoeverAsksForOneOfSeveralLocksAsksForAll(t *testing.T) {
	inBubble(t, func(w world) {
		places := w.holdTwo(w.session())
		asked, changed := places.Asked()
		if asked.Asked {
			t.Fatal(asked)
		}
		if _, err := severalLocks[1].Revoke(w.living, w.NewReader(), "ops", "because", nil); err != nil {
			t.Fatal(err)
		}
		<-changed.Done()
		asked, _, err := places.LookAgain(w.living)
		if err != nil || !asked.Asked || asked.Reason != "because" {
			t.Error(asked, err)
		}
		places.Leave(w.living)
	})
}

func TestTheLossOfOneOfSeveralPlacesIsTheLossOfAll(t *testing.T) {
	inBubble(t, func(w world) {
		places := w.holdTwo(w.session())
		if guards := places.Guards(); len(guards) != 2 || guards[0].Token != guards[1].Token || guards[0].Token == 0 {
			t.Errorf("guards %v", guards)
		}
		w.delete(places.Guards()[1].Path)
		<-places.Gone().Done()
		if _, _, err := places.LookAgain(w.living); ending(err) != "gone" {
			t.Error(err)
		}
		places.Leave(w.living)
	})
}
