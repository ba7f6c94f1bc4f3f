package service_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

// A clerk writes down what is told of schedules.
type clerk struct {
	service.NoEvents
	mu   sync.Mutex
	told string
}

func (c *clerk) note(form string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told += fmt.Sprintf(form, args...) + ", "
}

// read is what was told since the last look.
func (c *clerk) read() (told string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told, c.told = c.told, ""
	return told
}

func (c *clerk) TickBegun(name string, late time.Duration) {
	c.note("%s %v late", name, late.Round(time.Second))
}

func (c *clerk) TicksMissed(name string, count int) { c.note("%s missed %d", name, count) }

func (c *clerk) AttemptEnded(name, outcome string, lasted time.Duration) {
	c.note("%s %s after %v", name, outcome, lasted.Round(time.Minute))
}

func TestEventsTellOfTicksAndAttempts(t *testing.T) {
	t.Parallel()
	events := &clerk{}
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Put", s.putsSchedule(halfHourly), "OK")
		time.Sleep(92 * time.Minute)
		first := s.worksFor(s.callers, forReport(""))
		first.comesTo("01:30 1")
		same(t, "late", events.read(), "report missed 2, report 2m0s late, ")
		same(t, "running", fmt.Sprint(s.services.RunningTicks()), "[report]")
		first.cancel()
		second := s.worksFor(s.others, forReport(""))
		second.comesTo("01:30 2")
		same(t, "lost", events.read(), "report lost after 0s, ")
		time.Sleep(10 * time.Minute)
		same(t, "Finish", s.finishesTick(second, failed)+s.finishesTick(second, failed), "OKOK")
		same(t, "the stream", second.next(), "OK")
		same(t, "failed", events.read(), "report failed after 10m0s, ")
		same(t, "none runs", fmt.Sprint(s.services.RunningTicks()), "[]")
		third := s.worksFor(s.callers, forReport(""))
		third.comesTo("02:00 1")
		third.cancel()
		time.Sleep(6 * time.Minute)
		none := s.worksFor(s.callers, &schedulev1.WorkRequest{Name: "report", WaitTimeout: durationpb.New(time.Minute)})
		none.comesTo("DeadlineExceeded WAIT_TIMEOUT")
		same(t, "too late to begin again", events.read(), "report 0s late, report skipped after 6m0s, ")
		time.Sleep(time.Hour)
		same(t, "another line", s.putsSchedule(&schedulev1.PutRequest{Name: "report", Cron: "@daily"}), "OK")
		same(t, "missed", events.read(), "report missed 2, ")
	}, func(options *service.Options) { options.Events = events })
}
