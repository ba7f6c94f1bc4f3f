package simulation_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// These show that what was found on real ensembles arises in the simulation, to a client that believes its connection. Beside
// it there is a session of ours, which inBubble keeps an eye on.

const short = 4 * time.Second // a session timeout shorter than syncLimit ticks

// A believer is a client that takes itself for alive because it is answered.
type believer struct {
	*zk.Conn
	answered time.Time // the newest answer
}

// believe connects a believer to one server and has it make a node of its own.
func believe(t *testing.T, e *simulation.Ensemble, server int) *believer {
	t.Helper()
	conn, _, err := zk.Connect([]string{e.Addresses()[server]}, short, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithDialer(plainDialer(e, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Create("/believer", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	return &believer{Conn: conn, answered: time.Now()}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// read reads the believer's node again and again, until it is not there, or not answered, or until then.
func (b *believer) read(until time.Time) {
	for time.Now().Before(until) {
		if there, _, err := b.Exists("/believer"); err != nil || !there {
			return
		}
		b.answered = time.Now()
		time.Sleep(20 * time.Millisecond)
	}
}

func follower(e *simulation.Ensemble) int { return (e.Leader() + 1) % 3 }

func TestAFollowerThatIsCutOffAnswersWhileTheLeaderExpiresItsSessions(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		server := follower(e)
		naive := believe(t, e, server)
		defer naive.Close()
		client := newClient(t, e, 0, short, e.Addresses()[server])
		defer client.Close()
		session := w.open(t, client)

		cut := time.Now()
		e.Isolate(server)
		naive.read(cut.Add(time.Minute))
		expired, _ := e.EndOf(naive.SessionID())
		believed := naive.answered.Sub(expired)
		t.Logf("expired %v after the cut, and its client was answered for %v more", expired.Sub(cut), believed)
		const longest = 10*time.Second + 50*time.Millisecond // the leader's last word may be under way when the links are cut
		if naive.answered.Sub(cut) > longest || believed < 3*time.Second || believed > 6*time.Second {
			t.Error("on a real ensemble it was 4.8 to 5.8 s, and 10 s after the cut it was over")
		}
		if session.Err() == nil || w.ends != 1 {
			t.Errorf("our session: %v; expired: %d", session.Err(), w.ends)
		}
		e.Rejoin(server)
		e.Await()
	})
}

func TestAFollowerThatDiesTakesItsReportsWithIt(t *testing.T) {
	crashes := share(60)
	early := 0
	for seed := range crashes {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			server := follower(e)
			naive := believe(t, e, server)
			defer naive.Close()
			client := newClient(t, e, 0, short, e.Addresses()[server])
			defer client.Close()
			session := w.open(t, client)

			naive.read(time.Now().Add(5*time.Second + time.Duration(seed)*67*time.Millisecond))
			e.Kill(server)
			time.Sleep(3 * short)
			expired, ended := e.EndOf(naive.SessionID())
			lived := expired.Sub(naive.answered)
			if !ended || lived < 3*time.Second || lived > 6*time.Second {
				t.Errorf("seed %d: expired (%v) %v after the last answer", seed, ended, lived)
			}
			if lived < short {
				early++
			}
			if session.Err() == nil || w.ends != 1 {
				t.Errorf("our session: %v; expired: %d", session.Err(), w.ends)
			}
			e.Start(server)
			e.Await()
		})
	}
	t.Logf("in %d of %d crashes expired sooner than the timeout after the last answer", early, crashes)
	if crashes >= 60 && early == 0 {
		t.Error("on a real ensemble it was 2 of 14")
	}
}

func TestALeaderThatWasFrozenExpiresEverybodyAsItThaws(t *testing.T) {
	for _, c := range []struct {
		frozen time.Duration
		lost   bool
	}{{3 * time.Second, false}, {6 * time.Second, true}, {9 * time.Second, true}} {
		inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			leader, server := e.Leader(), follower(e)
			naive := believe(t, e, server)
			defer naive.Close()
			client := newClient(t, e, 0, short, e.Addresses()[server])
			defer client.Close()
			session := w.open(t, client)
			naive.read(time.Now().Add(2 * time.Second))

			e.Freeze(leader)
			naive.read(time.Now().Add(c.frozen))
			reading := time.Since(naive.answered) < 100*time.Millisecond
			thawed := time.Now()
			e.Thaw(leader)
			time.Sleep(time.Second)
			expired, ended := e.EndOf(naive.SessionID())
			if ended != c.lost || !reading || ended && expired.Sub(thawed) > 100*time.Millisecond {
				t.Errorf("frozen for %v: read to the end: %v, expired: %v, %v after", c.frozen, reading, ended, expired.Sub(thawed))
			}
			if c.lost && (session.Err() == nil || w.ends != 1) {
				t.Errorf("frozen for %v: our session: %v; expired: %d", c.frozen, session.Err(), w.ends)
			}
		})
	}
}
