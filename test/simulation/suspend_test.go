package simulation_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A laptop is a machine whose clock has gone on while it was suspended, and whose timers have not.
type laptop struct {
	began  time.Time
	asleep atomic.Int64
}

func (l *laptop) suspend(d time.Duration) { l.asleep.Add(int64(d)) }

func (l *laptop) clock() time.Duration {
	return time.Since(l.began) + time.Duration(l.asleep.Load())
}

func (l *laptop) client(t *testing.T, e *simulation.Ensemble) *zookeeper.Client {
	t.Helper()
	l.began = time.Now()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Dial: e.Dialer(0), Clock: l.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASessionIsLostOnAMachineThatWasSuspended(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		machine := &laptop{}
		c := machine.client(t, e)
		defer c.Close()
		s := w.open(t, c)
		time.Sleep(10 * time.Second)
		machine.suspend(5 * time.Second)
		if valid := s.ValidFor(); valid <= 0 || valid > 10*time.Second {
			t.Errorf("after 5 s: valid for %v", valid)
		}
		time.Sleep(10 * time.Second)
		if s.Err() != nil {
			t.Errorf("after 5 s: %v", s.Err())
		}
		machine.suspend(25 * time.Second)
		if valid := s.ValidFor(); valid > 0 {
			t.Errorf("after 25 s: valid for %v", valid)
		}
		time.Sleep(atWaking)
		if !errors.Is(s.Err(), recipes.ErrSessionEnded) {
			t.Errorf("after 25 s: %v", s.Err())
		}
		w.close(s)
	})
}

// atWaking is how long it takes at most until a machine that wakes has ended what is over.
const atWaking = 250 * time.Millisecond

// Who waits for the session's end, as the streams of its locks do, must not believe in it for longer than who asks.
func TestWhatIsOverEndsAtOnceWhenAMachineWakes(t *testing.T) {
	for _, network := range []string{"up at once", "up later"} {
		longest := time.Duration(0)
		for phase := range 12 { // of the heartbeat, of which there is one every two seconds
			inBubble(t, simulation.Options{Seed: uint64(phase)}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				machine := &laptop{}
				c := machine.client(t, e)
				defer c.Close()
				s := w.open(t, c)
				time.Sleep(10*time.Second + time.Duration(phase)*180*time.Millisecond)
				for server := range 3 {
					e.CutHost(0, server, network == "up later", network == "up later")
				}
				machine.suspend(time.Minute)
				woke := time.Now()
				<-s.Done()
				longest = max(longest, time.Since(woke))
				for server := range 3 {
					e.MendHost(0, server)
				}
			})
		}
		t.Logf("network %s: over for 45 s when it wakes, ended %v later", network, longest)
		if longest > atWaking {
			t.Errorf("network %s: a session lives on for %v after its machine has woken", network, longest)
		}
	}
}
