package recipes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// Whoever's end is asked for may have counted on what is its own until just before that stood in its node, so the time that it is left
// begins then.

// slow is a reader whose first write to the node takes three seconds.
func (w world) slow(path string) *standin.Reader {
	reader := w.NewReader()
	reader.Before(func(operation standin.Operation) error {
		if operation.Path == path && operation.Name == "Commit" {
			reader.Before(nil)
			<-time.After(3 * time.Second)
		}
		return nil
	})
	return reader
}

// wantRemoved fails unless it takes that long until somebody is removed by force.
func (w world) wantRemoved(took time.Duration, end func() (forced bool, err error)) {
	w.Helper()
	began := time.Now()
	if forced, err := end(); !forced || err != nil || time.Since(began) != took {
		w.Errorf("forced: %v, %v, after %v and not %v", forced, err, time.Since(began), took)
	}
}

// deaf makes a place of a session of ours whose sidecar hears nothing.
func (w world) deaf() (path string, token int64) {
	w.Helper()
	path = w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, `{"sidekeeper":1}`)
	node, err := w.Read(path)
	if err != nil {
		w.Fatal(err)
	}
	return path, node.Czxid
}

func (w world) breaking(reader *standin.Reader, token int64) func() (bool, error) {
	return func() (bool, error) {
		return orders.Break(w.Context(), reader, token, "ann", "stuck", after(forceAfter))
	}
}

func (w world) evicting(reader *standin.Reader) func() (bool, error) {
	return func() (bool, error) {
		return shop.Evict(w.Context(), reader, "a", recipes.Eviction{By: "uid:7", ForceAfter: after(forceAfter)})
	}
}

func TestTheTimeThatIsLeftBeginsWhenItIsAskedFor(t *testing.T) {
	inBubble(t, func(w world) {
		path, token := w.deaf()
		w.wantRemoved(3*time.Second+forceAfter, w.breaking(w.slow(path), token))
		w.enlist("a")
		w.wantRemoved(3*time.Second+forceAfter, w.evicting(w.slow(shop.Path+"/a")))
		w.enlist("a")
		w.enlist("b")
		began := time.Now()
		forced, err := shop.Dissolve(w.Context(), w.slow(shop.Path+"/b"), recipes.Eviction{ForceAfter: after(forceAfter)})
		if took := time.Since(began); forced != 2 || err != nil || took != 3*time.Second+forceAfter {
			w.Errorf("%d forced after %v, %v", forced, took, err)
		}
	})
}

func TestTheTimeThatIsLeftBeginsAnewWhenWhatWasAskedIsOverwritten(t *testing.T) {
	for _, c := range []struct {
		name, over string
	}{
		{"as Curator asks", "__REVOKE__"},
		{"as a sidecar says of itself", `{"sidekeeper":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				path, token := w.deaf()
				time.AfterFunc(forceAfter/2, func() { w.write(path, c.over) })
				w.wantRemoved(forceAfter*3/2, w.breaking(w.NewReader(), token))
			})
		})
	}
	t.Run("of a member", func(t *testing.T) {
		inBubble(t, func(w world) {
			w.enlist("a")
			time.AfterFunc(forceAfter/2, func() { w.write(shop.Path+"/a", `{"sidekeeper":1}`) })
			w.wantRemoved(forceAfter*3/2, w.evicting(w.NewReader()))
		})
	})
	t.Run("twice before it is seen", func(t *testing.T) {
		inBubble(t, func(w world) {
			path, token := w.deaf()
			time.AfterFunc(forceAfter/2, func() {
				node, err := w.Read(path)
				if err != nil {
					w.Error(err)
				}
				w.write(path, "__REVOKE__")
				w.write(path, string(node.Data))
			})
			w.wantRemoved(forceAfter*3/2, w.breaking(w.NewReader(), token))
		})
	})
}

// late is a reader that hears of nothing after this time, but what it asks for.
func (w world) late(d time.Duration) *standin.Reader {
	reader := w.NewReader()
	time.AfterFunc(d, reader.Lag)
	return reader
}

func TestNobodyIsRemovedBeforeALastLookAtWhatWasAsked(t *testing.T) {
	inBubble(t, func(w world) {
		path, token := w.deaf()
		time.AfterFunc(forceAfter-time.Millisecond, func() { w.write(path, "__REVOKE__") })
		w.wantRemoved(2*forceAfter, w.breaking(w.late(forceAfter/2), token))

		w.enlist("a")
		time.AfterFunc(forceAfter-time.Millisecond, func() { w.write(shop.Path+"/a", `{"sidekeeper":1}`) })
		w.wantRemoved(2*forceAfter, w.evicting(w.late(forceAfter/2)))
	})
}

func TestTheTimeThatIsLeftGoesOnWhileItIsAskedForAllTheTime(t *testing.T) {
	inBubble(t, func(w world) {
		_, token := w.deaf()
		time.AfterFunc(forceAfter/2, func() { w.revoke(new(time.Minute)) })
		w.wantRemoved(forceAfter, w.breaking(w.NewReader(), token))

		path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, "10.0.0.1")
		node, err := w.Read(path)
		if err != nil {
			w.Fatal(err)
		}
		time.AfterFunc(forceAfter/2, func() { w.write(path, "10.0.0.2") })
		w.wantRemoved(forceAfter, w.breaking(w.NewReader(), node.Czxid)) // one that is not ours says nothing that counts

		m := w.enlist("a")
		time.AfterFunc(forceAfter/2, func() {
			if err := m.Update(w.living, map[string]string{"port": "2"}); err != nil {
				w.Error(err)
			}
		})
		w.wantRemoved(forceAfter, w.evicting(w.NewReader()))
	})
}

func TestAnUpdateLeavesWhatIsAskedOfAMember(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		ctx, cancel := context.WithCancel(w.living)
		w.evictThrough(ctx, w.NewReader(), "a")
		cancel() // and asks no more
		for _, port := range []string{"2", "3"} {
			if err := m.Update(w.living, map[string]string{"port": port}); err != nil {
				w.Fatal(err)
			}
		}
		node, err := w.Read(shop.Path + "/a")
		if got := string(node.Data); err != nil || !strings.Contains(got, `"port":"3"`) || !strings.Contains(got, `"reason":"restarted"`) {
			w.Errorf("%s, %v", got, err)
		}
		if got := w.stands(m); got != "replaced by uid:7: restarted" {
			w.Errorf("it sees %s", got)
		}
	})
}

func TestAHolderWhoseTimeoutIsOverwrittenTellsItAgain(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.OpenSession(time.Minute)
		place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{Owner: "a", Timeout: time.Minute})
		if err != nil {
			w.Fatal(err)
		}
		hold, err := place.Grant(w.living)
		if err != nil {
			w.Fatal(err)
		}
		names, err := w.NewReader().Children(w.living, orders.Path)
		if err != nil {
			w.Fatal(err)
		}
		path := orders.Path + "/" + names[0]
		w.write(path, "__REVOKE__")
		if asked, _, err := hold.Look(w.living); err != nil || !asked.Asked {
			w.Fatalf("%+v, %v", asked, err)
		}
		short := recipes.ForceAfter{Timeout: 15 * time.Second, Tick: 2 * time.Second}
		w.wantRemoved(time.Minute+2*time.Second, func() (bool, error) {
			return orders.Break(w.Context(), w.NewReader(), hold.Token, "ann", "", short)
		})
	})
}

// What is not in our form says no more than that somebody wants the lock or the name: whoever has been asked to go says its own again, and is
// asked anew, and for as long as that takes it is not taken for one that was asked.
func TestWhoeverIsOverwrittenWithForeignTextIsAskedAnew(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.OpenSession(time.Minute)
		place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{Owner: "a", Timeout: time.Minute})
		if err != nil {
			w.Fatal(err)
		}
		hold, err := place.Grant(w.living)
		if err != nil {
			w.Fatal(err)
		}
		names, err := w.NewReader().Children(w.living, orders.Path)
		if err != nil {
			w.Fatal(err)
		}
		w.write(orders.Path+"/"+names[0], "10.0.0.1")
		told := make(chan bool, 1)
		time.AfterFunc(time.Second, func() { // its sidecar was stopped for a second, and is well from then on
			for {
				asked, changed, err := hold.Look(w.living)
				if err != nil || asked.Break {
					told <- asked.Break
					return
				}
				<-changed.Done()
			}
		})
		brief := recipes.ForceAfter{Timeout: 15 * time.Second, Tick: 2 * time.Second}
		w.wantRemoved(time.Minute+3*time.Second, func() (bool, error) {
			return orders.Break(w.Context(), w.NewReader(), hold.Token, "ann", "", brief)
		})
		if !<-told {
			w.Error("its sidecar was never told of the break")
		}
	})
	for name, after := range map[string]time.Duration{"early": forceAfter / 2, "just before the end": forceAfter - time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				w.enlist("a")
				time.AfterFunc(after, func() { w.write(shop.Path+"/a", "somebody else's") })
				w.wantRemoved(after+forceAfter, w.evicting(w.NewReader()))
			})
		})
	}
}
