package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func TestARecordIsForgottenWhenItsWorkDoesNotRun(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "what never was", s.forgets("k", 0), "NotFound RECORD_NOT_FOUND")
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		same(t, "while it runs", s.forgets("k", 0), "FailedPrecondition KEY_RUNNING")
		same(t, "while it runs, after a wait", s.forgets("k", time.Second), "FailedPrecondition KEY_RUNNING")
		same(t, "record", s.recorded("k"), "k RUNNING 1 ann")
		forgotten := make(chan string, 1)
		go func() { forgotten <- s.forgets("k", time.Hour) }()
		synctest.Wait()
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		same(t, "who waits", receive(t, forgotten), "OK")
		same(t, "record", s.recorded("k"), "NotFound RECORD_NOT_FOUND")
		same(t, "sessions", len(s.contendersLeft()), 0)
		_, err := s.ensemble.Commit(s.context(), recipes.Create("/sidekeeper/once/nightly/odd", []byte("{}")))
		s.must(err)
		same(t, "another program's", s.recorded("odd"), "FailedPrecondition RECORD_MALFORMED")
		s.works(s.callers, &oncev1.BeginRequest{Name: "nightly", Key: "odd"}).comesTo("FailedPrecondition RECORD_MALFORMED")
		same(t, "Forget of it", s.forgets("odd", 0), "OK")
	})
}

// contendersLeft are the places in the lock of the work.
func (s *scene) contendersLeft() []string { return s.ensemble.memory.Names("/locks/nightly") }

func TestForgetIsForOperators(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	_, err := s.once.Forget(s.context(), &oncev1.ForgetRequest{Name: "nightly", Key: "k"})
	same(t, "Forget", outcome(err), "PermissionDenied OPERATOR_ONLY")
}

func TestBadInputBeginsNothing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := strings.Repeat("k", 65)
		for _, wrong := range []struct {
			field  string
			change func(*oncev1.BeginRequest)
		}{
			{"name", func(r *oncev1.BeginRequest) { r.Name = "a//b" }},
			{"key", func(r *oncev1.BeginRequest) { r.Key = long }},
			{"key", func(r *oncev1.BeginRequest) { r.Key = "" }},
			{"key", func(r *oncev1.BeginRequest) { r.Key = "a/b" }},
			{"key", func(r *oncev1.BeginRequest) { r.Name, r.Per = strings.Repeat("n/", 99)+"n", oncev1.Per_PER_KEY }},
			{"per", func(r *oncev1.BeginRequest) { r.Per = 7 }},
			{"keep", func(r *oncev1.BeginRequest) { r.Keep = durationpb.New(999 * time.Millisecond) }},
			{"keep", func(r *oncev1.BeginRequest) { r.Keep = durationpb.New(367 * 24 * time.Hour) }},
			{"on_loss", func(r *oncev1.BeginRequest) { r.OnLoss = 7 }},
			{"on_failure", func(r *oncev1.BeginRequest) { r.OnFailure = 7 }},
			{"attempts", func(r *oncev1.BeginRequest) { r.Attempts = -1 }},
			{"attempts", func(r *oncev1.BeginRequest) { r.Attempts = 1001 }},
			{"lease_id", func(r *oncev1.BeginRequest) { r.LeaseId = "x" }},
			{"wait_timeout", func(r *oncev1.BeginRequest) { r.WaitTimeout = durationpb.New(-1) }},
			{"owner", func(r *oncev1.BeginRequest) { r.Owner = "a\nb" }},
			{"metadata", func(r *oncev1.BeginRequest) { r.Metadata = map[string]string{"a": strings.Repeat("x", 1025)} }},
		} {
			request := tonight()
			wrong.change(request)
			s.works(s.callers, request).sees("InvalidArgument INVALID_FIELD " + wrong.field)
		}
		same(t, "records", len(s.ensemble.memory.Names("/sidekeeper/once")), 0)
		same(t, "places", len(s.contendersLeft()), 0)

		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		hold := first.begun.GetHoldId()
		for _, wrong := range []struct {
			field   string
			request *oncev1.FinishRequest
		}{
			{"outcome", &oncev1.FinishRequest{HoldId: hold}},
			{"outcome", &oncev1.FinishRequest{HoldId: hold, Outcome: 7}},
			{"note", &oncev1.FinishRequest{HoldId: hold, Outcome: succeeded, Note: strings.Repeat("n", 257)}},
			{"hold_id", &oncev1.FinishRequest{HoldId: "x", Outcome: succeeded}},
		} {
			_, err := s.once.Finish(s.context(), wrong.request)
			same(t, "Finish", outcome(err), "InvalidArgument INVALID_FIELD "+wrong.field)
		}
		same(t, "record", s.recorded("k"), "k RUNNING 1 ann")
		lock := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		same(t, "Finish of a lock", s.finishesHold(lock.hold, succeeded), "NotFound HOLD_NOT_FOUND")
		same(t, "Check of the lock", s.checked(s.callers, lock.hold), "held")
		same(t, "Finish of nothing", s.finishesHold(strings.Repeat("0", 32), succeeded), "NotFound HOLD_NOT_FOUND")
		for field, request := range map[string]*oncev1.ForgetRequest{
			"name": {Key: "k"}, "key": {Name: "n"}, "wait_timeout": {Name: "n", Key: "k", WaitTimeout: durationpb.New(-1)},
		} {
			_, err := s.operators.once.Forget(s.context(), request)
			same(t, "Forget", outcome(err), "InvalidArgument INVALID_FIELD "+field)
		}
		_, err := s.once.Get(s.context(), &oncev1.GetRequest{Name: "n", Key: "a/b"})
		same(t, "Get", outcome(err), "InvalidArgument INVALID_FIELD key")
		_, err = s.once.List(s.context(), &oncev1.ListRequest{Name: "n", PageSize: 1001})
		same(t, "List", outcome(err), "InvalidArgument INVALID_FIELD page_size")
	})
}

func TestALeasesStreamCarriesWork(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.carryOpened(s.callers)
		c.startWith(&leasev1.Start{RequestId: 1, Request: &leasev1.Start_Begin{Begin: tonight()}})
		c.sees("1 begun 1")
		same(t, "Finish", s.finishesHold(c.holds[1], succeeded), "OK")
		c.sees("1 ended 0")
		same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
		c.startWith(&leasev1.Start{RequestId: 2, Request: &leasev1.Start_Begin{Begin: tonight()}})
		c.sees("2 ended 9 ALREADY_DONE")
	})
}

// comesBackToWork has the caller of orders' lock claim that it holds it for work.
func (r *returning) comesBackToWork() {
	r.t.Helper()
	begin := &oncev1.BeginRequest{Name: "orders", Key: "k"}
	start := &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Begin{Begin: begin}}
	r.claims(&leasev1.Claim{Start: start, HoldId: earlierHold, Token: r.token})
}

// recordsWork writes the record that the process before has written.
func (r *returning) recordsWork() {
	r.t.Helper()
	data, err := json.Marshal(map[string]any{"outcome": "BEGUN", "attempt": 2, "token": r.token, "place": r.path, "keep_ns": time.Hour})
	r.must(err)
	r.must(r.ensemble.MakeDirectory(r.context(), "/sidekeeper/once/orders"))
	_, err = r.ensemble.Commit(r.context(), recipes.Create("/sidekeeper/once/orders/k", data))
	r.must(err)
}

func TestWhoComesBackToWorkIsToldOfTheSameAttempt(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, false)
	r.recordsWork()
	r.comesBackToWork()
	r.sees("opened", "1 begun 2")
	same(t, "the hold", r.holds[1], earlierHold)
	same(t, "Finish", r.finishesHold(earlierHold, succeeded), "OK")
	r.sees("1 ended 0")
	got, err := r.once.Get(r.context(), &oncev1.GetRequest{Name: "orders", Key: "k"})
	r.must(err)
	same(t, "state", got.GetRecord().GetState(), oncev1.State_STATE_SUCCEEDED)
}

// What ends work is admitted also by a sidecar that stops, which waits for it.
func TestWorkIsFinishedWhileItsSidecarStops(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		behind := s.works(s.others, &oncev1.BeginRequest{Name: "nightly", Key: "other"})
		behind.sees("queued 1")
		drained := make(chan error, 1)
		go func() { drained <- s.services.Drain(s.context(), time.Minute) }()
		first.sees("asked: the sidecar is stopping")
		behind.comesTo("Unavailable SIDECAR_STOPPING")
		same(t, "Finish", s.finishes(first, succeeded), "OK")
		first.sees("OK")
		s.must(receive(t, drained))
		same(t, "record", s.recorded("k"), "k SUCCEEDED 1 ann a note")
		same(t, "what was never begun", s.recorded("other"), "NotFound RECORD_NOT_FOUND")
		same(t, "who comes late", s.works(s.others, &oncev1.BeginRequest{Name: "nightly", Key: "late"}).next(), "Unavailable SIDECAR_STOPPING")
	})
}

// A revocation's grace, an operator and the caller itself end the hold: the outcome is recorded all the same.
func TestWorkIsFinishedHoweverItsHoldHasEnded(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for how, end := range map[string]func(w *working){
			"Aborted LOCK_REVOKED": func(*working) {
				_, err := s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "nightly", Reason: "now", Grace: durationpb.New(time.Second)})
				s.must(err)
			},
			"Aborted LOCK_BROKEN": func(w *working) {
				_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{
					Name: "nightly", FencingToken: w.begun.GetFencingToken(), Reason: "now",
				})
				s.must(err)
			},
			"Canceled": func(w *working) { w.cancel() },
		} {
			request := tonight()
			request.Key = strings.ReplaceAll(how, " ", "-")
			w := s.works(s.callers, request)
			w.comesTo("begun 1")
			end(w)
			next := w.next()
			for strings.HasPrefix(next, "asked") {
				next = w.next()
			}
			same(t, "end", next, how)
			same(t, "Finish after "+how, s.finishes(w, succeeded), "OK")
			same(t, "record", s.recorded(request.GetKey()), request.GetKey()+" SUCCEEDED 1 ann a note")
		}
		same(t, "places", len(s.contendersLeft()), 0)
	})
}
