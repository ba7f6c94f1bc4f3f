package controllers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/sidekeeper/sidekeeper/clients/go/k8s"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// A controller is an elector with what it starts, which goes on until the test lets it end.
type controller struct {
	lock    *k8s.Lock
	acts    chan struct{} // closed when it acts
	asked   chan error    // why it shall end
	exited  chan error    // why its process would have ended
	stopped chan struct{} // closed when the elector has returned
}

// elect runs an elector until the test ends.
func elect(t *testing.T, sidecar *sidekeepertest.Sidecar, name string) *controller {
	t.Helper()
	c := &controller{
		acts: make(chan struct{}), asked: make(chan error, 1), exited: make(chan error, 1), stopped: make(chan struct{}),
	}
	c.lock = k8s.NewLock(sidecar.Client(), "scheduler", k8s.Options{
		Candidate: name, Settle: -1, Exit: func(why error) { c.exited <- why },
	})
	ctx, cancel := c.lock.Context(t.Context())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(acting context.Context) {
				close(c.acts)
				<-acting.Done()
				c.asked <- context.Cause(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	must(t, err)
	go func() {
		defer close(c.stopped)
		elector.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-c.stopped
		c.close(t)
	})
	return c
}

// close says that nothing acts for the term any more. That it was lost before is no failure.
func (c *controller) close(t *testing.T) {
	t.Helper()
	if err := c.lock.Close(context.WithoutCancel(t.Context())); err != nil && !errors.Is(err, sidekeeper.ErrLost) {
		t.Errorf("close: %v", err)
	}
}

func TestTheNextElectorLeadsWhenTheLockOfTheOneBeforeIsClosed(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	one := elect(t, sidecar, "one")
	await(t, "one to act", one.acts)
	two := elect(t, sidecar, "two")
	awaitCandidates(t, sidecar, 1)
	one.close(t)
	await(t, "one to be asked to end", one.asked)
	await(t, "two to act", two.acts)
}

// Electors release a lock before what they have started has ended.
func TestAnElectorThatReleasesItsLockLeadsUntilThatIsClosed(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	one := elect(t, sidecar, "one")
	await(t, "one to act", one.acts)
	two := elect(t, sidecar, "two")
	awaitCandidates(t, sidecar, 1)
	must(t, sidecar.Client().TransferLeadership(t.Context(), "scheduler", "two", sidekeeper.TransferOptions{}))
	if why := await(t, "one to be asked to end", one.asked); !errors.Is(why, k8s.ErrYieldRequested) {
		t.Errorf("one is asked to end: %v", why)
	}
	await(t, "the elector to return", one.stopped)
	if view := election(t, sidecar); view.Leader == nil || view.Leader.Candidate != "one" {
		t.Errorf("leader is %+v", view.Leader)
	}
	one.close(t)
	await(t, "two to act", two.acts)
}

func TestWhatActsIsAskedToEndAndElseTheProcessEndsWhenTheEnsembleIsSilent(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	one := elect(t, sidecar, "one")
	await(t, "one to act", one.acts)
	sidecar.Suspend(patience)
	if why := await(t, "one to be asked to end", one.asked); !errors.Is(why, k8s.ErrAtRisk) && !errors.Is(why, sidekeeper.ErrLost) {
		t.Errorf("one is asked to end: %v", why)
	}
	if why := await(t, "the process to end", one.exited); !errors.Is(why, k8s.ErrStillActing) {
		t.Errorf("the process ends: %v", why)
	}
	sidecar.Suspend(0)
}

func TestTheProcessEndsWhenTheLeaseOfItsLeaderHasExpired(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	one := elect(t, sidecar, "one")
	await(t, "one to act", one.acts)
	two := elect(t, sidecar, "two")
	awaitCandidates(t, sidecar, 1)
	must(t, sidecar.ExpireLock(t.Context(), "scheduler"))
	await(t, "the process to end", one.exited)
	await(t, "two to act", two.acts)
}

func TestAnElectorCampaignsAnewWhenItsTermWasLostBeforeItHasBegun(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	lock := k8s.NewLock(sidecar.Client(), "scheduler", k8s.Options{Candidate: "one", Settle: -1})
	defer lock.Close(context.WithoutCancel(t.Context()))
	look := func() { _, _, err := lock.Get(t.Context()); must(t, err) }
	look()
	first := awaitLeader(t, sidecar, 0)
	must(t, sidecar.ExpireLock(t.Context(), "scheduler"))
	for second := int64(0); second == 0; second = termOf(election(t, sidecar), first) {
		look()
		pause(t)
	}
}

func TestOfCandidatesThatRunOnlyOneActs(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	terms, acting := make(chan int64, 3), make(chan struct{}, 1)
	var running sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		running.Go(func() {
			err := k8s.Run(t.Context(), sidecar.Client(), "scheduler", k8s.Options{Candidate: name, Settle: -1},
				func(_ context.Context, term sidekeeper.Ticket) error {
					select {
					case acting <- struct{}{}:
					default:
						t.Error("two act at once")
					}
					terms <- term.FencingToken
					<-acting
					return nil
				})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	last := int64(0)
	for range 3 {
		term := await(t, "a term", terms)
		if term <= last {
			t.Errorf("term %d after %d", term, last)
		}
		last = term
	}
	running.Wait()
}
