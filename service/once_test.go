package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A working is one Begin stream.
type working struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[oncev1.BeginResponse]
	cancel context.CancelFunc
	begun  *oncev1.Begun
}

func (s *scene) works(from callers, request *oncev1.BeginRequest) *working {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.once.Begin(ctx, proto.CloneOf(request))
	s.must(err)
	return &working{t: s.t, stream: stream, cancel: cancel}
}

func (w *working) next() string {
	event, err := w.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *oncev1.BeginResponse_Queued:
		return fmt.Sprintf("queued %d", event.Queued.GetPosition())
	case *oncev1.BeginResponse_Begun:
		w.begun = event.Begun
		told := fmt.Sprintf("begun %d", w.begun.GetAttempt())
		if before := w.begun.GetPrevious(); before != nil {
			of := fmt.Sprintf(" after %s %d %s %s", before.GetState(), before.GetAttempt(), before.GetOwner(), before.GetNote())
			told += strings.TrimRight(of, " ")
		}
		return told
	case *oncev1.BeginResponse_RevocationRequested:
		return "asked: " + event.RevocationRequested.GetReason()
	case *oncev1.BeginResponse_Suspended:
		return "suspended"
	case *oncev1.BeginResponse_Resumed:
		return "resumed"
	}
	return "an event without a name"
}

func (w *working) sees(events ...string) {
	w.t.Helper()
	for _, event := range events {
		same(w.t, "event", w.next(), event)
	}
}

// comesTo reads over news of the waiting.
func (w *working) comesTo(want string) {
	w.t.Helper()
	next := w.next()
	for strings.HasPrefix(next, "queued") {
		next = w.next()
	}
	same(w.t, "event", next, want)
}

func (s *scene) finishes(w *working, with oncev1.Outcome) string {
	return s.finishesHold(w.begun.GetHoldId(), with)
}

func (s *scene) finishesHold(hold string, with oncev1.Outcome) string {
	_, err := s.once.Finish(s.context(), &oncev1.FinishRequest{HoldId: hold, Outcome: with, Note: "a note"})
	return outcome(err)
}

func (s *scene) forgets(key string, wait time.Duration) string {
	_, err := s.operators.once.Forget(s.context(), &oncev1.ForgetRequest{Name: "nightly", Key: key, WaitTimeout: durationpb.New(wait)})
	return outcome(err)
}

// recorded is the record of a key in words.
func (s *scene) recorded(key string) string {
	got, err := s.once.Get(s.context(), &oncev1.GetRequest{Name: "nightly", Key: key})
	if err != nil {
		return outcome(err)
	}
	of := got.GetRecord()
	state := strings.TrimPrefix(of.GetState().String(), "STATE_")
	return strings.TrimRight(fmt.Sprintf("%s %s %d %s %s", of.GetKey(), state, of.GetAttempt(), of.GetOwner(), of.GetNote()), " ")
}

const (
	succeeded = oncev1.Outcome_OUTCOME_SUCCEEDED
	failed    = oncev1.Outcome_OUTCOME_FAILED
)

func tonight() *oncev1.BeginRequest {
	return &oncev1.BeginRequest{Name: "nightly", Key: "k", Owner: "ann"}
}

func TestWorkIsDoneOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "bob"})
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		behind := s.works(s.others, &oncev1.BeginRequest{Name: "nightly", Key: "k", LeaseId: lease.id})
		behind.sees("queued 1")
		same(t, "while it runs", s.recorded("k"), "k RUNNING 1 ann")
		same(t, "Check", s.checked(s.callers, first.begun.GetHoldId()), "held")
		same(t, "a plain lock of the name", s.acquire(s.others, &lockv1.AcquireRequest{Name: "nightly", WaitTimeout: durationpb.New(0)}).next(),
			"FailedPrecondition LOCK_HELD")
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		first.sees("OK")
		behind.comesTo("FailedPrecondition ALREADY_DONE")
		same(t, "Finish again", s.finishes(first, succeeded), "OK")
		same(t, "Finish otherwise", s.finishes(first, failed), "FailedPrecondition ALREADY_DONE")
		same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
		late := s.works(s.others, &oncev1.BeginRequest{Name: "nightly", Key: "k", LeaseId: lease.id})
		_, err := late.stream.Recv()
		same(t, "who comes late", outcome(err), "FailedPrecondition ALREADY_DONE")
		for _, fact := range []string{"state=SUCCEEDED", "attempt=1", "owner=ann", "note=a note"} {
			if !strings.Contains(facts(err), fact) {
				t.Errorf("ALREADY_DONE tells %s, without %s", facts(err), fact)
			}
		}
		same(t, "places", s.contenders("nightly"), 0)
		own := s.works(s.callers, &oncev1.BeginRequest{Name: "nightly", Key: "other", LeaseId: lease.id})
		own.sees("begun 1")
		same(t, "the owner of a lease", s.recorded("other"), "other RUNNING 1 bob")
		own.cancel()
	})
}

func TestWorkThatWasLostOrHasFailedIsRepeatedAsItsCallersWant(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		skips := tonight()
		skips.OnLoss, skips.OnFailure = oncev1.Policy_POLICY_SKIP, oncev1.Policy_POLICY_SKIP
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		(<-s.ensemble.opened).Expire()
		first.sees("Aborted LEASE_LOST")
		same(t, "lost", s.recorded("k"), "k LOST 1 ann")
		s.works(s.callers, skips).comesTo("FailedPrecondition NOT_REPEATED")
		second := s.works(s.callers, tonight())
		second.comesTo("begun 2 after STATE_LOST 1 ann")
		same(t, "Finish", s.finishes(second, failed), "OK")
		s.works(s.callers, skips).comesTo("FailedPrecondition NOT_REPEATED")
		third := s.works(s.callers, tonight())
		third.comesTo("begun 3 after STATE_FAILED 2 ann a note")
		third.cancel() // without Finish, it is lost
		more := tonight()
		s.works(s.callers, more).comesTo("FailedPrecondition NOT_REPEATED")
		more.Attempts = 4
		fourth := s.works(s.callers, more)
		fourth.comesTo("begun 4 after STATE_LOST 3 ann")
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: fourth.begun.GetHoldId()})
		s.must(err)
		fourth.sees("OK")
		same(t, "released", s.recorded("k"), "k LOST 4 ann")
		same(t, "Finish of what was released", s.finishes(fourth, succeeded), "OK")
		same(t, "finished", s.recorded("k"), "k SUCCEEDED 4 ann a note")
	})
}

func TestFinishAfterALossRecordsTheOutcomeUnlessAnotherHasBegun(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		loses := func(key string, wait *durationpb.Duration) *working {
			request := tonight()
			request.Key, request.WaitTimeout = key, wait
			lost := s.works(s.callers, request)
			lost.comesTo("begun 1")
			for len(s.ensemble.opened) > 1 {
				<-s.ensemble.opened
			}
			(<-s.ensemble.opened).Expire()
			lost.sees("Aborted LEASE_LOST")
			return lost
		}
		alone := loses("alone", nil)
		same(t, "Finish", s.finishes(alone, succeeded), "OK")
		same(t, "record", s.recorded("alone"), "alone SUCCEEDED 1 ann a note")
		same(t, "places", s.contenders("nightly"), 0)

		beaten := loses("beaten", nil)
		request := tonight()
		request.Key = "beaten"
		second := s.works(s.callers, request)
		second.comesTo("begun 2 after STATE_LOST 1 ann")
		same(t, "Finish when another has begun", s.finishes(beaten, succeeded), "FailedPrecondition SUPERSEDED")
		same(t, "Finish of that", s.finishes(second, succeeded), "OK")
		same(t, "record", s.recorded("beaten"), "beaten SUCCEEDED 2 ann a note")

		waits, tries := loses("waits", durationpb.New(time.Second)), loses("tries", durationpb.New(0))
		other := s.acquire(s.others, &lockv1.AcquireRequest{Name: "nightly"})
		other.skips("queued 1", "granted")
		same(t, "Finish while another holds the lock", s.finishes(waits, succeeded), "DeadlineExceeded WAIT_TIMEOUT")
		same(t, "Finish that does not wait", s.finishes(tries, succeeded), "FailedPrecondition LOCK_HELD")
		same(t, "record", s.recorded("waits"), "waits LOST 1 ann")
		other.cancel()
		synctest.Wait()
		same(t, "Finish again", s.finishes(waits, failed), "OK")
		same(t, "record", s.recorded("waits"), "waits FAILED 1 ann a note")

		gone := loses("gone", nil)
		same(t, "Forget", s.forgets("gone", 0), "OK")
		same(t, "Finish of what is forgotten", s.finishes(gone, succeeded), "FailedPrecondition SUPERSEDED")
	})
}

func TestWorkIsRecordedWhateverBecomesOfTheReplies(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*standin.Reader, standin.Hook){
		"carried out": (*standin.Reader).After, "not carried out": (*standin.Reader).Before,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, s *scene) {
				loses := func() {
					var lost atomic.Bool
					fault(s.ensemble.Reader, func(of standin.Operation) error {
						if of.Name != "Commit" || !lost.CompareAndSwap(false, true) {
							return nil
						}
						return recipes.ErrOutcomeUnknown
					})
				}
				s.must(s.ensemble.MakeDirectory(s.context(), "/sidekeeper/once/nightly"))
				loses()
				request := tonight()
				request.WaitTimeout = durationpb.New(time.Minute)
				first := s.works(s.callers, request)
				first.sees("begun 1")
				loses()
				same(t, "Finish", s.finishes(first, succeeded), "OK")
				first.sees("OK")
				same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
			})
		})
	}
}

func TestWorkWaitsForAnEnsembleThatIsAwayAndIsTold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		var away atomic.Bool
		away.Store(true)
		s.ensemble.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && away.Load() {
				return recipes.ErrUnreachable
			}
			return nil
		})
		first := s.works(s.callers, tonight())
		synctest.Wait()
		same(t, "record", s.recorded("k"), "NotFound RECORD_NOT_FOUND")
		away.Store(false)
		first.comesTo("begun 1")
		away.Store(true)
		same(t, "Finish", s.finishes(first, succeeded), "Unavailable ENSEMBLE_UNREACHABLE")
		first.sees("OK")
		away.Store(false)
		same(t, "Finish again", s.finishes(first, succeeded), "OK")
		same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
	})
}

func TestWorkPerKeyRunsAtTheSameTimeAndGuardsWrites(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		perKey := func(key string) *oncev1.BeginRequest {
			return &oncev1.BeginRequest{Name: "nightly", Key: key, Per: oncev1.Per_PER_KEY}
		}
		first, second := s.works(s.callers, perKey("a")), s.works(s.callers, perKey("b"))
		first.sees("begun 1")
		second.sees("begun 1")
		s.works(s.callers, &oncev1.BeginRequest{Name: "nightly", Key: "a"}).comesTo("FailedPrecondition LOCK_KIND_MISMATCH")
		same(t, "the lock", s.contenders("nightly%2Fa"), 1)
		config := configv1.NewConfigServiceClient(s.connection(s.target()))
		guards := []*holdv1.Guard{{Hold: &holdv1.Guard_HoldId{HoldId: first.begun.GetHoldId()}}}
		writes := func() string {
			_, err := config.Put(s.context(), &configv1.PutRequest{Key: "x", Content: &configv1.PutRequest_Text{Text: "y"}, Guards: guards})
			return outcome(err)
		}
		same(t, "a guarded write", writes(), "OK")
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		same(t, "a guarded write afterwards", writes(), "FailedPrecondition GUARD_LOST")
		list, err := s.once.List(s.context(), &oncev1.ListRequest{Name: "nightly", PageSize: 1})
		s.must(err)
		same(t, "the first page", len(list.GetRecords()), 1)
		same(t, "its key", list.GetRecords()[0].GetKey(), "a")
		list, err = s.once.List(s.context(), &oncev1.ListRequest{Name: "nightly", PageToken: list.GetNextPageToken()})
		s.must(err)
		same(t, "the next page", list.GetRecords()[0].GetKey()+list.GetNextPageToken(), "b")
	})
}

func TestARecordIsKeptForAsLongAsItsCallerHasSaid(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		request := tonight()
		request.Keep = durationpb.New(time.Minute)
		first := s.works(s.callers, request)
		first.sees("begun 1")
		time.Sleep(2 * time.Minute) // which counts from Finish only
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		time.Sleep(time.Minute)
		s.works(s.callers, request).comesTo("FailedPrecondition ALREADY_DONE")
		time.Sleep(10 * time.Second)
		again := s.works(s.callers, request)
		again.comesTo("begun 1")
		again.cancel()
	})
}

func TestANameHasSoManyKeys(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		data, err := s.ensemble.memory.Read("/sidekeeper/once/nightly/k")
		s.must(err)
		for i := range recipes.MaxKeys - 1 {
			_, err := s.ensemble.Commit(s.context(), recipes.Create(fmt.Sprint("/sidekeeper/once/nightly/", i), data.Data))
			s.must(err)
		}
		same(t, "Finish needs no room", s.finishes(first, succeeded), "OK")
		s.works(s.callers, &oncev1.BeginRequest{Name: "nightly", Key: "more"}).comesTo("ResourceExhausted TOO_MANY_KEYS")
		same(t, "nothing is recorded", s.recorded("more"), "NotFound RECORD_NOT_FOUND")
		s.works(s.callers, tonight()).comesTo("FailedPrecondition ALREADY_DONE")
		same(t, "Forget", s.forgets("k", 0), "OK")
		more := s.works(s.callers, &oncev1.BeginRequest{Name: "nightly", Key: "more"})
		more.comesTo("begun 1")
		more.cancel()
	})
}
