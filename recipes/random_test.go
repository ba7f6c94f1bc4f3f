package recipes_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of the random schedules")
	seeds     = flag.Uint64("seeds", 400, "how many random schedules to run")
)

// A stage is a random schedule: contenders of random modes on sessions that are slow, late, cut off and expired, with
// foreign contenders among them. Everybody who holds is noted, and nobody may hold beside whom the lock excludes.
type stage struct {
	world
	dice    *rand.Rand
	readers []*standin.Reader

	mu      sync.Mutex
	holding map[int64]holding // by fencing token
	grants  int
	last    map[recipes.Mode]int64 // the newest token granted
}

type holding struct {
	mode    recipes.Mode
	session *standin.Session
}

func TestRandomSchedulesKeepEveryPromise(t *testing.T) {
	grants := 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			options := standin.Options{StuckCounters: seed%2 == 0}
			inBubbleWith(t, options, func(w world) { grants += runSchedule(w, seed) })
		})
	}
	if grants < int(*seeds)*5 {
		t.Errorf("only %d grants in %d schedules", grants, *seeds)
	}
	t.Logf("%d grants", grants)
}

func runSchedule(w world, seed uint64) (grants int) {
	s := &stage{
		world: w, dice: rand.New(rand.NewPCG(seed, seed)), holding: map[int64]holding{}, last: map[recipes.Mode]int64{},
	}
	for range 1 + s.dice.IntN(3) {
		s.readers = append(s.readers, w.NewReader())
	}
	if s.dice.IntN(3) == 0 {
		w.startAt(1<<31 - 1 - s.dice.Int32N(8))
	}
	shared, contenders := s.dice.IntN(2) == 0, 4+s.dice.IntN(16)
	var done sync.WaitGroup
	for range contenders {
		done.Go(s.contend(s.mode(shared), s.dice.Uint64()))
	}
	done.Go(s.disturb(s.dice.Uint64()))
	done.Wait()
	w.empty()
	return s.grants
}

func (s *stage) mode(shared bool) recipes.Mode {
	if !shared {
		return recipes.Exclusive
	}
	return []recipes.Mode{recipes.Read, recipes.Read, recipes.Write}[s.dice.IntN(3)]
}

// contend has one contender come and go a few times.
func (s *stage) contend(mode recipes.Mode, seed uint64) func() {
	dice := rand.New(rand.NewPCG(seed, 1))
	reader := s.readers[s.dice.IntN(len(s.readers))]
	return func() {
		for range 1 + dice.IntN(4) {
			time.Sleep(upTo(dice, 300*time.Millisecond))
			session := reader.OpenSession(10 * time.Second)
			session.Delay(upTo(dice, 20*time.Millisecond))
			s.visit(session, mode, dice)
			session.Close(s.living)
		}
	}
}

// visit takes a place, waits for a while, holds for a while and leaves.
func (s *stage) visit(session *standin.Session, mode recipes.Mode, dice *rand.Rand) {
	place, err := orders.Join(s.living, session, mode, recipes.About{})
	if err != nil {
		s.excuse("join", err)
		return
	}
	defer place.Leave(s.living)
	patience := time.Hour
	if dice.IntN(3) == 0 {
		patience = upTo(dice, 200*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(s.living, patience)
	defer cancel()
	c := &contender{place: place}
	hold, err := c.acquire(ctx)
	if err != nil {
		s.excuse("acquire", err)
		return
	}
	s.enter(hold.Token, holding{mode, session})
	defer s.exit(hold.Token)
	select {
	case <-time.After(upTo(dice, 50*time.Millisecond)):
	case <-place.Gone().Done():
	case <-session.Done():
	}
}

// excuse fails unless the error is one that a schedule brings about.
func (s *stage) excuse(doing string, err error) {
	if word := ending(err); word != "gone" && word != "ended" && word != context.DeadlineExceeded.Error() {
		s.Errorf("%s: %v", doing, err)
	}
}

// enter notes a grant, unless its node was deleted in this same instant. Whom it excludes must not have a node any more:
// sessions end and nodes are deleted by hand before those who held notice it.
func (s *stage) enter(token int64, granted holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owns(granted.session, token) {
		return
	}
	s.grants++
	for other, h := range s.holding {
		excluded := granted.mode != recipes.Read || h.mode != recipes.Read
		if excluded && s.owns(h.session, other) {
			s.Errorf("%v with token %d was granted beside %v with %d", granted.mode, token, h.mode, other)
		}
	}
	for mode, newest := range s.last {
		if excluded := granted.mode != recipes.Read || mode != recipes.Read; excluded && token <= newest {
			s.Errorf("%v got token %d after %v had %d", granted.mode, token, mode, newest)
		}
	}
	s.last[granted.mode] = max(s.last[granted.mode], token)
	s.holding[token] = granted
}

func (s *stage) exit(token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holding, token)
}

// owns says whether the session's node with this token is in the tree.
func (s *stage) owns(session *standin.Session, token int64) bool {
	return slices.ContainsFunc(s.standing(), func(n recipes.Node) bool { return n.Czxid == token && session.Owns(n) })
}

// standing reads all nodes of the lock, oldest first.
func (s *stage) standing() []recipes.Node {
	var nodes []recipes.Node
	for _, name := range s.Names(orders.Path) {
		if node, err := s.Read(orders.Path + "/" + name); err == nil {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b recipes.Node) int { return cmp.Compare(a.Czxid, b.Czxid) })
	return nodes
}

// disturb lets readers lag, cuts sessions off or expires them, deletes places by hand, puts data and foreign children there.
func (s *stage) disturb(seed uint64) func() {
	dice := rand.New(rand.NewPCG(seed, 2))
	return func() {
		for range 5 + dice.IntN(30) {
			time.Sleep(upTo(dice, 60*time.Millisecond))
			s.disturbOnce(dice)
		}
	}
}

func (s *stage) disturbOnce(dice *rand.Rand) {
	reader := s.readers[dice.IntN(len(s.readers))]
	switch dice.IntN(6) {
	case 0:
		reader.Lag()
		time.Sleep(upTo(dice, 100*time.Millisecond))
		reader.KeepUp()
	case 1:
		reader.Suspend()
		time.Sleep(upTo(dice, 100*time.Millisecond))
		reader.Resume()
	case 2:
		if node, ok := s.pick(dice); ok {
			_ = s.Expire(node.Owner)
		}
	case 3:
		if names := s.Names(orders.Path); len(names) > 0 {
			_ = s.Delete(orders.Path + "/" + names[dice.IntN(len(names))])
		}
	case 4:
		if names := s.Names(orders.Path); len(names) > 0 {
			_ = s.Set(orders.Path+"/"+names[dice.IntN(len(names))], []byte("10.0.0.1"))
		}
	case 5:
		s.pass(dice)
	}
}

// pick takes one of the lock's nodes.
func (s *stage) pick(dice *rand.Rand) (recipes.Node, bool) {
	nodes := s.standing()
	if len(nodes) == 0 {
		return recipes.Node{}, false
	}
	return nodes[dice.IntN(len(nodes))], true
}

// pass puts something of somebody else's there for a while.
func (s *stage) pass(dice *rand.Rand) {
	path, err := s.Create(orders.Path+"/_c_x", nil, embedded.Persistent, 0)
	if err != nil {
		s.Error(err)
		return
	}
	time.Sleep(upTo(dice, 100*time.Millisecond))
	_ = s.Delete(path) // perhaps it was deleted by hand
}

func upTo(dice *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(limit)))
}
