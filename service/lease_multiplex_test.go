package service_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A carrying is one Multiplex stream.
type carrying struct {
	*scene
	stream  grpc.BidiStreamingClient[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	cancel  context.CancelFunc
	lease   string
	holds   map[uint64]string
	tokens  map[uint64]int64
	valid   bool // whether the newest check said so
	session *standin.Session
}

func (s *scene) carry(from callers) *carrying {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.leases.Multiplex(ctx)
	s.must(err)
	return &carrying{scene: s, stream: stream, cancel: cancel, holds: map[uint64]string{}, tokens: map[uint64]int64{}}
}

// carryOpened is carry with a lease that is open.
func (s *scene) carryOpened(from callers) *carrying {
	s.t.Helper()
	c := s.carry(from)
	c.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}})
	c.sees("opened")
	c.session = <-s.ensemble.opened
	return c
}

func (c *carrying) send(request *leasev1.MultiplexRequest) {
	c.t.Helper()
	c.must(c.stream.Send(request))
}

func (c *carrying) start(id uint64, lock string) {
	c.t.Helper()
	c.startWith(&leasev1.Start{RequestId: id, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: lock}}})
}

func (c *carrying) startWith(start *leasev1.Start) {
	c.t.Helper()
	c.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}})
}

func (c *carrying) stop(id uint64) {
	c.t.Helper()
	c.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}})
}

func (c *carrying) check(id uint64) {
	c.t.Helper()
	c.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{CheckId: id}}})
}

// next is the next message or the end, in words.
func (c *carrying) next() string {
	message, err := c.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch of := message.GetResponse().(type) {
	case *leasev1.MultiplexResponse_Opened:
		c.lease = of.Opened.GetLeaseId()
		return "opened"
	case *leasev1.MultiplexResponse_Suspended:
		return "suspended"
	case *leasev1.MultiplexResponse_Resumed:
		return "resumed"
	case *leasev1.MultiplexResponse_Checked:
		c.valid = of.Checked.GetValidFor().AsDuration() > 0
		return fmt.Sprintf("checked %d", of.Checked.GetCheckId())
	case *leasev1.MultiplexResponse_Ended:
		return strings.TrimSpace(fmt.Sprintf("%d ended %d %s", of.Ended.GetRequestId(), of.Ended.GetCode(), of.Ended.GetReason()))
	case *leasev1.MultiplexResponse_Event:
		return fmt.Sprintf("%d %s", of.Event.GetRequestId(), c.event(of.Event))
	}
	return "a message without a name"
}

func (c *carrying) event(of *leasev1.Event) string {
	switch {
	case of.GetAcquire().GetGranted() != nil:
		granted := of.GetAcquire().GetGranted()
		c.holds[of.GetRequestId()], c.tokens[of.GetRequestId()] = granted.GetHoldId(), granted.GetFencingToken()
		return "granted"
	case of.GetAcquire().GetQueued() != nil:
		return "queued"
	case of.GetAcquire().GetRevocationRequested() != nil:
		return "asked"
	case of.GetBegin().GetBegun() != nil:
		begun := of.GetBegin().GetBegun()
		c.holds[of.GetRequestId()], c.tokens[of.GetRequestId()] = begun.GetHoldId(), begun.GetFencingToken()
		return fmt.Sprintf("begun %d", begun.GetAttempt())
	case of.GetWork().GetFire() != nil:
		fire := of.GetWork().GetFire()
		c.holds[of.GetRequestId()], c.tokens[of.GetRequestId()] = fire.GetHoldId(), fire.GetFencingToken()
		return fmt.Sprintf("fire %d", fire.GetAttempt())
	case of.GetJoin().GetJoined() != nil:
		return "joined"
	}
	return "an event without a name"
}

func (c *carrying) sees(messages ...string) {
	c.t.Helper()
	for _, message := range messages {
		same(c.t, "message", c.next(), message)
	}
}

func TestOneStreamCarriesWhatStandsOnItsLease(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		c.startWith(&leasev1.Start{RequestId: 2, Request: &leasev1.Start_Join{Join: &membershipv1.JoinRequest{Group: "shop", Member: "m"}}})
		c.sees("2 joined")
		c.check(7)
		c.sees("checked 7")
		same(t, "valid", c.valid, true)
		same(t, "Check of the hold", s.checked(s.callers, c.holds[1]), "held")
		same(t, "Check of the lease", s.checkedLease(c.lease), "OK")
		c.stop(1)
		c.sees("1 ended 0")
		same(t, "contenders when it is said to be gone", s.contenders("orders"), 0)
		same(t, "Check of a hold that was given up", s.checked(s.callers, c.holds[1]), "RELEASED")
		c.start(3, "orders") // at once, and again
		c.sees("3 granted")
		c.stop(1)
		s.must(c.stream.CloseSend())
		ends := []string{c.next(), c.next()}
		slices.Sort(ends)
		same(t, "ends", fmt.Sprint(ends), "[2 ended 10 LEASE_CLOSED 3 ended 10 LEASE_CLOSED]")
		c.sees("OK")
		s.awaitContenders("orders", 0)
	})
}

func TestAPlaceThatWaitsIsStopped(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 queued")
		c.stop(1)
		c.sees("1 ended 0")
		same(t, "contenders", s.contenders("orders"), 1)
	})
}

// What was told of its lease counts for what stands on it, and not for a place in a queue, which would only be in others' way.
func TestAWaitThatEndsLeavesTheQueueThoughItsLeaseWasChecked(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
		c := s.carryOpened(s.callers)
		c.check(1)
		c.sees("checked 1")
		request := &lockv1.AcquireRequest{Name: "orders", WaitTimeout: durationpb.New(time.Second)}
		c.startWith(&leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: request}})
		c.sees("1 queued", "1 ended 4 WAIT_TIMEOUT")
		<-time.After(time.Second)
		same(t, "contenders", s.contenders("orders"), 1)
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 20*time.Second, time.Second })
}

func TestAnEndThatNobodyAskedForIsToldBeforeThePlaceIsGivenUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		removed := make(chan string, 1)
		c.session.Before(func(operation standin.Operation) error {
			if operation.Name == "Dequeue" {
				removed <- c.next()
			}
			return nil
		})
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: c.tokens[1], Reason: "stuck"})
		s.must(err)
		same(t, "before the place is removed", <-removed, "1 ended 10 LOCK_BROKEN")
	})
}

func TestWhatALeasesStreamHasCheckedIsWaitedFor(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		c.start(2, "stock")
		c.sees("2 granted")
		c.check(1)
		c.sees("checked 1")
		broken := make(chan error, 2)
		for id, lock := range map[uint64]string{1: "orders", 2: "stock"} {
			go func() {
				_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: lock, FencingToken: c.tokens[id], Reason: "stuck"})
				broken <- err
			}()
		}
		ends := []string{c.next(), c.next()}
		slices.Sort(ends)
		same(t, "ends", fmt.Sprint(ends), "[1 ended 10 LOCK_BROKEN 2 ended 10 LOCK_BROKEN]")
		same(t, "contenders while the caller may count on it", s.contenders("orders"), 1)
		c.stop(1)
		s.awaitContenders("orders", 0)
		same(t, "contenders of what was not acknowledged", s.contenders("stock"), 1)
		c.stop(2)
		s.must(<-broken)
		s.must(<-broken)
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 20*time.Second, time.Second })
}

// A haltingSession answers once, when it is asked to, only after a while.
type haltingSession struct {
	*standin.Session
	halt chan chan struct{}
}

func (s *haltingSession) AssuredFor() time.Duration {
	select {
	case over := <-s.halt:
		<-over
	default:
	}
	return s.Session.AssuredFor()
}

// heldEvents tells when a hold has ended.
type heldEvents struct {
	service.NoEvents
	ended chan struct{}
}

func (e heldEvents) HoldEnded(string, time.Duration) { e.ended <- struct{}{} }

// An answer may be composed while the hold ends, and stand before its end on the stream.
func TestWhatIsCheckedWhileAHoldEndsIsWaitedFor(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	s := newScene(t, func(o *service.Options) {
		o.SessionTimeout, o.TickTime, o.Events = 20*time.Second, time.Second, heldEvents{ended: ended}
	})
	halt := make(chan chan struct{}, 1)
	s.ensemble.wrap = func(made *standin.Session) service.Session { return &haltingSession{made, halt} }
	c := s.carryOpened(s.callers)
	c.start(1, "orders")
	c.sees("1 granted")
	over := make(chan struct{})
	halt <- over
	c.check(1)
	for len(halt) > 0 {
		<-time.After(time.Millisecond)
	}
	broken := make(chan error, 1)
	go func() {
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: c.tokens[1], Reason: "stuck"})
		broken <- err
	}()
	<-ended
	<-time.After(50 * time.Millisecond) // its end is to be sent by then
	close(over)
	c.sees("checked 1")
	same(t, "valid", c.valid, true)
	c.sees("1 ended 10 LOCK_BROKEN")
	select {
	case err := <-broken:
		t.Errorf("the place has been given up (%v) though its caller may count on it", err)
	case <-time.After(200 * time.Millisecond):
	}
	same(t, "contenders while the caller may count on it", s.contenders("orders"), 1)
	c.stop(1)
	s.must(<-broken)
}

func TestMessagesThatBreakARuleEndTheirStream(t *testing.T) {
	t.Parallel()
	open := &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}
	started := func(start *leasev1.Start) *leasev1.MultiplexRequest {
		return &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}}
	}
	acquire := &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "orders"}}
	once := started(&leasev1.Start{RequestId: 1, Request: acquire})
	for field, messages := range map[string][]*leasev1.MultiplexRequest{
		"request, at first": {{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{}}}},
		"open":              {open, open},
		"request_id, 0":     {open, started(&leasev1.Start{Request: acquire})},
		"request_id, twice": {open, once, once},
		"request":           {open, {}},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			c := s.carry(s.callers)
			for _, message := range messages {
				_ = c.stream.Send(message)
			}
			for {
				if end := c.next(); !strings.Contains(end, "opened") && !strings.Contains(end, "granted") && !strings.Contains(end, "ended") {
					field, _, _ := strings.Cut(field, ",")
					same(t, "end", end, "InvalidArgument INVALID_FIELD "+field)
					return
				}
			}
		})
	}
}

func TestARequestThatIsWrongEndsAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		c.start(2, "..")
		c.sees("2 ended 3 INVALID_FIELD")
		c.startWith(&leasev1.Start{RequestId: 3, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "a", LeaseId: c.lease}}})
		c.sees("3 ended 3 INVALID_FIELD")
		c.start(4, "orders")
		c.sees("4 ended 9 ALREADY_CONTENDING")
		c.startWith(&leasev1.Start{RequestId: 5}) // so it comes from a newer client, which knows more kinds
		c.sees("5 ended 12")
		c.check(1)
		c.sees("checked 1")
	})
}

func TestALeaseThatIsClosedElsewhereEndsWhatItsStreamCarries(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: c.lease})
		s.must(err)
		c.sees("1 ended 10 LEASE_CLOSED", "OK")
	})
}

func TestASessionThatIsLostEndsWhatItsStreamCarries(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.start(1, "orders")
		c.sees("1 granted")
		c.session.Suspend()
		c.sees("suspended")
		c.session.Resume()
		c.sees("resumed")
		c.session.Expire()
		c.sees("1 ended 10 LEASE_LOST", "Aborted LEASE_LOST")
	})
}

// The end of a stream reaches what stands on it one after the other, in any order: each must end, whichever comes first.
func TestAllThatStandsOnALeaseEndsWithIt(t *testing.T) {
	t.Parallel()
	const each, times = 300, 5
	virtually(t, func(t *testing.T, s *scene) {
		other := s.carryOpened(s.callers)
		for i := range uint64(each) {
			other.start(i+1, fmt.Sprint("lock-", i))
		}
		for range times {
			c := s.carryOpened(s.callers)
			for i := range uint64(each) {
				c.start(i+1, fmt.Sprint("lock-", i))       // which waits
				c.start(each+i+1, fmt.Sprint("other-", i)) // which holds
			}
			synctest.Wait()
			_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: c.lease})
			s.must(err)
			ended := 0
			for err == nil {
				var message *leasev1.MultiplexResponse
				if message, err = c.stream.Recv(); message.GetEnded() != nil {
					ended++
				}
			}
			same(t, "ended", fmt.Sprint(ended, err), fmt.Sprint(2*each, io.EOF))
		}
	})
}
