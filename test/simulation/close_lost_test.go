package simulation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// cutOff holds back all between a host and the ensemble.
func cutOff(e *simulation.Ensemble) {
	for server := range 3 {
		e.CutHost(0, server, true, true)
	}
}

func reconnect(e *simulation.Ensemble) {
	for server := range 3 {
		e.MendHost(0, server)
	}
}

// lose has a session lost in a hole, and returns when contact is back.
func lose(t *testing.T, e *simulation.Ensemble, s *zookeeper.Session, phase int) (back time.Time) {
	t.Helper()
	time.Sleep(6*time.Second + time.Duration(phase)*97*time.Millisecond)
	cutOff(e)
	const hole = 3 * time.Second
	back = time.Now().Add(hole)
	time.AfterFunc(hole, func() { reconnect(e) })
	select {
	case <-s.Done():
	case <-time.After(hole):
		t.Error("not lost")
	}
	return back
}

// Packets of a lost session that arrive late give it another timeout at the ensemble, in which nobody else is granted what it owned.
func TestALostSessionIsClosedAsSoonAsContactIsBack(t *testing.T) {
	longest := time.Duration(0)
	for phase := range 10 {
		inBubble(t, simulation.Options{Seed: uint64(phase)}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			client := newClient(t, e, 0, short)
			defer client.Close()
			s := w.open(t, client)
			if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); err != nil {
				t.Fatal(err)
			}
			back := lose(t, e, s, phase)
			s.Close(context.Background())
			time.Sleep(2 * short)
			end, ended := e.EndOf(s.ID())
			if !ended || len(e.Names("/locks/orders")) > 0 {
				t.Fatal("it is alive")
			}
			longest = max(longest, end.Sub(back))
		})
	}
	t.Logf("closed within %v of contact", longest)
	if longest > time.Second {
		t.Errorf("with contact, what was lost stood for %v", longest)
	}
}

// A place whose making was not answered yet belongs to the session, and stands in the way of others when its caller has gone.
func TestASessionThatIsClosedWithoutContactIsClosedAsSoonAsItIsBack(t *testing.T) {
	for name, dead := range map[string]bool{"silent": false, "disconnected": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client := newClient(t, e, 0, 30*time.Second)
				defer client.Close()
				s := w.open(t, client)
				time.Sleep(5 * time.Second)
				for server := range 3 {
					e.CutHost(0, server, false, true)
				}
				var joining sync.WaitGroup
				joining.Go(func() {
					if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); !errors.Is(err, recipes.ErrSessionEnded) {
						t.Error(err)
					}
				})
				time.Sleep(time.Second)
				cutOff(e)
				if dead {
					time.Sleep(5 * time.Second)
				}
				asked := time.Now()
				w.close(s)
				if took := time.Since(asked); took > 3*time.Second {
					t.Errorf("closed after %v", took)
				}
				joining.Wait()
				time.Sleep(time.Second)
				reconnect(e)
				back := time.Now()
				time.Sleep(20 * time.Second)
				if end, ended := e.EndOf(s.ID()); !ended || end.Sub(back) > 2*time.Second {
					t.Errorf("closed (%t) %v after contact was back", ended, end.Sub(back))
				}
				if names := e.Names("/locks/orders"); len(names) > 0 {
					t.Errorf("left behind: %q", names)
				}
			})
		})
	}
}

// Others may take what a lost session owned for theirs when it is closed, and streams that told of it must have ended before.
func TestALostSessionIsNotClosedBeforeItsOwnerSaysSo(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		client := newClient(t, e, 0, short)
		defer client.Close()
		s := w.open(t, client)
		back := lose(t, e, s, 0)
		time.Sleep(time.Until(back) + 2*time.Second)
		if end, ended := e.EndOf(s.ID()); ended {
			t.Errorf("closed %v after contact was back", end.Sub(back))
		}
		s.Close(context.Background())
		time.Sleep(time.Second)
		if _, ended := e.EndOf(s.ID()); !ended {
			t.Error("a second after its owner has said so, it is alive")
		}
	})
}

// A session is taken for over sooner than the ensemble can expire it, since clocks are not right and timers are late, also those of
// whoever counts on what it was told. That time is theirs, though contact is there.
func TestALostSessionIsNotClosedSoonerThanItCouldExpire(t *testing.T) {
	const timeout = 15 * time.Second
	const reserve = timeout/50 + timeout/20
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		by := &refuser{}
		client := refusing(t, e, by)
		defer client.Close()
		s := w.open(t, client)
		time.Sleep(10 * time.Second)
		by.refuse(kindMulti, codeThrottled, -1) // so nothing is proved any more
		<-s.Done()
		lost := time.Now()
		s.Close(context.Background())
		time.Sleep(5 * time.Second)
		end, ended := e.EndOf(s.ID())
		if kept := end.Sub(lost); !ended || kept < reserve || kept > reserve+time.Second {
			t.Errorf("closed (%t) %v after it was lost, where it could expire after %v", ended, kept, reserve)
		}
	})
}

// Whoever comes back to a session to close it makes it last, if the closing is lost. It is lost with a server that hands the handshake on to
// its leader and hears no answer to it: that may give the session one timeout more, and no server is asked twice.
func TestNoLostSessionLivesLongerForBeingClosed(t *testing.T) {
	for _, again := range []struct {
		name string
		cut  func(*simulation.Ensemble)
		mend func(*simulation.Ensemble)
		one  bool          // server that the client knows
		more time.Duration // that the session may live
	}{
		{"all is cut again", cutOff, reconnect, false, 0},
		{"no answer comes", func(e *simulation.Ensemble) {
			for server := range 3 {
				e.CutHost(0, server, false, true)
			}
		}, reconnect, false, 0},
		{"a follower is cut off from the others", func(e *simulation.Ensemble) { e.Isolate(follower(e)) }, (*simulation.Ensemble).Heal, false, 0},
		{
			"the only server hears nothing of its leader",
			func(e *simulation.Ensemble) { e.Cut(e.Leader(), follower(e)) }, (*simulation.Ensemble).Heal, true, short,
		},
		{"the leader is killed", func(e *simulation.Ensemble) { e.Kill(e.Leader()) }, (*simulation.Ensemble).Heal, false, 0},
	} {
		t.Run(again.name, func(t *testing.T) {
			for phase := range share(25) {
				lives := func(closed bool) (lived time.Duration) {
					inBubble(t, simulation.Options{Seed: phase}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
						servers := e.Addresses()
						if again.one {
							servers = servers[follower(e):][:1]
						}
						client := newClient(t, e, 0, short, servers...)
						s := w.open(t, client)
						back := lose(t, e, s, 0)
						if closed {
							s.Close(context.Background())
						}
						time.Sleep(time.Until(back) + time.Microsecond + time.Duration(phase)*20*time.Millisecond) // when what was held has come
						again.cut(e)
						time.Sleep(6 * time.Second)
						again.mend(e)
						time.Sleep(5 * short)
						end, ended := e.EndOf(s.ID())
						if !ended {
							t.Error("it is alive")
						}
						lived = end.Sub(back)
						client.Close()
					})
					return lived
				}
				const tick = 2 * time.Second // by which sessions end, and by which each of the two schedules may differ from itself
				if with, without := lives(true), lives(false); with > without+2*tick+again.more+100*time.Millisecond {
					t.Errorf("phase %d: %v, where it would have been %v", phase, with, without)
				}
			}
		})
	}
}
