package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// An attended session counts the answers whose takers have not returned.
type attended struct {
	*standin.Session
	answering *atomic.Int64
}

// EnqueueThen implements recipes.Session.
func (a attended) EnqueueThen(
	ctx context.Context, dir, marker string, data []byte, then func(recipes.Enqueued, error), beside ...string,
) {
	a.Session.EnqueueThen(ctx, dir, marker, data, func(made recipes.Enqueued, err error) {
		a.answering.Add(1)
		defer a.answering.Add(-1)
		then(made, err)
	}, beside...)
}

// DequeueThen implements recipes.Session.
func (a attended) DequeueThen(ctx context.Context, path string, then func()) {
	a.Session.DequeueThen(ctx, path, func() {
		a.answering.Add(1)
		defer a.answering.Add(-1)
		then()
	})
}

// An answer is brought by whatever reads the connection to the ensemble, on which all that the lease has asked for is answered.
func TestNothingWaitsInWhatTakesAnAnswer(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		const locks = 1000 // whose grants are more than fits between the sidecar and a caller that does not read
		var answering atomic.Int64
		s.ensemble.wrap = func(session *standin.Session) service.Session { return attended{session, &answering} }
		c := s.carryOpened(s.callers)
		returned := func(when string) {
			t.Helper()
			synctest.Wait()
			same(t, "answers whose takers wait, "+when, answering.Load(), int64(0))
		}
		name := func(i int) string { return fmt.Sprintf("%060d", i) }
		for i := range locks {
			c.start(uint64(i+1), name(i))
		}
		returned("while the caller does not read")
		same(t, "granted", len(s.ensemble.memory.Names("/locks")), locks)
		c.session.Suspend()
		c.start(locks+1, "late")
		returned("while the ensemble does not answer")
		c.session.Resume()
		for i := range locks / 2 {
			c.stop(uint64(i + 1))
		}
		returned("while places are given up")
		c.cancel()
		returned("when the caller has left")
	})
}

// placing is a lock that is being made on a lease's stream, of whose node the ensemble has not answered yet, and what has that answered.
func placing(s *scene, c *carrying, start *leasev1.Start) (answer func()) {
	c.session.Suspend()
	c.sees("suspended")
	c.startWith(start)
	synctest.Wait()
	return c.session.Resume
}

func TestARequestEndsThoughTheEnsembleDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		end  func(s *scene, c *carrying)
		told string
	}{
		"the sidecar stops":    {func(s *scene, _ *carrying) { s.drain(10 * time.Second) }, "1 ended 14 SIDECAR_STOPPING"},
		"the session expires":  {func(_ *scene, c *carrying) { c.session.Expire() }, "1 ended 10 LEASE_LOST"},
		"it has waited enough": {func(*scene, *carrying) {}, "1 ended 4 WAIT_TIMEOUT"},
	} {
		virtually(t, func(t *testing.T, s *scene) {
			c := s.carryOpened(s.callers)
			c.start(9, "other") // for whose sake a sidecar that stops waits
			c.sees("9 granted")
			answer := placing(s, c, &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{
				Name: "orders", WaitTimeout: durationpb.New(2 * time.Second),
			}}})
			test.end(s, c)
			for told := c.next(); ; told = c.next() {
				if told != "suspended" && !strings.HasPrefix(told, "9 ") {
					same(t, "told when "+what, told, test.told)
					break
				}
			}
			answer()
			s.awaitContenders("orders", 0)
		})
	}
}

// endings have something happen once when a wait is over, before what comes of it is told.
type endings struct {
	service.NoEvents
	then atomic.Pointer[func()]
}

func (e *endings) WaitEnded(string, string, bool, time.Duration) {
	if then := e.then.Swap(nil); then != nil {
		(*then)()
	}
}

func TestALeaseThatIsClosedAsItsLockIsGrantedEndsTheLock(t *testing.T) {
	t.Parallel()
	var events endings
	virtually(t, func(t *testing.T, s *scene) {
		holder := s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 queued")
		then := func() {
			go func() { _, _ = s.callers.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: c.lease}) }() // which waits for what is held
			<-time.After(time.Second)
		}
		events.then.Store(&then)
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: holder.hold})
		s.must(err)
		c.sees("1 ended 10 LEASE_CLOSED", "OK")
		s.awaitContenders("orders", 0)
	}, func(o *service.Options) { o.Events = &events })
}
