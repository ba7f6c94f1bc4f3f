package recipes_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// delayed contends for `orders` with a delay of so many seconds.
func (w world) delayed(mode recipes.Mode, seconds int) *contender {
	w.Helper()
	lock := orders
	lock.Delay = time.Duration(seconds) * time.Second
	if seconds > 0 {
		if err := lock.Keep(w.living, w.NewReader()); err != nil {
			w.Fatal(err)
		}
	}
	return w.joinWith(w.session(), lock, mode)
}

// directory is what the lock's directory says, with how often it was said.
func (w world) directory() string {
	node, err := w.Read(orders.Path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s/%d", node.Data, node.Version)
}

// wantAfter fails unless the contender is in this state now, and in the other when the time is over.
func (w world) wantAfter(c *contender, now string, later time.Duration, then string) {
	w.Helper()
	synctest.Wait()
	if is := c.is(); is != now {
		w.Errorf("%s, not %s", is, now)
	}
	time.Sleep(later - 100*time.Millisecond)
	synctest.Wait()
	if is := c.is(); is != now {
		w.Errorf("%s %v before its time", is, 100*time.Millisecond)
	}
	time.Sleep(600*time.Millisecond + later/50)
	synctest.Wait()
	if is := c.is(); is != then {
		w.Errorf("%s when the time is over, not %s", is, then)
	}
}

func TestALostHoldsDelayIsKept(t *testing.T) {
	for _, ahead := range []recipes.Mode{recipes.Exclusive, recipes.Write} {
		behind := map[recipes.Mode][]recipes.Mode{recipes.Exclusive: {recipes.Exclusive}, recipes.Write: {recipes.Write, recipes.Read}}
		for _, mode := range behind[ahead] {
			for name, waits := range map[string]bool{"who waits": true, "who comes later": false} {
				t.Run(fmt.Sprint(ahead, "/", mode, "/", name), func(t *testing.T) {
					inBubble(t, func(w world) {
						holder := w.delayed(ahead, 20)
						if holder.state != "holding" || w.directory() != fmt.Sprintf("held:+%d:20000/1", holder.hold.Token) {
							w.Fatal(holder.state, w.directory())
						}
						var next *contender
						if waits {
							next = w.delayed(mode, 0)
						}
						holder.session.Expire()
						<-holder.over
						if !waits {
							time.Sleep(5 * time.Minute) // a container would have gone
							next = w.delayed(mode, 0)
						}
						w.wantAfter(next, "waiting", 20*time.Second, "holding")
						if w.directory() != fmt.Sprintf("free:+%d/2", next.hold.Token) {
							w.Error(w.directory())
						}
					})
				})
			}
		}
	}
}

// When the last of these came, nothing in the directory told of a delay.
func TestADelayIsKeptByWhoCameBeforeItsHoldWasGranted(t *testing.T) {
	inBubble(t, func(w world) {
		first, second, third := w.delayed(recipes.Exclusive, 0), w.delayed(recipes.Exclusive, 20), w.delayed(recipes.Exclusive, 0)
		first.leave()
		synctest.Wait()
		if second.is() != "holding" {
			w.Fatal(second.is())
		}
		second.session.Expire()
		w.wantAfter(third, "waiting", 20*time.Second, "holding")
	})
}

func TestWhoTakesOverFromOneThatWaitedForADelayCountsAnew(t *testing.T) {
	inBubble(t, func(w world) {
		holder, first, second := w.delayed(recipes.Exclusive, 20), w.delayed(recipes.Exclusive, 0), w.delayed(recipes.Exclusive, 5)
		holder.session.Expire()
		synctest.Wait()
		time.Sleep(19 * time.Second)
		first.leave()
		<-first.over
		w.wantAfter(second, "waiting", 20*time.Second, "holding")
		if w.directory() != fmt.Sprintf("held:+%d:5000/2", second.hold.Token) {
			w.Error(w.directory())
		}
	})
}

func TestWhoLetsGoByItselfLeavesNoDelay(t *testing.T) {
	inBubble(t, func(w world) {
		holder, next := w.delayed(recipes.Exclusive, 20), w.delayed(recipes.Exclusive, 20)
		holder.place.LetGo(w.living, w.NewReader())
		synctest.Wait()
		if next.is() != "holding" || w.directory() != fmt.Sprintf("held:+%d:20000/3", next.hold.Token) {
			w.Error(next.is(), w.directory())
		}
	})
}

func TestTheLocksDirectoryStaysWhoeverMadeIt(t *testing.T) {
	inBubbleWith(t, standin.Options{ReapInterval: time.Second}, func(w world) {
		before := w.delayed(recipes.Exclusive, 0) // makes a container
		before.leave()
		<-before.over
		holder := w.delayed(recipes.Exclusive, 60)
		holder.session.Expire()
		<-holder.over
		time.Sleep(10 * time.Second)
		if w.directory() != fmt.Sprintf("held:+%d:60000/2", holder.hold.Token) {
			w.Error(w.directory())
		}
	})
}

// What a hold in a container said is no sign that the directory stays.
func TestADelayIsKeptInADirectoryThatOthersHadMade(t *testing.T) {
	for after := time.Second; after < time.Minute; after += 10 * time.Second {
		inBubble(t, func(w world) {
			first := w.delayedInAContainer()
			first.place.LetGo(w.living, w.NewReader())
			first.leave()
			<-first.over
			second := w.delayed(recipes.Exclusive, 60)
			synctest.Wait()
			if second.is() != "holding" {
				w.Fatal(second.is())
			}
			time.Sleep(30 * time.Second)
			second.session.Expire()
			<-second.over
			time.Sleep(after) // the ensemble looks for containers once a minute
			next := w.delayed(recipes.Exclusive, 0)
			synctest.Wait()
			if is := next.is(); is == "holding" {
				w.Errorf("%s %v after the loss of a hold with a delay of a minute: %s", is, after, w.directory())
			}
		})
	}
}

// delayedInAContainer holds with a delay in a directory that another had made, and that holds no other place any more.
func (w world) delayedInAContainer() *contender {
	w.Helper()
	plain, holder := w.delayed(recipes.Exclusive, 0), w.delayed(recipes.Exclusive, 60)
	plain.leave()
	<-plain.over
	synctest.Wait()
	if holder.is() != "holding" {
		w.Fatal(holder.is())
	}
	return holder
}

func TestALostHoldsDelayGoesOnWhenItsDirectoryIsMadeToStay(t *testing.T) {
	inBubble(t, func(w world) {
		lost := w.delayedInAContainer()
		lost.session.Expire()
		<-lost.over
		next := w.delayed(recipes.Exclusive, 5)
		if said := fmt.Sprintf("held:+%d:60000/2", lost.hold.Token); w.directory() != said {
			w.Errorf("%s, not %s", w.directory(), said)
		}
		w.wantAfter(next, "waiting", time.Minute, "holding")
	})
}

// Each transaction may be lost before or after it is carried out, and so may be the answer.
// A replacement that comes late would else wipe what others have written into the new directory since.
func TestADirectoryThatIsMadeToStayHasALargerVersion(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		if err := store.MakeDirectory(w.living, orders.Path); err != nil {
			w.Fatal(err)
		}
		for range 3 {
			if _, err := store.Commit(w.living, recipes.Set(orders.Path, []byte("held:5:1000"), -1)); err != nil {
				w.Fatal(err)
			}
		}
		before, err := store.Get(w.living, orders.Path)
		if err != nil {
			w.Fatal(err)
		}
		if err := orders.Keep(w.living, store); err != nil {
			w.Fatal(err)
		}
		after, err := store.Get(w.living, orders.Path)
		if err != nil || string(after.Data) != "held:+5:1000" || after.Version <= before.Version {
			w.Errorf("%s in version %d after %d, %v", after.Data, after.Version, before.Version, err)
		}
	})
}

func TestADelayIsKeptWhateverIsLost(t *testing.T) {
	for lost := range 12 {
		for _, carriedOut := range []bool{true, false} {
			inBubble(t, func(w world) {
				reader := w.NewReader()
				count := 0
				lose := func(o standin.Operation) error {
					if o.Name != "Commit" {
						return nil
					}
					if count++; count == lost+1 {
						return recipes.ErrOutcomeUnknown
					}
					return nil
				}
				if carriedOut {
					reader.After(lose)
				} else {
					reader.Before(lose)
				}
				lock := orders
				lock.Delay = 10 * time.Second
				tokens := map[int64]bool{}
				take := func() (*recipes.Place, *standin.Session, time.Duration) {
					session, began := w.session(), time.Now()
					if err := lock.Keep(w.living, reader); err != nil {
						w.Fatal(err)
					}
					place, err := lock.Join(w.living, session, recipes.Exclusive, recipes.About{})
					if err != nil || place.GrantAtOnce() != nil {
						w.Fatal("joined with", err, "or granted at once")
					}
					if turn, err := place.Look(w.living); err != nil || !turn.First {
						w.Fatal(turn, err)
					}
					left, err := place.OutwaitDelay(w.living, reader)
					for err == nil && left > 0 {
						time.Sleep(left)
						left, err = place.OutwaitDelay(w.living, reader)
					}
					if err != nil {
						w.Fatal(err)
					}
					hold, err := place.Grant(w.living)
					if err != nil || w.directory()[:len(fmt.Sprint("held:+", hold.Token))] != fmt.Sprint("held:+", hold.Token) || tokens[hold.Token] {
						w.Fatal(hold, err, w.directory())
					}
					tokens[hold.Token] = true
					return place, session, time.Since(began)
				}
				_, session, _ := take()
				session.Expire()
				place, session, took := take()
				if took < lock.Delay {
					w.Errorf("loss %d: granted after %v", lost, took)
				}
				place.LetGo(w.living, reader)
				place.Leave(w.living)
				session.Close(w.living)
				if _, _, took := take(); took > 0 && took < lock.Delay { // a lost answer may cost a delay, and spare none
					w.Errorf("loss %d: granted after %v", lost, took)
				}
			})
		}
	}
}

func TestALateWordOfAnEarlierHoldIsRefused(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.delayed(recipes.Exclusive, 20)
		late := recipes.Guarded(w.NewReader(), []recipes.Guard{{Path: orders.Path + "/" + w.Names(orders.Path)[0]}})
		holder.leave()
		<-holder.over
		if _, err := late.Commit(w.living, recipes.Set(orders.Path, nil, -1)); !errors.Is(err, recipes.ErrGuardLost) {
			w.Error(err)
		}
	})
}

func TestWhatOthersWroteIntoTheDirectoryIsNoDelay(t *testing.T) {
	for _, data := range []string{"x", "held:", "held:7", "held:x:20", "held:7:x", "held:7:-1", "held:7:0", "free:7:20", "free:", "10.0.0.1"} {
		inBubble(t, func(w world) {
			if _, err := w.Create("/locks", nil, embedded.Persistent, 0); err != nil {
				w.Fatal(err)
			}
			if _, err := w.Create(orders.Path, []byte(data), embedded.Persistent, 0); err != nil {
				w.Fatal(err)
			}
			if c := w.delayed(recipes.Exclusive, 0); c.state != "holding" {
				w.Errorf("%s: %s", data, c.state)
			}
		})
	}
}

func TestALongDelayThatOthersWroteIsTheLongestThereIs(t *testing.T) {
	inBubble(t, func(w world) {
		for _, path := range []string{"/locks", orders.Path} {
			if _, err := w.Create(path, []byte("held:7:99999999"), embedded.Persistent, 0); err != nil {
				w.Fatal(err)
			}
		}
		w.wantAfter(w.delayed(recipes.Exclusive, 0), "waiting", recipes.MaxLockDelay, "holding")
	})
}
