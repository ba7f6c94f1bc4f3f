package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// timeouts are those that the documents tell the validity of.
var timeouts = []time.Duration{4 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second}

// usual is a configuration with the defaults that validity is computed from.
func usual(e *simulation.Ensemble, timeout time.Duration) zookeeper.Config {
	began := time.Now()
	return zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: timeout, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Dial: e.Dialer(0), Clock: func() time.Duration { return time.Since(began) },
	}
}

// eachTimeout plays a test for each timeout, with twenty sessions of it.
func eachTimeout(t *testing.T, test func(*testing.T, *simulation.Ensemble, zookeeper.Validity, []*zookeeper.Session)) {
	t.Helper()
	for _, timeout := range timeouts {
		t.Run(timeout.String(), func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				config := usual(e, timeout)
				c, err := zookeeper.New(config)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				var sessions []*zookeeper.Session
				for range 20 {
					sessions = append(sessions, w.open(t, c))
				}
				time.Sleep(timeout)
				test(t, e, config.Validity(timeout), sessions)
				for _, s := range sessions {
					w.close(s)
				}
			})
		})
	}
}

func TestValidityInGoodTimesIsWhatIsSaidOfIt(t *testing.T) {
	const answering = 10 * time.Millisecond // a commit takes that, and is not counted
	eachTimeout(t, func(t *testing.T, _ *simulation.Ensemble, said zookeeper.Validity, sessions []*zookeeper.Session) {
		most, least := time.Duration(0), time.Hour
		for range 20_000 {
			time.Sleep(5 * time.Millisecond)
			for _, s := range sessions {
				valid := s.ValidFor()
				most, least = max(most, valid), min(least, valid)
			}
		}
		t.Logf("from %v to %v, said: from %v to %v", least, most, said.Least, said.Most)
		if most > said.Most || least < said.Least-2*answering {
			t.Errorf("valid for %v to %v, and said to be for %v to %v", least, most, said.Least, said.Most)
		}
		if slack := (said.Most - said.Least) / 4; most < said.Most-slack || least > said.Least+slack {
			t.Errorf("valid for %v to %v, said to be for %v to %v, which is far off", least, most, said.Least, said.Most)
		}
	})
}

func TestALossOfContactThatIsShortEnoughLosesNothing(t *testing.T) {
	eachTimeout(t, func(t *testing.T, e *simulation.Ensemble, said zookeeper.Validity, sessions []*zookeeper.Session) {
		dice := rand.New(rand.NewPCG(1, 2))
		for range 40 {
			time.Sleep(10*time.Second + upTo(dice, 5*time.Second))
			loseContact(e, said.Silence)
		}
		time.Sleep(time.Minute)
		for _, s := range sessions {
			if s.Err() != nil {
				t.Errorf("lost: %v", s.Err())
			}
		}
	})
}

func TestALossOfContactAsLongAsTheValidityLosesEverything(t *testing.T) {
	eachTimeout(t, func(t *testing.T, e *simulation.Ensemble, said zookeeper.Validity, sessions []*zookeeper.Session) {
		loseContact(e, said.Most)
		for _, s := range sessions {
			if s.Err() == nil {
				t.Errorf("valid for another %v", s.ValidFor())
			}
		}
	})
}

func loseContact(e *simulation.Ensemble, duration time.Duration) {
	for server := range e.Addresses() {
		e.CutHost(0, server, true, true)
	}
	time.Sleep(duration)
	for server := range e.Addresses() {
		e.MendHost(0, server)
	}
}
