package recipes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// quarantine is for how long numbers rest in these tests.
const quarantine = time.Minute

// A bearer is one that wants a number, or has one.
type bearer struct {
	world
	session *standin.Session
	numbers *recipes.Numbering
	permits *recipes.Permits
	turn    recipes.PermitsTurn
}

// bearerWith joins the semaphore for a number, through this store.
func (w world) bearerWith(store recipes.Store, rest time.Duration) *bearer {
	w.Helper()
	b := &bearer{world: w, session: w.session(), numbers: &recipes.Numbering{Store: store, Quarantine: rest}}
	of := calls
	of.Numbers = b.numbers
	var err error
	if b.permits, err = of.Join(w.living, b.session, 1, recipes.About{}); err != nil {
		w.Fatal(err)
	}
	return b
}

func (w world) bearer() *bearer {
	w.Helper()
	return w.bearerWith(w.NewReader(), quarantine)
}

// looks says how it stands: with which number, or what it waits for.
func (b *bearer) looks() string {
	b.Helper()
	for range 9 {
		var err error
		b.turn, err = b.permits.Look(b.living)
		number, bears := b.permits.Number()
		switch {
		case err != nil:
			return ending(err)
		case b.turn.Granted && bears:
			b.permits.LeaveQueue(b.living)
			return fmt.Sprint("number ", number)
		case b.turn.Granted:
			return "no number"
		case !b.turn.Changed.IsGiven():
			return fmt.Sprintf("waits behind %d, %d rest", b.turn.Position, b.turn.Quarantined)
		}
	}
	return "no end"
}

// releases ends it by its holder's own hand.
func (b *bearer) releases() {
	b.permits.LetGo(b.living)
	b.permits.Leave(b.living)
	synctest.Wait()
}

// crashes ends it without that.
func (b *bearer) crashes() {
	b.session.Expire()
	synctest.Wait()
}

func (w world) semaphoreOf(limit int) {
	w.Helper()
	if err := calls.Create(w.living, w.NewReader(), limit); err != nil {
		w.Fatal(err)
	}
}

// resting are the numbers in quarantine, with a star for those whose quarantine has not begun.
func (w world) resting() string {
	w.Helper()
	view, err := calls.View(w.living, w.NewReader())
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, of := range view.Quarantines {
		mark := ""
		if of.Until.IsZero() {
			mark = "*"
		}
		all = append(all, fmt.Sprint(of.Number, mark))
	}
	return strings.Join(all, " ")
}

func TestEachHolderBearsTheSmallestNumberThatIsFree(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(3)
		first, second, third := w.bearer(), w.bearer(), w.bearer()
		w.told("first", first.looks(), "number 0")
		w.told("second", second.looks(), "number 1")
		first.releases()
		w.told("third", third.looks(), "number 0")
		plain, _ := w.permits(1, recipes.About{})
		fourth := w.bearer()
		w.told("with the limit reached", fourth.looks(), "waits behind 0, 0 rest")
		plain.Leave(w.living)
		w.told("with room", fourth.looks(), "number 2")
		view, err := calls.View(w.living, w.NewReader())
		if err != nil || len(view.Holders) != 3 {
			t.Fatal(view, err)
		}
		for i, want := range []int{1, 0, 2} {
			if got := view.Holders[i].Number; got == nil || *got != want {
				t.Errorf("holder %d bears %v, not %d", i, got, want)
			}
		}
	})
}

func TestANumberThatWasLostRestsForItsQuarantine(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(2)
		first, second := w.bearer(), w.bearer()
		w.told("first", first.looks(), "number 0")
		w.told("second", second.looks(), "number 1")
		first.crashes()
		w.told("resting", w.resting(), "0*")
		time.Sleep(time.Hour) // it begins when a caller looks
		third := w.bearer()
		w.told("third", third.looks(), "waits behind 0, 1 rest")
		w.told("resting", w.resting(), "0")
		if left := time.Until(third.turn.Due); left < quarantine || left > quarantine+10*time.Second {
			t.Errorf("it is due in %v", left)
		}
		if names := w.Names(calls.Path + "/leases"); len(names) != 1 {
			t.Errorf("a permit without a number: %q", names)
		}
		time.Sleep(time.Until(third.turn.Due))
		w.told("third, at the end", third.looks(), "waits behind 0, 1 rest")
		time.Sleep(time.Millisecond)
		w.told("third, after the end", third.looks(), "number 0")
		w.told("resting", w.resting(), "")
		second.releases()
		w.told("fourth", w.bearer().looks(), "number 1")
	})
}

func TestANumberWithoutQuarantineIsFreeAtOnce(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		first := w.bearerWith(w.NewReader(), 0)
		w.told("first", first.looks(), "number 0")
		first.crashes()
		w.told("second", w.bearerWith(w.NewReader(), 0).looks(), "number 0")
	})
}

func TestAPermitThatIsLeftWithoutBeingFreedHasItsNumberRest(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(2)
		first := w.bearer()
		w.told("first", first.looks(), "number 0")
		first.permits.Leave(w.living)
		w.told("second", w.bearer().looks(), "number 1")
	})
}

// A leader whose clock is a year ahead ends no quarantine, nor does a sidecar whose clock is.
func TestAQuarantineEndsWhenBothClocksArePastItsEnd(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		first := w.bearer()
		w.told("first", first.looks(), "number 0")
		first.crashes()
		waiter := w.bearer()
		w.told("begins", waiter.looks(), "waits behind 0, 1 rest")
		reader := waiter.numbers.Store
		waiter.numbers.Store = skewed{reader, 0, 365 * 24 * time.Hour}
		w.told("the ensemble is ahead", waiter.looks(), "waits behind 0, 1 rest")
		time.Sleep(quarantine + 6*time.Second)
		waiter.numbers.Store = skewed{reader, 0, -time.Hour}
		w.told("the machine is ahead", waiter.looks(), "waits behind 0, 1 rest")
		if left := time.Until(waiter.turn.Due); left < 59*time.Minute {
			t.Errorf("it is due in %v", left)
		}
		waiter.numbers.Store = reader
		w.told("both", waiter.looks(), "number 0")
	})
}

// A reply is lost, or a write, at each step of a holder's life. A number that it has is its own, and is free when it is released.
func TestALostReplyGivesNoNumberAway(t *testing.T) {
	for _, carriedOut := range []bool{false, true} {
		for cut := range 6 {
			inBubble(t, func(w world) {
				w.semaphoreOf(2)
				reader, commits := w.NewReader(), 0
				lose := func(of standin.Operation) error {
					if of.Name != "Commit" {
						return nil
					}
					commits++
					if commits-1 == cut {
						return recipes.ErrOutcomeUnknown
					}
					return nil
				}
				if carriedOut {
					reader.After(lose)
				} else {
					reader.Before(lose)
				}
				for round := range 3 {
					of := w.bearerWith(reader, quarantine)
					w.told(fmt.Sprintf("cut %d, round %d", cut, round), of.looks(), "number 0")
					w.told("beside it", w.beside(), "number 1")
					of.releases()
				}
				if commits <= cut {
					t.Errorf("%d commits", commits)
				}
			})
		}
	}
}

// beside is which number another caller gets, which gives it back.
func (w world) beside() string {
	w.Helper()
	other := w.bearer()
	defer other.releases()
	return other.looks()
}

// The place in the queue is removed by hand after its caller has chosen a number, so that another caller chooses the same.
func TestOfTwoThatChooseOneNumberOneChoosesAgain(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(2)
		slow, fast := w.bearer(), (*bearer)(nil)
		slow.session.Before(func(of standin.Operation) error {
			if of.Name == "Enqueue" && fast == nil {
				for _, name := range w.Names(calls.Path + "/locks") {
					w.delete(calls.Path + "/locks/" + name)
				}
				fast = w.bearer()
				w.told("fast", fast.looks(), "number 0")
			}
			return nil
		})
		w.told("slow", slow.looks(), "gone")
		slow.permits.Leave(w.living)
		fast.crashes()
		w.told("after the crash", w.bearer().looks(), "number 1")
	})
}

// The write that records a number comes after its permit was given up.
func TestALateRecordOfAPermitThatIsGoneHoldsNoNumber(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		reader := w.NewReader()
		late := w.bearerWith(reader, quarantine)
		reader.Before(func(of standin.Operation) error {
			if of.Name == "Commit" {
				for _, name := range w.Names(calls.Path + "/leases") {
					w.delete(calls.Path + "/leases/" + name)
				}
			}
			return nil
		})
		w.told("late", late.looks(), "gone")
		late.permits.Leave(w.living)
		w.told("the next", w.bearer().looks(), "number 0")
	})
}

func TestAResizeAsksForNumbersBeyondTheLimitFirst(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(4)
		var all []*bearer
		for number := range 4 {
			all = append(all, w.bearer())
			w.told("one of all", all[number].looks(), fmt.Sprint("number ", number))
		}
		all[0].releases()
		all[0] = w.bearer()
		w.told("the newest", all[0].looks(), "number 0")
		asked, err := calls.Resize(w.living, w.NewReader(), 3, "", "", nil)
		if asked != 1 || err != nil {
			t.Fatalf("asked for %d: %v", asked, err)
		}
		for number, of := range all {
			revocation, _, err := of.permits.LookAgain(w.living)
			if err != nil || revocation.Asked != (number == 3) {
				t.Errorf("%d is asked: %v, %v", number, revocation.Asked, err)
			}
		}
	})
}

// The limit shrinks after a number was chosen.
func TestANumberBeyondANewLimitIsNotGranted(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(3)
		first, second := w.bearer(), w.bearer()
		w.told("first", first.looks(), "number 0")
		w.told("second", second.looks(), "number 1")
		third := w.bearer()
		third.session.Before(func(of standin.Operation) error {
			if of.Name == "Enqueue" {
				first.releases()
				if _, err := calls.Resize(w.living, w.NewReader(), 2, "", "", nil); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		w.told("third", third.looks(), "number 0")
	})
}

func TestARecordThatAnotherProgramWroteIsOfANumberThatIsTaken(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(2)
		first := w.bearer()
		w.told("first", first.looks(), "number 0")
		first.releases()
		if err := w.Set(calls.Path+".numbers/0", []byte("?")); err != nil {
			t.Fatal(err)
		}
		w.told("second", w.bearer().looks(), "number 1")
		w.told("resting", w.resting(), "")
	})
}

func TestACallerThatDoesNotWaitIsNotLedOnByPermitsWithoutANumber(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		first := w.bearer()
		w.told("first", first.looks(), "number 0")
		first.crashes()
		waiter := w.bearer()
		w.told("waiter", waiter.looks(), "waits behind 0, 1 rest")
		has := func() bool {
			has, err := calls.HasRoom(w.living, w.NewReader(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return has
		}
		if has() {
			t.Error("the queue moves, though its first waits for a quarantine")
		}
		waiter.permits.Leave(w.living)
		if !has() {
			t.Error("there is no room, though no caller waits")
		}
	})
}

// A process comes back to a permit, with its number or before that was recorded.
func TestAPermitIsComeBackToWithItsNumber(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(3)
		first, second := w.bearer(), w.bearer()
		w.told("first", first.looks(), "number 0")
		w.told("second", second.looks(), "number 1")
		of := calls
		of.Numbers = &recipes.Numbering{Store: w.NewReader(), Quarantine: quarantine}
		back := &bearer{world: w, session: second.session}
		var err error
		if back.permits, err = of.Rejoin(second.session, w.permitsOf(second.session), 1, recipes.About{}); err != nil {
			t.Fatal(err)
		}
		w.told("come back", back.looks(), "number 1")
		if _, err = calls.Rejoin(first.session, w.permitsOf(first.session), 1, recipes.About{}); !errors.Is(err, recipes.ErrGone) {
			t.Errorf("without asking for a number: %v", err)
		}
		back.releases()
		w.told("free again", w.bearer().looks(), "number 1")

		unrecorded := w.bearer()
		unrecorded.numbers.Store.(*standin.Reader).Before(func(of standin.Operation) error {
			if of.Name == "Commit" {
				return recipes.ErrUnreachable
			}
			return nil
		})
		w.told("not recorded", unrecorded.looks(), recipes.ErrUnreachable.Error())
		if back.permits, err = of.Rejoin(unrecorded.session, w.permitsOf(unrecorded.session), 1, recipes.About{}); err != nil {
			t.Fatal(err)
		}
		w.told("not recorded, come back", back.looks(), "gone")
	})
}

// permitsOf are the permits of a session.
func (w world) permitsOf(of *standin.Session) (standing []recipes.Standing) {
	for _, name := range w.Names(calls.Path + "/leases") {
		path := calls.Path + "/leases/" + name
		if node, err := w.Read(path); err == nil && of.Owns(node) {
			standing = append(standing, recipes.Standing{Path: path, Node: node})
		}
	}
	return standing
}

func TestALimitOfAnotherProgramTakesNoMoreRoomThanOurs(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		_, err := w.NewReader().Commit(w.living, recipes.Set(calls.Path+recipes.LimitSuffix, []byte{0x7f, 0xff, 0xff, 0xff}, -1))
		w.must(err)
		w.told("it", w.bearer().looks(), "number 0")
	})
}

// Its directory cannot be made: the caller hears of that, and does not ask for ever.
func TestANumberThatCannotBeRecordedIsNotGranted(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		store := w.NewReader()
		store.Before(func(of standin.Operation) error {
			if of.Name == "MakeDirectory" {
				return recipes.ErrDenied
			}
			return nil
		})
		w.told("it", w.bearerWith(store, quarantine).looks(), "denied")
	})
}

// It was chosen and recorded, and not told: a mark came first.
func TestANumberThatWasNotToldDoesNotRest(t *testing.T) {
	inBubble(t, func(w world) {
		w.semaphoreOf(1)
		first := w.bearer()
		first.session.Before(func(of standin.Operation) error {
			if of.Name == "Prove" {
				return errBroken
			}
			return nil
		})
		w.told("first", first.looks(), "broken")
		first.permits.Leave(w.living)
		w.told("second", w.bearer().looks(), "number 0")
	})
}
