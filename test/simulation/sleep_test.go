package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

var bed = recipes.Lock{Path: "/locks/bed"}

// newSleeper is a session on which nothing stands, and which sleeps.
func newSleeper(t *testing.T, e *simulation.Ensemble, w *witness, servers ...string) (*zookeeper.Client, *zookeeper.Session) {
	t.Helper()
	client, s := newIdler(t, e, w, servers...)
	time.Sleep(2 * short)
	if !s.Asleep() || s.ValidFor() > 0 || s.Err() != nil {
		t.Fatalf("asleep: %v, valid for %v, %v", s.Asleep(), s.ValidFor(), s.Err())
	}
	return client, s
}

// newIdler is a session on which nothing stands.
func newIdler(t *testing.T, e *simulation.Ensemble, w *witness, servers ...string) (*zookeeper.Client, *zookeeper.Session) {
	t.Helper()
	return newIdlerOf(t, e, w, short, servers...)
}

func newIdlerOf(
	t *testing.T, e *simulation.Ensemble, w *witness, timeout time.Duration, servers ...string,
) (*zookeeper.Client, *zookeeper.Session) {
	t.Helper()
	all := len(servers) == 0
	if all {
		servers = e.Addresses()
	}
	began := time.Now()
	client, err := zookeeper.New(zookeeper.Config{
		Servers: servers, SessionTimeout: timeout, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Directories: []string{"/locks"}, FollowServers: all, Sleep: true,
		Dial: e.Dialer(0), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CatchUp(t.Context()); err != nil { // so that the session is at the server of the sidecar's own
		t.Fatal(err)
	}
	return client, w.open(t, client)
}

func inBed(t *testing.T, test func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session)) {
	t.Helper()
	for seed := range share(10) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			client, s := newSleeper(t, e, w)
			defer client.Close()
			defer w.close(s)
			time.Sleep(time.Duration(seed) * 217 * time.Millisecond)
			test(t, e, client, s)
		})
	}
}

// wantAwake fails unless somebody who counts on the session is told soon that he can.
func wantAwake(t *testing.T, s *zookeeper.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Prove(ctx); err != nil || s.ValidFor() <= 0 || s.Asleep() {
		t.Errorf("%v: asleep: %v, valid for %v, %v", err, s.Asleep(), s.ValidFor(), s.Err())
	}
}

// commitRate is how many transactions are committed a second.
func commitRate(e *simulation.Ensemble) float64 {
	const while = 5 * time.Minute
	before := e.Backup()
	time.Sleep(while)
	return float64(e.Backup()-before) / while.Seconds()
}

func TestASessionThatSleepsCommitsNothing(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		if rate := commitRate(e); rate > 1.2/(0.9*(short*2/15).Seconds()) { // the reader's
			t.Errorf("%v transactions a second", rate)
		}
		wantAwake(t, s)
		if _, err := bed.Join(t.Context(), s, recipes.Exclusive, recipes.About{}); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * short)
		if s.ValidFor() <= 0 {
			t.Errorf("not valid while something stands on it: %v", s.Err())
		}
	})
}

// Of the sessions that sleep at a server, one at a time finds out whether it reaches the leader. No session does where the sidecar's own
// session does.
func TestSessionsThatSleepAtOneServerFindOutTogetherThatItReachesTheLeader(t *testing.T) {
	for seed := range share(6) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			const timeout = 15 * time.Second
			client, s := newIdlerOf(t, e, w, timeout)
			defer client.Close()
			sleepers := []*zookeeper.Session{s}
			defer func() {
				for _, s := range sleepers {
					w.close(s)
				}
			}()
			time.Sleep(timeout) // the list of servers is known
			for range 30 {
				sleepers = append(sleepers, w.open(t, client))
			}
			time.Sleep(2 * timeout)
			if rate := commitRate(e); rate > 0.56 { // the reader's
				t.Errorf("%v transactions a second", rate)
			}
			e.Reset(0, e.ServerOf(s.ID())) // all go to servers of their own choice
			time.Sleep(2 * timeout)
			if rate := commitRate(e); rate > 0.56+2.2/3.9 {
				t.Errorf("%v transactions a second for two servers", rate)
			}
			for _, s := range sleepers {
				if s.Err() != nil || !s.Asleep() {
					t.Errorf("asleep: %v, %v", s.Asleep(), s.Err())
				}
			}
		})
	}
}

// What wakes a session takes two transactions, one after the other.
func TestASessionThatSleepsIsProvedByTwoTransactionsBeforeAGrant(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		before := e.Backup()
		place, err := bed.Join(t.Context(), s, recipes.Exclusive, recipes.About{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := acquire(t.Context(), place); err != nil || s.ValidFor() <= 0 {
			t.Fatalf("%v, valid for %v", err, s.ValidFor())
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if made := e.Backup() - before; made < 2 {
			t.Errorf("%d transactions", made)
		}
	})
}

// A lease on which nothing stands outlives an ensemble without a leader, which ends nothing.
func TestASessionThatSleepsIsNotLostWithoutALeader(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		e.Kill(0)
		e.Kill(1)
		time.Sleep(time.Minute)
		if s.Err() != nil || s.ValidFor() > 0 {
			t.Errorf("%v, valid for %v", s.Err(), s.ValidFor())
		}
		e.Start(0)
		e.Start(1)
		e.Await()
		time.Sleep(short)
		if s.Err() != nil {
			t.Error(s.Err())
		}
		wantAwake(t, s)
	})
}

func TestASessionThatSleepsLearnsThatItWasEndedWhenContactIsBack(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		cutOff(e)
		time.Sleep(3 * short)
		if _, ended := e.EndOf(s.ID()); !ended || s.Err() != nil {
			t.Errorf("ended: %v, %v", ended, s.Err())
		}
		reconnect(e)
		time.Sleep(short)
		if s.Err() == nil {
			t.Error("it does not know that it was ended")
		}
	})
}

// What is made on a session while it sleeps is proved in time, or it is lost.
func TestASessionThatIsWokenInVainIsLost(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		cutOff(e)
		time.Sleep(short)
		began := time.Now()
		if _, err := bed.Join(t.Context(), s, recipes.Exclusive, recipes.About{}); err == nil {
			t.Error("made")
		}
		if took := time.Since(began); s.Err() == nil || took > short {
			t.Errorf("%v after %v", s.Err(), took)
		}
	})
}

// Who asks for the validity again and again, with contact or without, has it proved.
func TestASessionDoesNotSleepWhileSomebodyAsks(t *testing.T) {
	inBed(t, func(t *testing.T, e *simulation.Ensemble, client *zookeeper.Client, s *zookeeper.Session) {
		for range 100 {
			wantAwake(t, s)
			time.Sleep(short / 2)
			if s.ValidFor() <= 0 {
				t.Fatalf("valid for %v, %v", s.ValidFor(), s.Err())
			}
		}
	})
}

// A server that is cut off from its leader goes on answering reads, which prove nothing to whoever counts on the session then: the witness
// looks whether it is valid when it ends.
func TestASessionThatSleepsIsNotProvedByAServerThatIsCutOff(t *testing.T) {
	for seed := range share(10) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			const timeout = 15 * time.Second // of which the session goes by plain reads for a good part
			server := (e.Leader() + 1) % 3
			client, s := newIdlerOf(t, e, w, timeout, e.Addresses()[server])
			defer client.Close()
			defer w.close(s)
			time.Sleep(2 * timeout)
			if !s.Asleep() {
				t.Fatal("awake")
			}
			for _, other := range []int{(server + 1) % 3, (server + 2) % 3} {
				e.Cut(other, server)
				e.Cut(server, other)
			}
			time.Sleep(time.Duration(seed) * timeout / 16) // some of what it reads meanwhile the leader does not hear of
			for range 2 * int(timeout/glance) {
				ctx, cancel := context.WithTimeout(t.Context(), glance)
				_ = s.Prove(ctx)
				<-ctx.Done()
				cancel()
			}
			if _, ended := e.EndOf(s.ID()); !ended {
				t.Error("it has not ended")
			}
		})
	}
}

// Whoever counts on a session when it has just fallen asleep finds it as valid as one that has slept for long.
func TestASessionIsNotLostWheneverItIsWoken(t *testing.T) {
	for _, joins := range []bool{false, true} {
		for at := short; at < 2*short+short/4; at += 29 * time.Millisecond {
			inBubble(t, simulation.Options{Seed: uint64(at)}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client, s := newIdler(t, e, w)
				defer client.Close()
				defer w.close(s)
				time.Sleep(at)
				began := time.Now()
				wantAwake(t, s)
				if joins {
					place, err := bed.Join(t.Context(), s, recipes.Exclusive, recipes.About{})
					if err == nil {
						_, err = acquire(t.Context(), place)
					}
					if took := time.Since(began); err != nil || took > 200*time.Millisecond {
						t.Errorf("%v, %v", took, err)
					}
				}
				for end := time.Now().Add(short); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					if s.ValidFor() <= 0 && !s.Asleep() {
						t.Fatalf("woken at %v, valid for %v: %v", at, s.ValidFor(), s.Err())
					}
				}
			})
		}
	}
}

// Who asks in vain, while contact is missing, does a session that sleeps no harm.
func TestASessionThatSleepsIsNotLostForBeingAskedWithoutContact(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			client, s := newIdler(t, e, w)
			defer client.Close()
			defer w.close(s)
			time.Sleep(short + 600*time.Millisecond)
			if !s.Asleep() {
				t.Fatal("awake")
			}
			cutOff(e)
			time.Sleep(time.Duration(seed) * 50 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = s.Prove(ctx)
			time.Sleep(1100*time.Millisecond - time.Duration(seed)*20*time.Millisecond)
			reconnect(e)
			time.Sleep(short / 2)
			if s.Err() != nil {
				t.Error(s.Err())
			}
		})
	}
}

// Whoever asks for how long he may count on a session that sleeps does not wake it, and is granted nothing on it for less than he was told.
func TestNothingIsGrantedOnASessionThatSleptForLessThanWhoAskedWasTold(t *testing.T) {
	for _, timeout := range []time.Duration{short, 15 * time.Second} {
		for step := range 90 {
			inBubble(t, simulation.Options{Seed: uint64(step)}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client, s := newIdlerOf(t, e, w, timeout)
				defer client.Close()
				defer w.close(s)
				var until time.Time
				begins := time.Now().Add(timeout + timeout*time.Duration(step)/72)
				for ; time.Now().Before(begins); time.Sleep(timeout / 100) {
					asleep, told := s.Asleep(), s.AssuredFor()
					if until = time.Now().Add(told); told < timeout/5 || asleep && !s.Asleep() {
						t.Fatalf("told %v, asleep: %v, and then: %v", told, asleep, s.Asleep())
					}
				}
				began, granted := time.Now(), make(chan error, 1)
				go func() {
					place, err := bed.Join(t.Context(), s, recipes.Exclusive, recipes.About{})
					if err == nil {
						_, err = acquire(t.Context(), place)
					}
					granted <- err
				}()
				for err, over := error(nil), false; !over; {
					select {
					case err = <-granted:
						over = true
					case <-time.After(100 * time.Microsecond):
					}
					took, valid, told := time.Since(began), s.ValidFor(), time.Until(until)
					if err != nil || !s.Asleep() && valid < told || took > 200*time.Millisecond {
						t.Fatalf("%v after %v, valid for %v where %v was told", err, took, valid, told)
					}
				}
			})
		}
	}
}

// However many ask while a session is woken, it takes no longer for that, also where each transaction takes long.
func TestASessionIsWokenOnASlowEnsembleThoughManyAsk(t *testing.T) {
	const timeout = 15 * time.Second
	for seed := range share(40) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			client, s := newIdlerOf(t, e, w, timeout)
			defer client.Close()
			defer w.close(s)
			time.Sleep(2*timeout + time.Duration(seed)*97*time.Millisecond)
			if !s.Asleep() {
				t.Fatal("awake")
			}
			for link := range 9 {
				e.Slow(link/3, link%3, 500*time.Millisecond)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				for ctx.Err() == nil {
					s.AssuredFor()
					time.Sleep(10 * time.Millisecond)
				}
			}()
			began := time.Now()
			place, err := bed.Join(ctx, s, recipes.Exclusive, recipes.About{})
			if err == nil {
				_, err = acquire(ctx, place)
			}
			if took := time.Since(began); err != nil || took > timeout/2 {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}

// A server that is cut off from its leader, in one direction or both, goes on answering reads. Two others serve all the while, and the sidecar
// reaches them.
func TestASessionThatSleepsIsNotLostToAServerThatIsCutOff(t *testing.T) {
	for _, c := range []struct {
		timeout        time.Duration
		syncLimit      int
		moved, to, fro bool // moved: to another server than the sidecar's own session, perhaps
	}{
		{4 * time.Second, 5, false, true, true},
		{4 * time.Second, 10, true, true, true},
		{6 * time.Second, 5, false, true, false},
		{8 * time.Second, 10, true, false, true},
		{10 * time.Second, 10, false, true, true},
		{15 * time.Second, 10, false, true, true},
		{15 * time.Second, 10, true, false, true},
		{20 * time.Second, 10, true, true, true},
		{40 * time.Second, 10, true, true, true},
	} {
		tried, seeds := 0, share(20)
		for seed := range seeds {
			inBubble(t, simulation.Options{Seed: seed, SyncLimit: c.syncLimit}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client, s := newIdlerOf(t, e, w, c.timeout)
				defer client.Close()
				defer w.close(s)
				if c.moved {
					e.Reset(0, e.ServerOf(s.ID()))
				}
				time.Sleep(2*c.timeout + time.Duration(seed)*217*time.Millisecond)
				server, leader := e.ServerOf(s.ID()), e.Leader()
				if server == leader {
					return
				}
				if !s.Asleep() {
					t.Fatal("awake")
				}
				tried++
				if c.to {
					e.Cut(leader, server)
				}
				if c.fro {
					e.Cut(server, leader)
				}
				time.Sleep(2 * time.Duration(c.syncLimit) * 2 * time.Second)
				e.Rejoin(server)
				time.Sleep(c.timeout)
				if s.Err() != nil {
					t.Errorf("%+v, seed %d: %v", c, seed, s.Err())
				}
			})
		}
		if seeds >= 10 && tried == 0 {
			t.Errorf("%+v: no server was cut off", c)
		}
	}
}
