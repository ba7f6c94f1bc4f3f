package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// A taking is one Take stream.
type taking struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[queuev1.TakeResponse]
	cancel context.CancelFunc
	hold   string
	token  int64
}

func (s *scene) take(from callers, request *queuev1.TakeRequest) *taking {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.queues.Take(ctx, request)
	s.must(err)
	return &taking{t: s.t, stream: stream, cancel: cancel}
}

func (k *taking) next() string {
	event, err := k.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *queuev1.TakeResponse_Queued:
		return fmt.Sprintf("queued %d", event.Queued.GetPosition())
	case *queuev1.TakeResponse_Delivered:
		k.hold, k.token = event.Delivered.GetHoldId(), event.Delivered.GetFencingToken()
		return fmt.Sprintf("delivered %s", event.Delivered.GetValues())
	case *queuev1.TakeResponse_Suspended:
		return "suspended"
	case *queuev1.TakeResponse_Resumed:
		return "resumed"
	case *queuev1.TakeResponse_RevocationRequested:
		return "asked: " + event.RevocationRequested.GetReason()
	}
	return "an event without a name"
}

func (k *taking) sees(events ...string) {
	k.t.Helper()
	for _, event := range events {
		same(k.t, "event", k.next(), event)
	}
}

// comesTo reads over events until one that is no news of the waiting.
func (k *taking) comesTo(want string) {
	k.t.Helper()
	next := k.next()
	for strings.HasPrefix(next, "queued") || next == "suspended" {
		next = k.next()
	}
	same(k.t, "event", next, want)
}

func (s *scene) putItem(request *queuev1.PutRequest) {
	s.t.Helper()
	_, err := s.queues.Put(s.context(), request)
	s.must(err)
}

// finish says that a delivery is done.
func (s *scene) finish(k *taking) string {
	_, err := s.queues.Done(s.context(), &queuev1.DoneRequest{HoldId: k.hold})
	return outcome(err)
}

// queued is how many items a queue has, are taken and not due.
func (s *scene) queued(name string) string {
	s.t.Helper()
	list, err := s.queues.List(s.context(), &queuev1.ListRequest{Prefix: name})
	s.must(err)
	if len(list.GetQueues()) == 0 {
		return "none"
	}
	of := list.GetQueues()[0]
	return fmt.Sprintf("%s %d %d %d", of.GetName(), of.GetItems(), of.GetTaken(), of.GetDelayed())
}

func TestAWaitingCallerIsToldItsPositionThoughTheOneBeforeItStays(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		all := make([]*taking, 4)
		for i := range all {
			all[i] = s.take(s.callers, &queuev1.TakeRequest{Name: "mail"})
			all[i].sees(fmt.Sprint("queued ", i))
		}
		all[1].cancel()
		all[3].sees("queued 2")
		all[0].cancel()
		all[3].sees("queued 1")
	})
}

func TestAnItemIsDeliveredUntilItsCallerIsDone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.take(s.callers, &queuev1.TakeRequest{Name: "mail/out"})
		first.sees("queued 0")
		s.putItem(&queuev1.PutRequest{Name: "mail/out", Value: []byte("a")})
		first.sees("delivered [a]")
		second := s.take(s.callers, &queuev1.TakeRequest{Name: "mail/out"})
		second.sees("queued 0")
		same(t, "queue", s.queued("mail/out"), "mail/out 1 1 0")

		first.cancel() // it gives the item back
		second.comesTo("delivered [a]")
		if second.token <= first.token {
			t.Errorf("token %d after %d", second.token, first.token)
		}
		same(t, "Done of what was given back", s.finish(first), "Aborted DELIVERY_RETURNED")
		same(t, "Done", s.finish(second), "OK")
		second.sees("OK")
		same(t, "Done again", s.finish(second), "OK")
		same(t, "queue", s.queued("mail/out"), "none")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail/out", WaitTimeout: durationpb.New(0)}).sees("FailedPrecondition QUEUE_EMPTY")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail/out", WaitTimeout: durationpb.New(30 * time.Millisecond)}).
			comesTo("DeadlineExceeded WAIT_TIMEOUT")
	})
}

func TestADeliveryIsCheckedAndGuardsWritesWhileItLasts(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("a")})
		taken := s.take(s.callers, &queuev1.TakeRequest{Name: "mail"})
		taken.comesTo("delivered [a]")
		checked := func() string {
			answer, err := s.queues.Check(s.context(), &queuev1.CheckRequest{HoldIds: []string{taken.hold}})
			s.must(err)
			of := answer.GetDeliveries()[0]
			return fmt.Sprintf("%t %t %s", of.GetValidFor().AsDuration() > 0, of.GetFencingToken() == taken.token, of.GetReason())
		}
		same(t, "Check", checked(), "true true ")
		_, err := s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "sent"})
		s.must(err)
		write := func() string {
			guards := []*holdv1.Guard{{Hold: &holdv1.Guard_HoldId{HoldId: taken.hold}}}
			_, err := s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "sent", Guards: guards})
			return outcome(err)
		}
		same(t, "a guarded write", write(), "OK")
		same(t, "Done", s.finish(taken), "OK")
		same(t, "a guarded write after that", write(), "FailedPrecondition GUARD_LOST")
		same(t, "Check after that", checked(), "false true RELEASED")
	})
}

func TestADeliveryOfALeaseEndsWithItAndALeaseHasOneOfAQueue(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, value := range []string{"a", "b"} {
			s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte(value)})
		}
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		first := s.take(s.callers, &queuev1.TakeRequest{Name: "mail", LeaseId: lease.id})
		first.comesTo("delivered [a]")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail", LeaseId: lease.id}).sees("FailedPrecondition ALREADY_CONTENDING")
		same(t, "Done", s.finish(first), "OK")
		second := s.take(s.callers, &queuev1.TakeRequest{Name: "mail", LeaseId: lease.id}) // while the first is leaving, or has left
		second.comesTo("delivered [b]")
		lease.session.Expire()
		second.comesTo("Aborted LEASE_LOST")
		same(t, "Done of what is lost", s.finish(second), "Aborted LEASE_LOST")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail"}).comesTo("delivered [b]")
	})
}

func TestItemsComeInTheOrderOfTheirPriorities(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("nine"), Order: &queuev1.PutRequest_Priority{Priority: 9}})
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("later"), Order: &queuev1.PutRequest_Delay{Delay: durationpb.New(time.Hour)}})
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("urgent"), Order: &queuev1.PutRequest_Priority{Priority: -9}})
		for _, want := range []string{"urgent", "nine"} {
			s.take(s.callers, &queuev1.TakeRequest{Name: "mail", WaitTimeout: durationpb.New(0)}).sees("delivered [" + want + "]")
		}
		same(t, "queue", s.queued("mail"), "mail 3 2 1")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail", WaitTimeout: durationpb.New(0)}).sees("FailedPrecondition QUEUE_EMPTY")
	})
}

// Curator's consumers take an item without a priority before all others.
func TestAPriorityOfZeroIsOne(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", Order: &queuev1.PutRequest_Priority{}})
		s.putItem(&queuev1.PutRequest{Name: "mail"})
		got := slices.Sorted(slices.Values(s.ensemble.memory.Names("/sidekeeper/queues/mail")))
		same(t, "items", fmt.Sprint(got), "[queue-0000000001 queue-1000000000000000000]")
	})
}

// What is due only later is delivered then, without anything else that happens.
func TestADelayedItemIsDeliveredWhenItIsDue(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		put := time.Now()
		delay := &queuev1.PutRequest_Delay{Delay: durationpb.New(200 * time.Millisecond)}
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("soon"), Order: delay})
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail"}).comesTo("delivered [soon]")
		if took := time.Since(put); took < 200*time.Millisecond {
			t.Errorf("delivered after %v", took)
		}
	})
}

func TestWhoDoesNotWaitIsToldThatAllItemsRest(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("poison")})
		for range 5 { // the rest after these is of eight seconds
			k := s.take(s.callers, &queuev1.TakeRequest{Name: "mail"})
			for told := k.next(); told != "delivered [poison]"; told = k.next() {
				same(t, "meanwhile", told, "queued 0")
			}
			k.cancel()
		}
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail"}).sees("queued 0")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail", WaitTimeout: durationpb.New(0)}).sees("FailedPrecondition QUEUE_EMPTY")
	})
}

// Where nothing is yet, whoever waits is told when it comes.
func TestWhoWaitsAtAQueueThatIsNotThereAsksOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	waiting := s.take(s.callers, &queuev1.TakeRequest{Name: "mail"})
	waiting.sees("queued 0")
	session := <-s.ensemble.opened
	before := session.Count("WatchChildren")
	time.Sleep(200 * time.Millisecond) // in which one that asks again and again asks thousands of times
	if asked := session.Count("WatchChildren") - before; asked > 10 {
		t.Fatalf("asked %d times", asked)
	}
	s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("a")})
	waiting.sees("delivered [a]")
}

func TestAQueueRefusesWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", MaxItems: 1})
		for want, request := range map[string]*queuev1.PutRequest{
			"ResourceExhausted QUEUE_FULL":            {Name: "mail", MaxItems: 1},
			"InvalidArgument INVALID_FIELD value":     {Name: "mail", Value: make([]byte, 64<<10+1)},
			"InvalidArgument INVALID_FIELD max_items": {Name: "mail", MaxItems: 10001},
			"InvalidArgument INVALID_FIELD delay":     {Name: "mail", Order: &queuev1.PutRequest_Delay{Delay: durationpb.New(-1)}},
			"InvalidArgument INVALID_FIELD name":      {Name: "mail.taken"},
		} {
			_, err := s.queues.Put(s.context(), request)
			same(t, "Put", outcome(err), want)
		}
		same(t, "queue", s.queued("mail"), "mail 1 0 0")
	})
}

func TestADeliveryWhosePlaceIsRemovedEnds(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.putItem(&queuev1.PutRequest{Name: "mail", Value: []byte("a")})
		taken := s.take(s.callers, &queuev1.TakeRequest{Name: "mail"})
		taken.comesTo("delivered [a]")
		directory := "/sidekeeper/queues/mail.taken"
		for _, name := range s.ensemble.memory.Names(directory) {
			if strings.HasPrefix(name, "_c_") {
				s.must(s.ensemble.memory.Delete(directory + "/" + name))
			}
		}
		taken.sees("Aborted LOCK_BROKEN")
		same(t, "Done", s.finish(taken), "Aborted LOCK_BROKEN")
		s.take(s.callers, &queuev1.TakeRequest{Name: "mail"}).comesTo("delivered [a]")
	})
}
