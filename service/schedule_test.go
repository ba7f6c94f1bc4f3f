package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
)

type carriedSchedules struct {
	schedulev1.ScheduleServiceClient
	carriers *carriers
}

func (w carriedSchedules) Work(
	ctx context.Context, request *schedulev1.WorkRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[schedulev1.WorkResponse], error) {
	on := w.carriers.of(request.GetLeaseId())
	if on == nil {
		return w.ScheduleServiceClient.Work(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Work{Work: request}}, (*leasev1.Event).GetWork)
}

// A workman is one Work stream.
type workman struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[schedulev1.WorkResponse]
	cancel context.CancelFunc
	fire   *schedulev1.Fire
}

func (s *scene) worksFor(from callers, request *schedulev1.WorkRequest) *workman {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	stream, err := from.schedules.Work(ctx, proto.CloneOf(request))
	s.must(err)
	return &workman{t: s.t, stream: stream, cancel: cancel}
}

// next is the next event in words; a tick as its time on the day on which a bubble begins.
func (w *workman) next() string {
	event, err := w.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *schedulev1.WorkResponse_Queued:
		return fmt.Sprintf("queued %d", event.Queued.GetPosition())
	case *schedulev1.WorkResponse_Fire:
		w.fire = event.Fire
		return strings.TrimSpace(fmt.Sprintf("%s %d %s", clockOf(w.fire.GetTick().AsTime()), w.fire.GetAttempt(), w.fire.GetRunId()))
	case *schedulev1.WorkResponse_RevocationRequested:
		return "asked: " + event.RevocationRequested.GetReason()
	}
	return "another event"
}

func clockOf(at time.Time) string { return at.Format("15:04") }

func (w *workman) comesTo(want string) {
	w.t.Helper()
	next := w.next()
	for strings.HasPrefix(next, "queued") {
		next = w.next()
	}
	same(w.t, "event", next, want)
}

func (s *scene) finishesTick(w *workman, with oncev1.Outcome) string {
	_, err := s.schedules.Finish(s.context(), &schedulev1.FinishRequest{HoldId: w.fire.GetHoldId(), Outcome: with, Note: "a note"})
	return outcome(err)
}

func (s *scene) putsSchedule(request *schedulev1.PutRequest) string {
	_, err := s.schedules.Put(s.context(), request)
	return outcome(err)
}

// outcomesOf are those of the schedule in words, the newest first.
func (s *scene) outcomesOf(name string) string {
	got, err := s.schedules.History(s.context(), &schedulev1.HistoryRequest{Name: name})
	if err != nil {
		return outcome(err)
	}
	var all []string
	for _, of := range got.GetOutcomes() {
		state := strings.TrimPrefix(of.GetState().String(), "STATE_")
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", clockOf(of.GetTick().AsTime()), state, of.GetNote())))
	}
	return strings.Join(all, ", ")
}

// shownSchedule is how the schedule stands in words.
func (s *scene) shownSchedule(name string) string {
	got, err := s.schedules.Get(s.context(), &schedulev1.GetRequest{Name: name})
	if err != nil {
		return outcome(err)
	}
	of := got.GetSchedule()
	text := fmt.Sprintf("%s %s %s %s %s next %s", of.GetCron(), of.GetTimeZone(), of.GetMisfire(), of.GetStartWithin().AsDuration(),
		of.GetOnLoss(), clockOf(of.GetNext().AsTime()))
	if of.GetPaused() {
		text += " paused"
	}
	if running := of.GetRunning(); running != nil {
		text += fmt.Sprintf(" %s %s %d by %s", strings.TrimPrefix(running.GetState().String(), "STATE_"), clockOf(running.GetTick().AsTime()),
			running.GetAttempt(), running.GetOwner())
	}
	return text
}

var halfHourly = &schedulev1.PutRequest{Name: "report", Cron: "*/30 * * * *"}

func forReport(lease string) *schedulev1.WorkRequest {
	return &schedulev1.WorkRequest{Name: "report", Owner: "ann", LeaseId: lease}
}

func TestWorkersOfAScheduleBeginEachTickOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "without a schedule", s.worksFor(s.callers, forReport("")).next(), "NotFound SCHEDULE_NOT_FOUND")
		same(t, "Put", s.putsSchedule(halfHourly), "OK")
		first := s.worksFor(s.callers, forReport(""))
		time.Sleep(time.Second)
		second := s.worksFor(s.others, forReport(""))
		same(t, "the second", second.next(), "queued 1")
		same(t, "the first", first.next(), "00:30 1")
		if late := time.Since(first.fire.GetTick().AsTime()); late < 0 || late > time.Second {
			t.Errorf("it begins %v after its time", late)
		}
		same(t, "while it runs", s.shownSchedule("report"),
			"*/30 * * * * UTC MISFIRE_SKIP 5m0s POLICY_RETRY next 01:00 RUNNING 00:30 1 by ann")
		same(t, "Check", s.checked(s.callers, first.fire.GetHoldId()), "held")
		same(t, "Finish", s.finishesTick(first, succeeded), "OK")
		same(t, "the stream", first.next(), "OK")
		same(t, "Finish again", s.finishesTick(first, succeeded), "OK")
		same(t, "Finish otherwise", s.finishesTick(first, failed), "FailedPrecondition ALREADY_DONE")
		second.comesTo("01:00 1")
		third := s.worksFor(s.callers, forReport(""))
		second.cancel()
		third.comesTo("01:00 2")
		same(t, "Finish of what was lost", s.finishesTick(second, succeeded), "FailedPrecondition SUPERSEDED")
		same(t, "Finish", s.finishesTick(third, failed), "OK")
		same(t, "history", s.outcomesOf("report"), "01:00 FAILED a note, 01:00 LOST, 00:30 SUCCEEDED a note")
	})
}

func TestAWaitingWorkerHearsOfWhatChanges(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "report", Cron: "0 0 1 * *", Paused: new(true)}), "OK")
		ask := func(id string) string {
			_, err := s.schedules.Run(s.context(), &schedulev1.RunRequest{Name: "report", Id: id})
			return outcome(err)
		}
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "bob"})
		onLease := s.worksFor(s.callers, forReport(lease.id))
		time.Sleep(time.Second)
		same(t, "Run", ask("first"), "OK")
		same(t, "with a lease", onLease.next(), "00:00 1 first")
		same(t, "Finish", s.finishesTick(onLease, succeeded), "OK")
		first := s.worksFor(s.callers, forReport(""))
		time.Sleep(time.Hour)
		same(t, "Run", ask("now"), "OK")
		same(t, "the run", first.next(), "01:00 1 now")
		same(t, "Run again", ask("now"), "OK")
		same(t, "Finish", s.finishesTick(first, succeeded), "OK")
		second := s.worksFor(s.callers, forReport(""))
		time.Sleep(time.Second)
		same(t, "without a wait", s.worksFor(s.callers, &schedulev1.WorkRequest{Name: "report", WaitTimeout: durationpb.New(0)}).next(),
			"FailedPrecondition LOCK_HELD")
		same(t, "resumed with another line", s.putsSchedule(&schedulev1.PutRequest{Name: "report", Cron: "@hourly", Paused: new(false)}), "OK")
		same(t, "the tick", second.next(), "02:00 1")
		same(t, "released", outcome(errorOf(s.callers.Release(s.context(), &lockv1.ReleaseRequest{HoldId: second.fire.GetHoldId()}))), "OK")
		third := s.worksFor(s.callers, forReport(""))
		third.comesTo("02:00 2")
		same(t, "Finish", s.finishesTick(third, succeeded), "OK")
		_ = third.next()
		same(t, "nothing is due", s.worksFor(s.callers, &schedulev1.WorkRequest{Name: "report", WaitTimeout: durationpb.New(0)}).next(),
			"DeadlineExceeded WAIT_TIMEOUT")
		same(t, "nothing was due", s.worksFor(s.callers, &schedulev1.WorkRequest{Name: "report", WaitTimeout: durationpb.New(time.Minute)}).next(),
			"DeadlineExceeded WAIT_TIMEOUT")
		fourth := s.worksFor(s.callers, forReport(""))
		time.Sleep(time.Second)
		_, err := s.schedules.Delete(s.context(), &schedulev1.DeleteRequest{Name: "report"})
		same(t, "Delete", outcome(err), "OK")
		fourth.comesTo("NotFound SCHEDULE_NOT_FOUND")
		_, err = s.schedules.Delete(s.context(), &schedulev1.DeleteRequest{Name: "report"})
		same(t, "Delete again", outcome(err), "NotFound SCHEDULE_NOT_FOUND")
	})
}

func TestWhatIsNoScheduleIsRefusedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for want, request := range map[string]*schedulev1.PutRequest{
			"InvalidArgument INVALID_FIELD name":         {Name: "a//b", Cron: "* * * * *"},
			"InvalidArgument INVALID_FIELD cron":         {Name: "n", Cron: "0 0 31 2 *"},
			"InvalidArgument INVALID_FIELD time_zone":    {Name: "n", Cron: "* * * * *", TimeZone: "Europe/Atlantis"},
			"InvalidArgument INVALID_FIELD start_within": {Name: "n", Cron: "* * * * *", StartWithin: durationpb.New(time.Second - 1)},
			"InvalidArgument INVALID_FIELD misfire":      {Name: "n", Cron: "* * * * *", Misfire: 9},
			"InvalidArgument INVALID_FIELD on_loss":      {Name: "n", Cron: "* * * * *", OnLoss: 9},
			"NotFound SCHEDULE_NOT_FOUND":                {Name: "n", Paused: new(true)},
		} {
			same(t, "Put", s.putsSchedule(request), want)
		}
		same(t, "no line", s.putsSchedule(&schedulev1.PutRequest{Name: "n", Cron: "\x00 * * * *"}), "InvalidArgument INVALID_FIELD cron")
		same(t, "nothing", s.shownSchedule("n"), "NotFound SCHEDULE_NOT_FOUND")
		for _, err := range []error{
			errorOf(s.schedules.Run(s.context(), &schedulev1.RunRequest{Name: "n", Id: "a/b"})),
			errorOf(s.schedules.History(s.context(), &schedulev1.HistoryRequest{})),
			errorOf(s.schedules.List(s.context(), &schedulev1.ListRequest{PageSize: 1001})),
			errorOf(s.schedules.Finish(s.context(), &schedulev1.FinishRequest{HoldId: strings.Repeat("0", 32)})),
			errorOf(s.schedules.Finish(s.context(), &schedulev1.FinishRequest{
				HoldId: strings.Repeat("0", 32), Outcome: failed, Note: strings.Repeat("x", 257),
			})),
		} {
			same(t, "refused", strings.HasPrefix(outcome(err), "InvalidArgument INVALID_FIELD"), true)
		}
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{
			Name: "n", Cron: "0 3 * * *", TimeZone: "Europe/Berlin", Misfire: schedulev1.Misfire_MISFIRE_ONCE, StartWithin: durationpb.New(time.Hour),
			OnLoss: oncev1.Policy_POLICY_SKIP,
		}), "OK")
		same(t, "paused alone", s.putsSchedule(&schedulev1.PutRequest{Name: "n", Paused: new(true)}), "OK")
		same(t, "kept", s.shownSchedule("n"), "0 3 * * * Europe/Berlin MISFIRE_ONCE 1h0m0s POLICY_SKIP next 02:00 paused")
		same(t, "a lock is no attempt", s.finishesTick(&workman{fire: &schedulev1.Fire{
			HoldId: s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"}).hold,
		}}, succeeded), "NotFound HOLD_NOT_FOUND")
		work := s.works(s.callers, tonight())
		work.sees("begun 1")
		none := &workman{fire: &schedulev1.Fire{HoldId: work.begun.GetHoldId()}}
		same(t, "work is none", s.finishesTick(none, succeeded), "NotFound HOLD_NOT_FOUND")
		same(t, "Reset by an operator", outcome(errorOf(s.operators.schedules.Reset(s.context(), &schedulev1.ResetRequest{Name: "n"}))), "OK")
	})
}

func errorOf(_ any, err error) error { return err }

func TestSchedulesAreListedInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, name := range []string{"b", "a/2", "a/1", "ab"} {
			same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: name, Cron: "@daily"}), "OK")
		}
		_, err := s.ensemble.Commit(s.context(), recipes.Create("/sidekeeper/schedules/foreign", []byte("x")))
		s.must(err)
		list := func(request *schedulev1.ListRequest) (text string) {
			page, err := s.schedules.List(s.context(), request)
			s.must(err)
			for _, of := range page.GetSchedules() {
				text += of.GetName() + " " + of.GetCron() + ", "
			}
			if page.GetNextPageToken() != "" {
				request.PageToken = page.GetNextPageToken()
				text += "then "
			}
			return text
		}
		same(t, "all", list(&schedulev1.ListRequest{PageSize: 1000}), "a/1 @daily, a/2 @daily, ab @daily, b @daily, foreign , ")
		under := &schedulev1.ListRequest{Prefix: "a", PageSize: 1}
		same(t, "under a prefix", list(under)+list(under), "a/1 @daily, then a/2 @daily, ")
	})
}

func TestASidecarWhoseClockIsWrongBeginsNothing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Put", s.putsSchedule(halfHourly), "FailedPrecondition CLOCKS_DISAGREE")
		same(t, "nothing", s.shownSchedule("report"), "NotFound SCHEDULE_NOT_FOUND")
	}, func(options *service.Options) { options.ClockTolerance = -time.Second })
}

func TestWhoComesBackToATickIsToldOfTheSameAttempt(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"running", "finished", "malformed", "gone"} {
		r := newReturning(t, false, false)
		at := time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC)
		running := map[string]any{"tick": at, "outcome": "BEGUN", "attempt": 2, "token": r.token, "begun": at}
		form := map[string]any{"cron": "0 0 1 1 *", "zone": "UTC", "next": at.AddDate(100, 0, 0)}
		if record == "finished" {
			running["outcome"] = "SUCCEEDED"
			form["recent"] = []any{running}
		} else {
			form["running"], form["place"] = running, r.path
		}
		data, err := json.Marshal(form)
		r.must(err)
		if record == "malformed" {
			data = data[1:]
		}
		r.must(r.ensemble.MakeDirectory(r.context(), "/sidekeeper/schedules"))
		if record != "gone" {
			_, err = r.ensemble.Commit(r.context(), recipes.Create("/sidekeeper/schedules/orders", data))
			r.must(err)
		}
		start := &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Work{Work: &schedulev1.WorkRequest{Name: "orders"}}}
		r.claims(&leasev1.Claim{Start: start, HoldId: earlierHold, Token: r.token})
		switch record {
		case "finished":
			r.sees("opened", "1 ended 10 LOCK_BROKEN")
			continue
		case "malformed", "gone":
			r.sees("opened", "1 fire 0")
			same(t, "the hold", r.holds[1], earlierHold)
			continue
		}
		r.sees("opened", "1 fire 2")
		same(t, "the hold", r.holds[1], earlierHold)
		_, err = r.schedules.Finish(r.context(), &schedulev1.FinishRequest{HoldId: earlierHold, Outcome: succeeded})
		same(t, "Finish", outcome(err), "OK")
		r.sees("1 ended 0")
		same(t, "history", r.outcomesOf("orders"), "00:30 SUCCEEDED")
	}
}
