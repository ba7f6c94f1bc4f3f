package service_test

import (
	"fmt"
	"testing"
	"time"

	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// standOf is how metrics see the schedules.
func standOf(s *scene) string { return fmt.Sprint(s.services.ScheduleStates())[len("map"):] }

func TestScheduleStatesTellWhichSchedulesAreOverdue(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "none", standOf(s), "[]")
		same(t, "Put", s.putsSchedule(halfHourly), "OK")
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "paused", Cron: "* * * * *", Paused: new(true)}), "OK")
		same(t, "made", standOf(s), "[paused:paused report:on_time]")
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "paused", Cron: "@daily", Paused: new(false)}), "OK")
		same(t, "another line", standOf(s), "[paused:on_time report:on_time]")
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "paused", Paused: new(true)}), "OK")
		time.Sleep(66 * time.Minute)
		same(t, "two ticks later", standOf(s), "[paused:paused report:overdue]")
		other := service.New(s.options, s.ensemble)
		same(t, "a sidecar that no caller has named one to", fmt.Sprint(other.ScheduleStates()), "map[]")
		s.ensemble.Reader.Suspend()
		same(t, "without contact", standOf(s), "[paused:unknown report:unknown]")
		s.ensemble.Reader.Resume()
		first := s.worksFor(s.callers, forReport(""))
		time.Sleep(24 * time.Minute)
		first.comesTo("01:30 1")
		same(t, "Finish", s.finishesTick(first, succeeded), "OK")
		time.Sleep(time.Minute)
		same(t, "after a success", standOf(s), "[paused:paused report:on_time]")
		_, err := s.ensemble.Commit(s.context(), recipes.Set("/sidekeeper/schedules/report", []byte("x"), -1))
		s.must(err)
		time.Sleep(15 * time.Minute)
		same(t, "malformed", standOf(s), "[paused:paused report:unknown]")
		_, err = s.schedules.Delete(s.context(), &schedulev1.DeleteRequest{Name: "report"})
		same(t, "Delete", outcome(err), "OK")
		same(t, "deleted", standOf(s), "[paused:paused]")
		_, err = s.ensemble.Commit(s.context(), recipes.Delete("/sidekeeper/schedules/paused", -1))
		s.must(err)
		time.Sleep(15 * time.Minute)
		same(t, "deleted elsewhere", standOf(s), "[]")
	})
}

// A look may fail while contact seems to stand. Then what was read before goes on for a while, and tells nothing that may have changed.
func TestAScheduleThatMayHaveBecomeOverdueIsUnknownUntilItIsRead(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "often", Cron: "*/5 * * * *"}), "OK")
		same(t, "Put", s.putsSchedule(&schedulev1.PutRequest{Name: "backup", Cron: "@daily"}), "OK")
		s.ensemble.Reader.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		time.Sleep(14 * time.Minute)
		same(t, "before", standOf(s), "[backup:on_time often:on_time]")
		time.Sleep(2 * time.Minute)
		same(t, "when the line says so", standOf(s), "[backup:on_time often:unknown]")
		time.Sleep(45 * time.Minute)
		same(t, "after an hour", standOf(s), "[backup:unknown often:unknown]")
	})
}
