package recipes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var gate = recipes.Barrier{Path: "/barriers/gate"}

// A passer waits at a barrier: "comes", "waits", "passed", or why not.
type passer struct {
	mu    sync.Mutex
	state string
}

func (p *passer) becomes(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
}

func (p *passer) want(t *testing.T, state string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != state {
		t.Errorf("a caller at the barrier %s, want %s", p.state, state)
	}
}

func (w world) passes(reader *standin.Reader) *passer {
	p := &passer{state: "comes"}
	go func() {
		err := gate.Await(w.living, reader, func() { p.becomes("waits") })
		if err != nil {
			p.becomes(err.Error())
			return
		}
		p.becomes("passed")
	}()
	return p
}

func (w world) set(store recipes.Store) {
	w.Helper()
	if err := gate.Set(w.living, store); err != nil {
		w.Fatal(err)
	}
}

func (w world) remove(store recipes.Store) {
	w.Helper()
	if err := gate.Remove(w.living, store); err != nil {
		w.Fatal(err)
	}
}

func TestABarrierHoldsCallersBackUntilItIsRemoved(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		w.passes(reader).want(t, "passed")
		w.set(reader)
		w.set(reader)
		first, second := w.passes(reader), w.passes(w.NewReader())
		first.want(t, "waits")
		second.want(t, "waits")
		w.remove(reader)
		w.remove(reader)
		first.want(t, "passed")
		second.want(t, "passed")
	})
}

func TestABarrierThatIsSetAnewAtOnceLetsGoOnWhoeverWaited(t *testing.T) {
	inBubble(t, func(w world) {
		reader, late := w.NewReader(), w.NewReader()
		w.set(reader)
		waits := w.passes(late)
		waits.want(t, "waits")
		late.Suspend()
		w.remove(reader)
		w.set(reader)
		next := w.passes(reader)
		late.Resume()
		waits.want(t, "passed")
		next.want(t, "waits")
	})
}

func TestALateReaderLetsNobodyPassABarrier(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(w world, reader *standin.Reader)
	}{
		{"that was not set then", func(world, *standin.Reader) {}},
		{"that another one was set before", func(w world, reader *standin.Reader) { w.set(reader) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				reader, late := w.NewReader(), w.NewReader()
				c.before(w, reader)
				_, _ = late.Get(w.Context(), gate.Path)
				late.Lag()
				w.remove(reader)
				w.set(reader)
				w.passes(late).want(t, "waits")
			})
		})
	}
}

func TestABarrierIsSetAndRemovedThoughRepliesAreLost(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		lose := func() {
			reader.After(func(operation standin.Operation) error {
				if operation.Name != "Commit" {
					return nil
				}
				reader.After(nil)
				return recipes.ErrOutcomeUnknown
			})
		}
		w.set(reader) // the directory is made
		w.remove(reader)
		lose()
		w.set(reader)
		waits := w.passes(reader)
		waits.want(t, "waits")
		lose()
		w.remove(reader)
		waits.want(t, "passed")
	})
}

func TestABarrierThatIsSetInADirectoryThatTheEnsembleRemovesStays(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.session()
		entrant, err := gate.Join(w.living, session, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		if err := gate.Set(w.living, session); !errors.Is(err, recipes.ErrBarrierInUse) {
			w.Errorf("set with %v", err)
		}
		if err := gate.Remove(w.living, session); !errors.Is(err, recipes.ErrBarrierInUse) {
			w.Errorf("removed with %v", err)
		}
		entrant.Leave(w.living)
		w.set(session)
		<-time.After(time.Hour)
		w.passes(w.NewReader()).want(t, "waits")
	})
}

// A visitor is one caller at a double barrier.
type visitor struct {
	*passer
	*recipes.Entrant
	session *standin.Session
	round   recipes.Round
	leaving context.CancelFunc
}

// visits comes to the double barrier: "waits", "inside", and once it is told to leave "leaving" and "left".
func (w world) visits(size int) *visitor { return w.visitsWith(w.session(), size) }

func (w world) visitsWith(session *standin.Session, size int) *visitor {
	w.Helper()
	entrant, err := gate.Join(w.living, session, recipes.About{})
	if err != nil {
		w.Fatal(err)
	}
	inside, leaving := context.WithCancel(w.living)
	v := &visitor{&passer{state: "waits"}, entrant, session, recipes.Round{}, leaving}
	go func() {
		if err := v.visit(w.living, inside, size); err != nil {
			v.becomes(ending(err))
		}
	}()
	synctest.Wait()
	return v
}

func (v *visitor) visit(living, inside context.Context, size int) error {
	for v.round.Number == 0 {
		seen, err := v.Enter(living, v.session, size)
		if err != nil {
			return err
		}
		if v.round = seen.Round; v.round.Number == 0 {
			if err := wait(living, seen.Changed.Done(), seen.Others.Done()); err != nil {
				return err
			}
		}
	}
	v.becomes("inside")
	<-inside.Done()
	v.becomes("leaving")
	if err := v.round.AwaitTurn(living, v.session); err != nil {
		return err
	}
	v.Close(living, v.session)
	v.Leave(living)
	if err := v.round.AwaitOthers(living, v.session); err != nil {
		return err
	}
	v.becomes("left")
	return nil
}

func TestCallersEnterADoubleBarrierTogetherAndLeaveItTogether(t *testing.T) {
	inBubble(t, func(w world) {
		for range 3 { // whatever is left of the rounds before
			var all []*visitor
			for range 3 {
				all = append(all, w.visits(4))
			}
			for _, each := range all {
				each.want(t, "waits")
			}
			all = append(all, w.visits(4))
			for _, each := range all {
				each.want(t, "inside")
				if each.round.Number != all[0].round.Number {
					w.Errorf("round %d and round %d", each.round.Number, all[0].round.Number)
				}
			}
			for i, each := range all[:3] {
				each.leaving()
				for _, of := range all[:i+1] {
					of.want(t, "leaving")
				}
			}
			all[3].want(t, "inside")
			all[3].leaving()
			for _, each := range all {
				each.want(t, "left")
			}
			if names, err := w.NewReader().Children(w.Context(), gate.Path); err == nil && len(names) > 0 {
				w.Errorf("there remain %v", names)
			}
		}
	})
}

func TestWhoDiesInsideADoubleBarrierKeepsNobodyFromLeaving(t *testing.T) {
	inBubble(t, func(w world) {
		all := []*visitor{w.visits(3), w.visits(3), w.visits(3)}
		all[0].leaving()
		all[1].leaving()
		all[0].want(t, "leaving")
		all[2].session.Expire()
		all[0].want(t, "left")
		all[1].want(t, "left")
	})
}

func TestARoundWhoseLastCallerDiedLetsNobodyIn(t *testing.T) {
	inBubble(t, func(w world) {
		for _, each := range []*visitor{w.visits(2), w.visits(2)} {
			each.want(t, "inside")
			each.session.Expire()
		}
		first := w.visits(3)
		first.want(t, "waits")
		second := w.visits(3)
		second.want(t, "waits")
		third := w.visits(3)
		for _, each := range []*visitor{first, second, third} {
			each.want(t, "inside")
		}
	})
}

// Curator's callers that find `ready` do not touch it.
func TestWhoeverComesLastWhereARoundHasLeftSomethingOpensTheBarrier(t *testing.T) {
	inBubble(t, func(w world) {
		w.visits(1).session.Expire()
		first, second := w.visits(3), w.visits(3)
		first.want(t, "waits")
		w.stranger("curator")
		first.want(t, "inside")
		second.want(t, "inside")
		if first.round.Number != second.round.Number {
			t.Errorf("round %d and round %d", first.round.Number, second.round.Number)
		}
	})
}

// kazoo's first waits for what is last in the order of names, and that is `ready` if it was made after kazoo's callers had deleted it.
func TestTheLastOfOursLeavesNothingThatKazoosFirstWaitsFor(t *testing.T) {
	inBubble(t, func(w world) {
		first, second := w.inOrder(3)
		kazoo := w.stranger("0")
		w.openByHand()
		first.want(t, "inside")
		first.leaving()
		first.want(t, "leaving")
		if names := w.Names(gate.Path); len(names) != 4 {
			t.Errorf("the first of ours has left before the last: there remain %q", names)
		}
		second.leaving()
		second.want(t, "leaving")
		if names := w.Names(gate.Path); !slices.Equal(names, []string{"0"}) {
			t.Errorf("when ours have left there remain %q", names)
		}
		kazoo.Expire()
		first.want(t, "left")
		second.want(t, "left")
	})
}

// stranger has a caller of another library stand at the double barrier, where others do.
func (w world) stranger(name string) *standin.Session {
	w.Helper()
	session := w.session()
	if _, err := w.Create(gate.Path+"/"+name, nil, embedded.Ephemeral, session.ID()); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	return session
}

// openByHand makes `ready`, as other libraries do.
func (w world) openByHand() {
	w.Helper()
	if _, err := w.Create(gate.Path+"/ready", nil, embedded.Persistent, 0); err != nil {
		w.Fatal(err)
	}
}

// Those inside leave between the list of who stands there and the look at each.
func TestWhoHasLeftIsNotCountedForTheNextRound(t *testing.T) {
	inBubble(t, func(w world) {
		first, second := w.visits(2), w.visits(2)
		session := w.session()
		session.After(func(operation standin.Operation) error {
			if operation.Name == "Children" {
				session.After(nil)
				time.Sleep(time.Second)
			}
			return nil
		})
		late := w.visitsWith(session, 2)
		second.leaving()
		first.leaving()
		time.Sleep(2 * time.Second)
		first.want(t, "left")
		late.want(t, "waits")
		next := w.visits(2)
		late.want(t, "inside")
		next.want(t, "inside")
	})
}

func TestWhoComesLateIsOfTheNextRound(t *testing.T) {
	inBubble(t, func(w world) {
		first, second := w.visits(2), w.visits(2)
		late := w.visits(2)
		late.want(t, "waits")
		first.leaving()
		second.leaving()
		first.want(t, "left") // nobody waits for who came late
		late.want(t, "waits")
		next := w.visits(2)
		late.want(t, "inside")
		next.want(t, "inside")
		late.leaving()
		next.leaving()
		late.want(t, "left")
	})
}

// Who dies inside and comes back is one step ahead of nobody.
func TestWhoDiesInsideAndComesBackStaysInStep(t *testing.T) {
	inBubble(t, func(w world) {
		dies, other := w.visits(2), w.visits(2)
		dies.session.Expire()
		again := w.visits(2)
		again.want(t, "waits")
		other.leaving()
		other.want(t, "left")
		again.want(t, "waits")
		w.visits(2).want(t, "inside")
		again.want(t, "inside")
	})
}

func TestWhatARoundHasLeftBehindKeepsNobodyFromSettingABarrier(t *testing.T) {
	inBubble(t, func(w world) {
		only := w.visits(1)
		only.want(t, "inside")
		only.session.Expire()
		synctest.Wait()
		store := w.NewReader()
		w.must(gate.Set(w.living, store))
		w.must(gate.Remove(w.living, store))
		w.visits(2).want(t, "waits")
		if err := gate.Remove(w.living, store); !errors.Is(err, recipes.ErrBarrierInUse) {
			t.Error(err)
		}
	})
}

func TestWhoComesBackAtOnceDoesNotKeepOthersFromLeaving(t *testing.T) {
	inBubble(t, func(w world) {
		fast, slow := w.inOrder(2)
		reader := slow.session.Reader()
		slow.leaving()
		slow.want(t, "leaving")
		reader.Suspend()
		fast.leaving()
		synctest.Wait()
		again := w.visits(2)
		reader.Resume()
		slow.want(t, "left")
		again.want(t, "waits")
	})
}

func TestWhoGivesUpBeforeEnteringIsNotCounted(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.visits(2)
		first.session.Expire()
		second := w.visits(2)
		second.want(t, "waits")
		w.visits(2).want(t, "inside")
		second.want(t, "inside")
	})
}

func TestADoubleBarrierOpensThoughRepliesAreLost(t *testing.T) {
	for _, done := range []bool{true, false} {
		inBubble(t, func(w world) {
			first, session := w.visits(2), w.session()
			lose := func(operation standin.Operation) error {
				if operation.Name != "Commit" {
					return nil
				}
				session.Before(nil)
				session.After(nil)
				return recipes.ErrOutcomeUnknown
			}
			if done {
				session.After(lose)
			} else {
				session.Before(lose)
			}
			w.visitsWith(session, 2).want(t, "inside")
			first.want(t, "inside")
		})
	}
}

func TestALateReaderKeepsNobodyFromEnteringADoubleBarrier(t *testing.T) {
	inBubble(t, func(w world) {
		first, reader := w.visits(2), w.NewReader()
		_, _ = reader.Children(w.Context(), gate.Path)
		reader.Lag()
		w.visitsWith(reader.OpenSession(0), 2).want(t, "inside")
		first.want(t, "inside")
	})
}

func TestAnEntrantSeesThatItsNodeWasDeleted(t *testing.T) {
	inBubble(t, func(w world) {
		v := w.visits(1)
		v.want(t, "inside")
		changed, err := v.Look(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		names, _ := w.NewReader().Children(w.Context(), gate.Path)
		for _, name := range names {
			w.delete(gate.Path + "/" + name)
		}
		<-changed.Done()
		if _, err := v.Look(w.Context()); !errors.Is(err, recipes.ErrGone) {
			w.Errorf("it sees %v", err)
		}
	})
}

// Curator's and kazoo's callers make nodes of their own names, and `ready`.
func TestForeignCallersAreCountedAtADoubleBarrierAndOpenIt(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.visits(3)
		strangers := []*standin.Session{w.stranger("a"), w.stranger("b")}
		first.want(t, "waits")
		w.openByHand()
		first.want(t, "inside")
		first.leaving()
		first.want(t, "leaving")
		for _, each := range strangers {
			each.Expire()
		}
		first.want(t, "left")
	})
}

// inOrder is two callers, the one with the first name first.
func (w world) inOrder(size int) (first, second *visitor) {
	w.Helper()
	first = w.visits(size)
	names, err := w.NewReader().Children(w.Context(), gate.Path)
	if err != nil {
		w.Fatal(err)
	}
	name, second := names[0], w.visits(size)
	names, err = w.NewReader().Children(w.Context(), gate.Path)
	if err != nil {
		w.Fatal(err)
	}
	if slices.ContainsFunc(names, func(other string) bool { return other != "ready" && other < name }) {
		return second, first
	}
	return first, second
}

// Curator's and kazoo's callers that have left wait for the node that is first.
func TestTheFirstInTheOrderOfNamesLeavesADoubleBarrierLast(t *testing.T) {
	for _, firstLeaves := range []bool{true, false} {
		inBubble(t, func(w world) {
			first, second := w.inOrder(2)
			leaves, standing := second, 1
			if firstLeaves {
				leaves, standing = first, 2
			}
			leaves.leaving()
			leaves.want(t, "leaving")
			names, _ := w.NewReader().Children(w.Context(), gate.Path)
			if got := len(names) - 1; got != standing { // besides `ready`
				w.Errorf("%d of 2 nodes stand after the first (%v) leaves", got, firstLeaves)
			}
		})
	}
}
