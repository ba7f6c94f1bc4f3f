package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var shards = recipes.Assignment{Path: "/assignments/shards"}

// A crew are the members of shards, with a planner for each.
type crew struct {
	world
	*standin.Reader
}

func inCrew(t *testing.T, count int, test func(crew)) {
	t.Helper()
	inBubble(t, func(w world) {
		c := crew{w, w.NewReader()}
		w.must(shards.Define(w.living, c.Reader, recipes.Items{Count: count}, false))
		test(c)
	})
}

// A mate is a member of the crew with its planner.
type mate struct {
	member
	reader *standin.Reader
	stop   context.CancelFunc

	mu     sync.Mutex
	epochs []int64
}

// enters joins with a planner of its own.
func (c crew) enters(name string, capacity int) *mate {
	c.Helper()
	return c.entersWith(c.NewReader(), name, capacity)
}

func (c crew) entersWith(reader *standin.Reader, name string, capacity int) *mate {
	c.Helper()
	session := c.session()
	joined, err := shards.Members().Join(c.living, session, name, recipes.About{Metadata: recipes.WithCapacity(nil, capacity)})
	c.must(err)
	ctx, stop := context.WithCancel(c.living)
	m := &mate{member: member{joined, session}, reader: reader, stop: stop}
	go m.plan(ctx, name)
	return m
}

func (m *mate) plan(ctx context.Context, name string) {
	planner := recipes.Planner{Assignment: shards, Own: func(member string) bool { return member == name }, Failed: func(error) {}}
	for ctx.Err() == nil {
		view, changes, err := planner.Look(ctx, m.reader)
		if err != nil {
			_ = recipes.Changes{passed(time.Second)}.Wait(ctx)
			continue
		}
		m.mu.Lock()
		m.epochs = append(m.epochs, view.Epoch)
		m.mu.Unlock()
		_ = changes.Wait(ctx)
	}
}

// dies is a kill -9: the planner stops, and the session goes when it expires.
func (m *mate) dies() {
	m.stop()
	m.session.Expire()
}

// shares are who has what.
func (c crew) shares() string {
	c.Helper()
	view, err := shards.Get(c.living, c.Reader)
	c.must(err)
	var words []string
	for _, of := range view.Members {
		words = append(words, of.Name+":"+strings.Join(of.Items, " "))
	}
	if free := freeOf(view); len(free) > 0 || view.Unassigned != 0 {
		words = append(words, "none:"+strings.Join(free, " "))
	}
	return strings.Join(words, ", ")
}

func freeOf(view recipes.AssignmentView) []string {
	return slices.DeleteFunc(view.All(), func(item string) bool {
		return slices.ContainsFunc(view.Members, func(of *recipes.SetMember) bool { return slices.Contains(of.Items, item) })
	})
}

func (c crew) expectShares(after time.Duration, want string) {
	c.Helper()
	time.Sleep(after)
	synctest.Wait()
	if got := c.shares(); got != want {
		c.Fatalf("after %v the shares are %q, not %q", after, got, want)
	}
}

const unbounded = recipes.MaxSetItems

func TestItemsAreSharedOutOnceTheMembersHaveSettled(t *testing.T) {
	t.Parallel()
	inCrew(t, 6, func(c crew) {
		c.enters("a", unbounded)
		b := c.enters("b", unbounded)
		c.expectShares(2900*time.Millisecond, "a:, b:, none:0 1 2 3 4 5")
		c.expectShares(1200*time.Millisecond, "a:0 2 4, b:1 3 5")
		c.enters("c", unbounded)
		c.expectShares(2900*time.Millisecond, "a:0 2 4, b:1 3 5, c:")
		c.expectShares(1200*time.Millisecond, "a:0 2, b:1 3, c:4 5")
		b.dies()
		c.expectShares(2900*time.Millisecond, "a:0 2, c:4 5, none:1 3")
		c.expectShares(1200*time.Millisecond, "a:0 1 2, c:3 4 5")
	})
}

func TestAMemberThatIsBackInTimeMovesNothing(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		a, b := c.enters("a", unbounded), c.enters("b", unbounded)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		b.dies()
		time.Sleep(2 * time.Second)
		c.enters("b", unbounded)
		c.expectShares(20*time.Second, "a:0 2, b:1 3")
		a.mu.Lock()
		defer a.mu.Unlock()
		if plans := slices.Compact(slices.Clone(a.epochs)); len(plans) != 2 {
			t.Errorf("there were the plans %v, not none and then one", plans)
		}
	})
}

func TestAMemberThatComesBackAgainAndAgainWaitsForItsItems(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		c.enters("a", unbounded)
		b := c.enters("b", unbounded)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		for range 3 { // 6, 12 and 24 s
			b.dies()
			time.Sleep(5 * time.Second)
			b = c.enters("b", unbounded)
			time.Sleep(time.Second)
		}
		c.expectShares(22*time.Second, "a:0 1 2 3, b:")
		c.expectShares(3*time.Second, "a:0 1, b:2 3")
	})
}

func TestAPlanIsMadeThoughTheMembersDoNotSettle(t *testing.T) {
	t.Parallel()
	inCrew(t, 2, func(c crew) {
		c.enters("a", unbounded)
		for i := range 5 {
			time.Sleep(2 * time.Second)
			c.enters(fmt.Sprint("m", i), 0)
		}
		c.expectShares(1200*time.Millisecond, "a:0 1, m0:, m1:, m2:, m3:, m4:")
	})
}

// Plans that follow one another say since when items were left over, also where nothing else of the plan is new.
func TestPlansSaySinceWhenItemsAreLeftOver(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		expectShort := func(what string, want time.Duration) {
			c.Helper()
			view, err := shards.Get(c.living, c.Reader)
			c.must(err)
			if short := view.Short; short.IsZero() != (want < 0) || want >= 0 && time.Since(short).Round(5*time.Second) != want {
				t.Errorf("%s: short since %v, at %v", what, short, time.Now())
			}
		}
		c.enters("a", 2)
		b := c.enters("b", 2)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		expectShort("when each has a member", -1)
		b.dies()
		c.expectShares(5*time.Second, "a:0 2, none:1 3")
		expectShort("when no member has room for those of one that died", 0)
		time.Sleep(time.Minute)
		d := c.enters("d", 1)
		c.expectShares(5*time.Second, "a:0 2, d:1, none:3")
		expectShort("when one is left over", 65*time.Second)
		c.must(d.Update(c.living, recipes.WithCapacity(nil, 2)))
		c.expectShares(5*time.Second, "a:0 2, d:1 3")
		expectShort("when each has a member again", -1)
	})
}

func TestItemsLeaveAMemberThatIsDrained(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		c.enters("a", unbounded)
		b := c.enters("b", 3)
		c.expectShares(5*time.Second, "a:0 1 2, b:3")
		c.must(b.Update(c.living, recipes.WithCapacity(nil, unbounded)))
		c.expectShares(5*time.Second, "a:0 1, b:2 3")
		c.must(b.Update(c.living, recipes.WithCapacity(nil, 0)))
		c.expectShares(5*time.Second, "a:0 1 2 3, b:")
	})
}

func TestTheItemsOfASetChange(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		c.enters("a", unbounded)
		c.enters("b", unbounded)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		var assigned *recipes.ItemAssigned
		err := shards.Define(c.living, c.Reader, recipes.Items{Count: 3}, false)
		if !errors.Is(err, recipes.ErrItemsAssigned) || !errors.As(err, &assigned) || *assigned != (recipes.ItemAssigned{Item: "3", Member: "b"}) {
			t.Errorf("an item that b has leaves the set: %v", err)
		}
		c.must(shards.Define(c.living, c.Reader, recipes.Items{Names: []string{"x", "1", "0", "2", "3"}}, false))
		c.expectShares(5*time.Second, "a:x 0 2, b:1 3")
		c.must(shards.Define(c.living, c.Reader, recipes.Items{Count: 2}, true))
		c.expectShares(0, "a:0, b:1")
	})
}

func TestASetIsRemovedOnceItHasNoMembers(t *testing.T) {
	t.Parallel()
	inCrew(t, 2, func(c crew) {
		a := c.enters("a", unbounded)
		c.expectShares(5*time.Second, "a:0 1")
		if err := shards.Remove(c.living, c.Reader); !errors.Is(err, recipes.ErrAssignmentInUse) {
			t.Errorf("a set with a member is removed: %v", err)
		}
		a.stop()
		a.Leave(c.living)
		c.must(shards.Remove(c.living, c.Reader))
		if err := shards.Remove(c.living, c.Reader); !errors.Is(err, recipes.ErrNoAssignment) {
			t.Errorf("a set is removed twice: %v", err)
		}
		late, err := shards.Members().Join(c.living, c.session(), "late", recipes.About{}) // which leaves a container
		c.must(err)
		if _, err := shards.Get(c.living, c.Reader); !errors.Is(err, recipes.ErrNoAssignment) {
			t.Errorf("a directory without items is a set: %v", err)
		}
		c.must(shards.Define(c.living, c.Reader, recipes.Items{Count: 1}, false))
		c.expectShares(0, "late:, none:0")
		late.Leave(c.living)
	})
}

// Its write comes when another planner has made a plan for a member that it does not know of yet.
func TestAPlanThatIsLateUndoesNoNewerPlan(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		prompt, late := c.NewReader(), c.NewReader()
		begun, sent := make(chan struct{}), make(chan struct{})
		c.entersWith(prompt, "a", unbounded)
		c.expectShares(5*time.Second, "a:0 1 2 3")
		c.entersWith(late, "b", unbounded)
		c.expectShares(5*time.Second, "a:0 1, b:2 3")
		time.Sleep(2 * time.Minute) // then the planner of b makes plans, too
		atCommit := func(reader *standin.Reader, do func()) {
			reader.Before(func(of standin.Operation) error {
				if of.Name == "Commit" {
					do()
				}
				return nil
			})
		}
		atCommit(prompt, func() { <-begun })
		atCommit(late, sync.OnceFunc(func() { close(begun); <-sent }))
		c.enters("c", unbounded)
		c.expectShares(5*time.Second, "a:0, b:2 3, c:1")
		c.enters("d", unbounded)
		c.expectShares(5*time.Second, "a:0, b:2, c:1, d:3")
		close(sent)
		c.expectShares(time.Second, "a:0, b:2, c:1, d:3")
	})
}

// Its view is older than what it plans for, though the plan before is the one that it has seen.
func TestAPlannerThatLagsPlansForNoMemberThatHasGone(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		lagging := c.NewReader()
		c.entersWith(lagging, "a", unbounded)
		b := c.enters("b", unbounded)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		b.stop()
		d := c.enters("d", unbounded)
		d.stop() // so that only a plans
		time.Sleep(time.Second)
		lagging.Lag()
		b.session.Expire()
		c.expectShares(12*time.Second, "a:0 2, d:1 3")
	})
}

func TestAPlanThatNamesAnItemTwiceGivesItOnce(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		c.enters("a", unbounded)
		c.enters("b", unbounded)
		c.expectShares(5*time.Second, "a:0 2, b:1 3")
		_, err := c.Commit(c.living, recipes.Set(shards.Path+"/plan", []byte(`{"members":{"a":["3","0","3","9"],"b":["0","3"]}}`), -1))
		c.must(err)
		c.expectShares(0, "a:0 3, b:, none:1 2")
		c.expectShares(5*time.Second, "a:0 3, b:1 2")
	})
}

func TestWhatAnotherProgramWritesIsNoPlan(t *testing.T) {
	t.Parallel()
	inCrew(t, 2, func(c crew) {
		_, err := c.Commit(c.living, recipes.Set(shards.Path+"/plan", []byte("{"), -1))
		c.must(err)
		c.enters("a", unbounded)
		c.expectShares(5*time.Second, "a:0 1")
		c.foreignMember("stranger")
		c.expectShares(5*time.Second, "a:0 1, stranger:")
		_, err = c.Commit(c.living, recipes.Set(shards.Path, []byte("nonsense"), -1))
		c.must(err)
		if _, err := shards.Get(c.living, c.Reader); !errors.Is(err, recipes.ErrMalformedRecord) {
			t.Errorf("nonsense is a set: %v", err)
		}
		c.must(shards.Define(c.living, c.Reader, recipes.Items{Count: 1}, false))
	})
}

func (c crew) foreignMember(name string) {
	c.Helper()
	_, err := c.Create(shards.Path+"/members/"+name, []byte("10.0.0.1"), embedded.Ephemeral, c.session().ID())
	c.must(err)
}

// It may have no room: another program's, or one that is drained.
func TestAMemberThatMayNotBeReadGetsNothing(t *testing.T) {
	t.Parallel()
	inCrew(t, 4, func(c crew) {
		reader := c.NewReader()
		reader.Before(denying(shards.Path + "/members/b"))
		c.entersWith(reader, "a", 1)
		c.foreignMember("b")
		c.expectShares(15*time.Second, "a:0, b:, none:1 2 3")
	})
}

// Members come and go at random, and readers and writes are late or lost. When all is quiet again, each item has one member that is there, and
// the parts differ by one at most.
func TestEachItemHasOneMemberInTheEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inCrew(t, 10, func(c crew) { c.live(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func (c crew) live(random *rand.Rand) {
	mates := map[string]*mate{}
	for range 25 {
		name := fmt.Sprint("m", random.IntN(5))
		switch of := mates[name]; {
		case of == nil:
			mates[name] = c.enters(name, unbounded)
			disturb(rand.New(rand.NewPCG(random.Uint64(), 1)), 3*time.Second, mates[name].reader)
		case random.IntN(2) == 0:
			of.dies()
			delete(mates, name)
		default:
			of.stop()
			of.Leave(c.living)
			delete(mates, name)
		}
		time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
	}
	for _, of := range mates {
		of.reader.KeepUp()
		of.reader.Before(nil)
		of.reader.After(nil)
	}
	if len(mates) == 0 {
		mates["last"] = c.enters("last", unbounded)
	}
	time.Sleep(2 * time.Minute)
	view, err := shards.Get(c.living, c.Reader)
	c.must(err)
	least, most := unbounded, 0
	for _, of := range view.Members {
		least, most = min(least, len(of.Items)), max(most, len(of.Items))
	}
	if free := freeOf(view); len(free) > 0 || view.Unassigned > 0 || most-least > 1 || len(view.Members) != len(mates) {
		c.Errorf("%d members, %s", len(mates), c.shares())
	}
}
