package endtoend

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A caller that is frozen may wake up and count on what it was told: it keeps its place until that time is over.
func TestAFrozenCallerKeepsItsLockForAsLongAsItWasTold(t *testing.T) {
	e := ensembleOf(t, quickTick)
	attentive := quick(e)
	attentive.timeout = 6 * time.Second
	attentive.flags = []string{"--keepalive-time=1s", "--keepalive-timeout=1s"}
	a, b := startSidecar(t, attentive), startSidecar(t, quick(e))
	caller := startCaller(t, a, callerOrder{Names: []string{"frozen/caller"}})
	caller.awaitLine(t, "granted", patient)
	waiter := b.acquire(t, "frozen/caller")
	waiter.queued(t)
	await(t, "heartbeats", patient, after(2*time.Second))
	caller.freeze()
	frozen := now()
	next := waiter.granted(t)
	until := lastTold(t, caller)
	if margin := next.at.since(until); margin < 0 {
		t.Errorf("granted %v before the frozen caller's validity was over", -margin)
	}
	// It is missed for as long as keepalive takes, told a validity until then, and its place outlives that by no more than
	// the lease.
	if took := next.at.since(frozen); took > 2*time.Second+attentive.timeout+7*time.Second {
		t.Errorf("granted only %v after the caller froze", took)
	}
	caller.thaw()
	end, _ := caller.awaitLine(t, "ended", patient)
	if again := lastTold(t, caller); again > next.at {
		t.Errorf("after it woke up the caller was told that the lock is its own, %v after the next grant", again.since(next.at))
	}
	t.Logf("granted %v after the caller froze and %v after the validity it knew; awake it was told %s",
		next.at.since(frozen), next.at.since(until), end)
}

// lastTold is until when the caller knows itself to hold the lock.
func lastTold(t *testing.T, caller *process) (until moment) {
	t.Helper()
	for _, line := range caller.lines.all() {
		if text, ok := strings.CutPrefix(line.what, "valid "); ok {
			number, err := strconv.ParseInt(text, 10, 64)
			must(t, err)
			until = max(until, moment(number))
		}
	}
	return until
}

// A frozen sidecar cannot end a stream. What Check answers, counted from the question, ends in time nevertheless, and with
// it the hold of the Go client.
func TestNobodyCountsOnAFrozenSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	brief := quick(e)
	brief.timeout = 4 * time.Second
	for round := range *rounds {
		t.Run(strconv.Itoa(round+1), func(t *testing.T) {
			a, b := startSidecar(t, brief), startSidecar(t, quick(e))
			name := "frozen/sidecar-" + strconv.Itoa(round)
			bare, behind := pair(t, a, b, name+"-bare")
			library := keepWithLibrary(t, a, name+"-library")
			behindLibrary := b.acquire(t, name+"-library")
			behindLibrary.queued(t)
			checking := checkAlways(t, bare)
			await(t, "heartbeats", patient, after(time.Second+time.Duration(round%5)*150*time.Millisecond))
			a.freeze()
			frozen := now()
			next, nextOfLibrary := behind.granted(t), behindLibrary.granted(t)
			await(t, "the end of the library's hold", time.Second, library.ended)
			await(t, "a while in which nothing happens", patient, after(500*time.Millisecond))
			if !bare.isOpen() {
				t.Errorf("the stream of a frozen sidecar ended with %s", bare.end)
			}
			a.thaw()
			bare.awaitEnd(t, "Aborted LEASE_LOST")
			until, asked := checking()
			if until > next.at {
				t.Errorf("Check vouched for the lock for %v after the next grant", until.since(next.at))
			}
			if library.at > nextOfLibrary.at {
				t.Errorf("the library's hold ended %v after the next grant", library.at.since(nextOfLibrary.at))
			}
			if !errors.Is(library.cause, sidekeeperclient.ErrLost) {
				t.Errorf("it ended with %v", library.cause)
			}
			t.Logf("granted %v after the freeze; Check, asked %d times, vouched until %v and the library believed until %v before",
				next.at.since(frozen), asked, next.at.since(until), nextOfLibrary.at.since(library.at))
		})
	}
}

// isOpen says whether the stream goes on.
func (c *contender) isOpen() bool {
	select {
	case <-c.finished:
		return false
	default:
		return true
	}
}

// checkAlways asks the sidecar about a hold, over and over, and returns a function that stops it: then it says until when
// the answers vouched for the hold, each counted from its question, and how many there were.
func checkAlways(t *testing.T, holder *contender) (stop func() (until moment, asked int)) {
	t.Helper()
	request := &lockv1.CheckRequest{HoldIds: []string{holder.granted(t).id}}
	stopped, done := make(chan struct{}), make(chan struct{})
	var until moment
	var asked int
	go func() {
		defer close(done)
		for {
			sent := now()
			answer, err := holder.sidecar.locks.Check(context.Background(), request)
			if err != nil {
				t.Errorf("Check: %v", err)
				return
			}
			asked++
			if hold := answer.GetHolds()[0]; hold.GetValidFor().AsDuration() > 0 {
				until = max(until, sent.add(hold.GetValidFor().AsDuration()))
			}
			select {
			case <-after(10 * time.Millisecond):
			case <-stopped:
				return
			}
		}
	}()
	return func() (moment, int) {
		close(stopped)
		<-done
		return until, asked
	}
}

// A kept hold is one that the Go client's WithLock holds until it is lost.
type keptHold struct {
	ended chan struct{} // closed when the context of the function has ended
	at    moment        // then: when
	cause error
}

func keepWithLibrary(t *testing.T, s *sidecar, name string) *keptHold {
	t.Helper()
	client := s.client(t)
	kept := &keptHold{ended: make(chan struct{})}
	granted := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := client.WithLock(context.Background(), name, sidekeeperclient.LockOptions{},
			func(ctx context.Context, lock *sidekeeperclient.Lock) error {
				close(granted)
				<-ctx.Done()
				if kept.at = now(); lock.Valid() {
					t.Error("the context ended before the lock")
				}
				kept.cause = context.Cause(ctx)
				close(kept.ended)
				return nil
			})
		if !errors.Is(err, sidekeeperclient.ErrLost) {
			t.Errorf("WithLock: %v", err)
		}
	}()
	t.Cleanup(func() { <-done })
	await(t, "granted", patient, granted)
	return kept
}
