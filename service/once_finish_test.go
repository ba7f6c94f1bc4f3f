package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// The caller's connection has fallen silent, and its place stands for as long as it may count on it.
func TestFinishOverAnotherConnectionIsRecordedBeforeAnotherAttemptBegins(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		silent, fallSilent := s.dialSilent()
		first := s.works(silent, tonight())
		first.sees("begun 1")
		behind := s.works(s.others, tonight())
		behind.sees("queued 1")
		fallSilent()
		s.awaitEnd(first.begun.GetHoldId())
		same(t, "places", s.contenders("nightly"), 2)
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		behind.comesTo("FailedPrecondition ALREADY_DONE")
		same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
	}, long)
}

// Its transaction was carried out, and its reply was lost with the process before.
func TestFinishIsAskedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	for _, finished := range []bool{true, false} {
		r := newReturning(t, false, false)
		r.recordsWork()
		if finished {
			data, err := r.ensemble.memory.Read("/sidekeeper/once/orders/k")
			r.must(err)
			r.must(r.ensemble.memory.Set("/sidekeeper/once/orders/k", []byte(strings.Replace(string(data.Data), "BEGUN", "SUCCEEDED", 1))))
		}
		r.breaks()
		r.comesBackToWork()
		r.sees("opened", "1 ended 10 LOCK_BROKEN")
		same(t, "Finish", r.finishesHold(earlierHold, succeeded), "OK")
		got, err := r.once.Get(r.context(), &oncev1.GetRequest{Name: "orders", Key: "k"})
		r.must(err)
		same(t, "state", got.GetRecord().GetState(), oncev1.State_STATE_SUCCEEDED)
		same(t, "Finish otherwise", r.finishesHold(earlierHold, failed), "FailedPrecondition ALREADY_DONE")
	}
}

func TestBeginThatDoesNotWaitDoesNotWaitForAPlaceElsewhereEither(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		const place = "/elsewhere/_c_00000000-0000-0000-0000-000000000000-lock-0000000001"
		s.must(s.ensemble.MakeDirectory(s.context(), "/elsewhere"))
		s.must(s.ensemble.MakeDirectory(s.context(), "/sidekeeper/once/nightly"))
		for path, data := range map[string]string{
			place: "", "/sidekeeper/once/nightly/k": `{"outcome":"BEGUN","attempt":1,"token":1,"place":"` + place + `"}`,
		} {
			_, err := s.ensemble.Commit(s.context(), recipes.Create(path, []byte(data)))
			s.must(err)
		}
		tries := tonight()
		tries.WaitTimeout = durationpb.New(0)
		s.works(s.callers, tries).comesTo("FailedPrecondition LOCK_HELD")
		waits := s.works(s.callers, tonight())
		time.Sleep(3 * time.Second)
		s.must(s.ensemble.memory.Delete(place))
		waits.comesTo("begun 2 after STATE_LOST 1")
		waits.cancel()
	})
}

func TestACallerThatIsRefusedHearsOfItWhenItsPlaceIsGone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.others, &leasev1.OpenRequest{})
		lease.session.Before(func(of standin.Operation) error {
			if of.Name == "Dequeue" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		for outcome, told := range map[oncev1.Outcome]string{succeeded: "ALREADY_DONE", failed: "NOT_REPEATED"} {
			request := tonight()
			request.Key = told
			first := s.works(s.callers, request)
			first.comesTo("begun 1")
			request.LeaseId, request.OnFailure = lease.id, oncev1.Policy_POLICY_SKIP
			behind := s.works(s.others, request)
			behind.sees("queued 1")
			same(t, "Finish", s.finishes(first, outcome), "OK")
			behind.comesTo("FailedPrecondition " + told)
			same(t, "places", s.contenders("nightly"), 0)
		}
	})
}

func TestFinishIsAdmittedWhateverTheLimitsAndTheDrain(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*service.Options){
		"quota":      func(o *service.Options) { o.LeaseShare = func(string) int { return 2 } },
		"max-leases": func(o *service.Options) { o.MostLeases = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, s *scene) {
				first := s.works(s.callers, tonight())
				first.sees("begun 1")
				(<-s.ensemble.opened).Expire()
				first.sees("Aborted LEASE_LOST")
				s.open(s.callers, &leasev1.OpenRequest{})
				holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
				s.works(s.callers, tonight()).sees(map[string]string{
					"quota": "ResourceExhausted QUOTA_EXCEEDED", "max-leases": "ResourceExhausted LEASE_LIMIT",
				}[name])
				drained := s.drain(time.Hour)
				holder.sees("asked by sidekeeper the sidecar is stopping")
				same(t, "Finish", s.finishes(first, succeeded), "OK")
				same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
				_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: holder.hold})
				s.must(err)
				s.must(<-drained)
			}, limit)
		})
	}
}

func TestFinishThatWaitsForTheLockHoldsNoDrainUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		(<-s.ensemble.opened).Expire()
		first.sees("Aborted LEASE_LOST")
		elsewhere := s.ensemble.memory.OpenSession(time.Hour)
		_, err := recipes.Lock{Path: "/locks/nightly"}.Join(s.context(), elsewhere, recipes.Exclusive, recipes.About{})
		s.must(err)
		answer := make(chan string, 1)
		go func() { answer <- s.finishes(first, succeeded) }()
		synctest.Wait()
		drained := s.drain(10 * time.Second)
		same(t, "Finish", receive(t, answer), "Aborted SIDECAR_STOPPING")
		s.must(<-drained)
	})
}
