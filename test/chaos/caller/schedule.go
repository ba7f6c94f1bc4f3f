package caller

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// Crontab is the workload of a crontab that all processes have.
const Crontab = "W16"

// How many lines fire each minute in rounds among others, and in those of the crontab alone; how many workers each process has for them. Each
// line has workers beside more than one sidecar.
const (
	fewLines, fewWorkers = 6, 2
	// CrontabLines is how many lines of the crontab fire each minute.
	CrontabLines   = 50
	crontabWorkers = 10
)

func workForFew(ctx context.Context, c *caller) {
	c.workFor(ctx, fewLines, fewWorkers, time.Second)
}

func workForCrontab(ctx context.Context, c *caller) {
	c.workFor(ctx, CrontabLines, crontabWorkers, 5*time.Second)
}

// workFor works for one line of a crontab or, as the last caller of a process, asks for a run of any line now and then. It puts the schedule
// first, as each machine does that has the crontab.
func (c *caller) workFor(ctx context.Context, lines, workers int, often time.Duration) {
	connection, err := dial(c.order.Address)
	if err != nil {
		return
	}
	defer connection.Close()
	schedules := schedulev1.NewScheduleServiceClient(connection)
	if c.index == workers {
		for pause(ctx, c.between(often, 3*often)) {
			c.calm(ctx, c.request(schedules, c.rule(c.dice.IntN(lines))))
		}
		return
	}
	rule := c.rule((c.order.Slot*workers + c.index) % lines)
	for c.put(ctx, schedules, rule) != nil && ctx.Err() == nil {
		c.calm(ctx, false)
	}
	for pause(ctx, c.between(0, 50*time.Millisecond)) {
		c.calm(ctx, c.workOnce(ctx, rule.GetName()))
	}
}

// rule is that of a line: some lines catch up, some repeat nothing, and some let ticks pass that are late.
func (c *caller) rule(line int) *schedulev1.PutRequest {
	rule := &schedulev1.PutRequest{
		Name: c.name("line/%d", line), Cron: "* * * * *", Misfire: schedulev1.Misfire_MISFIRE_SKIP,
		StartWithin: durationpb.New(time.Minute), OnLoss: oncev1.Policy_POLICY_RETRY,
	}
	switch line % 5 {
	case 1:
		rule.Misfire = schedulev1.Misfire_MISFIRE_ONCE
	case 2:
		rule.OnLoss = oncev1.Policy_POLICY_SKIP
	case 3:
		rule.StartWithin = durationpb.New(3 * time.Second)
	}
	return rule
}

func (c *caller) put(ctx context.Context, schedules schedulev1.ScheduleServiceClient, rule *schedulev1.PutRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := schedules.Put(ctx, rule)
	return err
}

// request asks for a run, and says whether that is recorded.
func (c *caller) request(schedules schedulev1.ScheduleServiceClient, rule *schedulev1.PutRequest) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	op := c.newest.Add(1)
	id := fmt.Sprintf("%d-%d", c.order.Client, op)
	c.note(op, history.Event{Kind: history.Requesting, Schedule: rule.GetName(), Run: id, Sidecar: c.order.Sidecar})
	_, err := schedules.Run(ctx, &schedulev1.RunRequest{Name: rule.GetName(), Id: id})
	c.note(op, ending(err))
	return err == nil
}

// said is what a schedule's node calls an outcome.
var said = map[sidekeeper.Outcome]string{sidekeeper.Succeeded: "SUCCEEDED", sidekeeper.Failed: "FAILED"}

// workOnce waits for a tick, works on it and says how that went. It says whether there was one.
func (c *caller) workOnce(ctx context.Context, schedule string) bool {
	op := c.begin(history.Event{Kind: history.Working, Schedule: schedule, Resumes: c.order.Resumes})
	tick, err := c.library.Work(ctx, schedule, sidekeeper.WorkOptions{
		Owner: history.Owner(c.order.Client, op),
		OnQueued: func(queued sidekeeper.Queued) {
			c.note(op, history.Event{Kind: history.Queued, Position: queued.Position})
		},
		OnSuspended: func(time.Duration) { c.note(op, history.Event{Kind: history.Suspended}) },
		OnResumed:   func() { c.note(op, history.Event{Kind: history.Resumed}) },
	})
	if err != nil {
		c.noteEnd(ctx, op, err)
		return false
	}
	c.note(op, history.Event{
		Kind: history.Begun, Token: tick.FencingToken(), Tick: tick.At(), Run: tick.RunID(), Count: int64(tick.Number()),
	})
	h := &hold{caller: c, op: op, name: schedule, lock: tick, stop: make(chan struct{})}
	h.look()
	h.stopped.Go(h.watch)
	h.stay(ctx, c.workTime())
	if c.dice.IntN(8) == 0 {
		h.end(tick.Release)
		return true
	}
	outcome := sidekeeper.Succeeded
	if c.dice.IntN(4) == 0 {
		outcome = sidekeeper.Failed
	}
	c.note(op, history.Event{Kind: history.Finishing, Reason: said[outcome]})
	h.end(func(ctx context.Context) error { // also if it was lost: by then its caller may not know
		err := tick.Finish(ctx, outcome, "")
		finished := ending(err)
		finished.Kind, finished.Outcome = history.Finished, history.Unknown
		if err == nil {
			finished.Outcome = history.OK
		}
		c.note(op, finished)
		return err
	})
	return true
}

// workTime is a moment and, one time out of eight, long enough for anything to happen meanwhile.
func (c *caller) workTime() time.Duration {
	if c.dice.IntN(8) == 0 {
		return c.between(c.order.Timeout/2, 2*c.order.Timeout)
	}
	return c.between(0, 40*time.Millisecond)
}
