// What is played here is one goroutine at a time, and takes the race detector minutes.

//go:build !race

package simulation

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

const (
	crowd        = 100_000 // sessions, without the clients that they are of
	crowdTimeout = 15 * time.Second
	crowdBeat    = 5 * time.Second // between two heartbeats of one
	crowdStep    = 50 * time.Millisecond
)

// A sessionCrowd is sessions that are heard of at one server each, and at none before they have come to it.
type sessionCrowd struct {
	ensemble *Ensemble
	heard    []time.Duration // of each session, when a server last was
	came     int             // so many have come back, in the order of their numbers
}

// beat has every session be heard of that is due within this step.
func (c *sessionCrowd) beat(step int) {
	steps := int(crowdBeat / crowdStep)
	for session := step % steps; session < c.came; session += steps {
		if s := c.ensemble.servers[session%size]; s.serving && c.isTracked(session) {
			s.touch(int64(session + 1))
			c.heard[session] = c.ensemble.now()
		}
	}
}

// isTracked says whether there is a leader that has not begun to end the session.
func (c *sessionCrowd) isTracked(session int) (tracked bool) {
	if leader := c.ensemble.leader(); leader != nil {
		_, tracked = leader.term.tracker.timeouts[int64(session+1)]
	}
	return tracked
}

// arrive has so many more come to their servers, which ask the leader whether they are still alive.
func (c *sessionCrowd) arrive(more int) {
	for ; more > 0 && c.came < crowd; more-- {
		if c.ensemble.leader().term.tracker.touch(int64(c.came + 1)) {
			c.heard[c.came] = c.ensemble.now()
		}
		c.came++
	}
}

// When a leader is lost, all of 100,000 leases are without a server at once. Those that come back before their timeout, which the next leader
// counts anew, lose nothing; those that do not are ended, and not much later.
func TestATrackerOfAHundredThousandSessionsEndsNoneThatCameBackInTime(t *testing.T) {
	for _, test := range []struct {
		name   string
		second int // so many come back in one
		some   bool
	}{{"10,000 a second", 10_000, false}, {"5,000 a second", 5_000, true}} {
		t.Run(test.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				e := New(Options{})
				defer e.Close()
				e.Await()
				c := &sessionCrowd{ensemble: e, heard: make([]time.Duration, crowd)}
				step := 0
				play := func(lasting time.Duration, arriving int) {
					for range int(lasting / crowdStep) {
						e.change(func() {
							c.arrive(arriving)
							c.beat(step)
						})
						step++
						time.Sleep(crowdStep)
					}
				}
				e.change(func() {
					for session := range crowd {
						e.leader().term.propose(&entry{session: int64(session + 1), opens: crowdTimeout})
					}
				})
				time.Sleep(crowdStep)
				c.came = crowd
				play(crowdTimeout+2*crowdBeat, 0)
				e.change(func() {
					if len(e.ended) > 0 {
						t.Errorf("%d sessions were ended while all were heard of", len(e.ended))
					}
				})

				dead := e.Leader()
				e.Kill(dead)
				c.came = 0
				lost := e.now()
				for e.Leader() < 0 {
					play(crowdStep, 0)
				}
				counted := e.now()
				e.Start(dead)
				e.Await()
				play(5*crowdTimeout/2, test.second/int(time.Second/crowdStep))

				last := lost
				e.mu.Lock()
				defer e.mu.Unlock()
				for session, when := range e.ended {
					last = max(last, when)
					silent := when - max(counted, c.heard[session-1])
					if silent < crowdTimeout {
						t.Fatalf("session %d was ended %v after it was heard of", session, silent)
					}
				}
				t.Logf("%d of %d sessions were ended, the last %v after the leader was lost", len(e.ended), crowd, last-lost)
				if test.some != (len(e.ended) > 0) {
					t.Errorf("%d sessions were ended", len(e.ended))
				}
			})
		})
	}
}
