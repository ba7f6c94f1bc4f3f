package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/internal/cron"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newScheduleCommand(reach *reach) *cobra.Command {
	pause := func(paused bool) stubCall[schedulev1.ScheduleServiceClient] {
		return func(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
			got, err := schedules.Put(ctx, &schedulev1.PutRequest{Name: args[0], Paused: new(paused)})
			return reach.showSchedule(to, got.GetSchedule(), err)
		}
	}
	address, operators := &reach.address, &reach.operatorAddress
	return parent("schedule", "Show, put, pause and run schedules",
		scheduleCommand(reach, address, "ls [PREFIX]", "List schedules", cobra.MaximumNArgs(1), reach.scheduleList),
		scheduleCommand(reach, address, "show NAME", "Show how a schedule stands", cobra.ExactArgs(1), reach.scheduleShow),
		scheduleCommand(reach, address, "history NAME", "Show what became of the last ticks", cobra.ExactArgs(1), reach.scheduleHistory),
		newSchedulePutCommand(reach),
		scheduleCommand(reach, address, "pause NAME", "Let no tick begin", cobra.ExactArgs(1), pause(true)),
		scheduleCommand(reach, address, "resume NAME", "Let ticks begin again", cobra.ExactArgs(1), pause(false)),
		newScheduleRunCommand(reach),
		scheduleCommand(reach, operators, "reset NAME", "Set a next tick that is too far ahead (operators' socket)", cobra.ExactArgs(1),
			reach.scheduleReset),
		scheduleCommand(reach, operators, "rm NAME", "Remove a schedule and its history (operators' socket)", cobra.ExactArgs(1),
			reach.scheduleRemove),
	)
}

func scheduleCommand(
	reach *reach, address *string, use, short string, fit cobra.PositionalArgs, do stubCall[schedulev1.ScheduleServiceClient],
) *cobra.Command {
	return stubCommand(reach, address, schedulev1.NewScheduleServiceClient, use, short, fit, timed(reach, do))
}

func (r *reach) scheduleList(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
	all, err := allPages(func(token string) ([]*schedulev1.Schedule, string, error) {
		page, err := schedules.List(ctx, &schedulev1.ListRequest{Prefix: prefixOf(args), PageToken: token})
		return page.GetSchedules(), page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	return r.showSchedules(to, all)
}

func (r *reach) scheduleShow(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
	got, err := schedules.Get(ctx, &schedulev1.GetRequest{Name: args[0]})
	return r.showSchedule(to, got.GetSchedule(), err)
}

func (r *reach) showSchedule(to io.Writer, of *schedulev1.Schedule, err error) error {
	if err != nil {
		return err
	}
	return r.showSchedules(to, []*schedulev1.Schedule{of})
}

func (r *reach) showSchedules(to io.Writer, schedules []*schedulev1.Schedule) error {
	all := &schedulev1.ListResponse{Schedules: schedules}
	return tabulate(r, to, all, "NAME CRON ZONE NEXT STATE LAST", schedules, func(of *schedulev1.Schedule) []string {
		return []string{
			of.GetName(), show.Printable(of.GetCron()), show.Printable(of.GetTimeZone()), momentOf(of.GetNext()), stateOfSchedule(of),
			stateOfOutcome(of.GetLast()),
		}
	})
}

// stateOfSchedule is what a person should know first.
func stateOfSchedule(of *schedulev1.Schedule) string {
	switch {
	case of.GetCron() == "":
		return "malformed"
	case of.GetRunning() != nil:
		return stateOfOutcome(of.GetRunning())
	case of.GetPaused():
		return "paused"
	case of.GetNextTooFar():
		return "next-too-far"
	}
	return "waiting"
}

func stateOfOutcome(of *schedulev1.Outcome) string {
	if of == nil {
		return "-"
	}
	return show.Enum(of.GetState())
}

func momentOf(at *timestamppb.Timestamp) string {
	if at == nil {
		return "-"
	}
	return at.AsTime().Format(time.RFC3339)
}

func (r *reach) scheduleHistory(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
	all, err := schedules.History(ctx, &schedulev1.HistoryRequest{Name: args[0]})
	if err != nil {
		return err
	}
	return tabulate(r, to, all, "TICK STATE ATTEMPT OWNER BEGUN TOOK NOTE", all.GetOutcomes(), func(of *schedulev1.Outcome) []string {
		tick, took, note := momentOf(of.GetTick()), "-", show.Printable(of.GetNote())
		if of.GetRunId() != "" {
			tick += " (" + show.Printable(of.GetRunId()) + ")"
		}
		if of.GetBegun() != nil && of.GetEnded() != nil {
			took = max(0, of.GetEnded().AsTime().Sub(of.GetBegun().AsTime())).Round(time.Millisecond).String()
		}
		if of.GetMissed() > 0 {
			note = fmt.Sprintf("%d missed", of.GetMissed())
		}
		return []string{tick, stateOfOutcome(of), strconv.Itoa(int(of.GetAttempt())), show.Owner(of.GetOwner()), momentOf(of.GetBegun()), took, note}
	})
}

func newSchedulePutCommand(reach *reach) *cobra.Command {
	var zone string
	var within time.Duration
	misfire, onLoss := choice{values: []string{"skip", "once"}}, choice{values: []string{"retry", "skip"}}
	var command *cobra.Command
	put := func(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
		request, given := &schedulev1.PutRequest{Name: args[0], Cron: args[1], TimeZone: zone}, command.Flags().Changed
		if given("misfire") {
			request.Misfire = misfireOf(misfire.String() == "once")
		}
		if given("on-loss") {
			request.OnLoss = policyOf(onLoss.String() == "skip")
		}
		if given("start-within") {
			request.StartWithin = durationpb.New(within)
		}
		got, err := schedules.Put(ctx, request)
		return reach.showSchedule(to, got.GetSchedule(), err)
	}
	command = scheduleCommand(reach, &reach.address, "put NAME CRON", "Make or change a schedule", cobra.ExactArgs(2), put)
	flags := command.Flags()
	flags.StringVar(&zone, "time-zone", "", "time zone of the times, such as Europe/Berlin (default: as it is, or UTC)")
	flags.Var(&misfire, "misfire",
		"what happens to ticks that could not begin in time: none begins (skip), or the last one begins, however late (once)")
	flags.Var(span(&within, cron.LeastStartWithin, cron.LongestStartWithin), "start-within",
		"how late a tick may begin with --misfire skip (default: as it is, or 5m)")
	flags.Var(&onLoss, "on-loss", "whether a tick begins again after its machine has died")
	return command
}

func misfireOf(once bool) schedulev1.Misfire {
	if once {
		return schedulev1.Misfire_MISFIRE_ONCE
	}
	return schedulev1.Misfire_MISFIRE_SKIP
}

func policyOf(skip bool) oncev1.Policy {
	if skip {
		return oncev1.Policy_POLICY_SKIP
	}
	return oncev1.Policy_POLICY_RETRY
}

func newScheduleRunCommand(reach *reach) *cobra.Command {
	var id string
	command := scheduleCommand(reach, &reach.address, "run NAME", "Have the work of a schedule begin now", cobra.ExactArgs(1),
		func(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
			if id == "" {
				id = "run-" + rand.Text()
			}
			_, err := schedules.Run(ctx, &schedulev1.RunRequest{Name: args[0], Id: id})
			if err == nil {
				_, err = fmt.Fprintf(to, "%s of %s is asked for\n", show.Printable(id), show.Printable(args[0]))
			}
			return err
		})
	command.Flags().StringVar(&id, "id", "", "name of the run: a repeated call with the same name is one run (default: a new name)")
	return command
}

func (r *reach) scheduleReset(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
	got, err := schedules.Reset(ctx, &schedulev1.ResetRequest{Name: args[0]})
	return r.showSchedule(to, got.GetSchedule(), err)
}

func (r *reach) scheduleRemove(ctx context.Context, schedules schedulev1.ScheduleServiceClient, args []string, to io.Writer) error {
	_, err := schedules.Delete(ctx, &schedulev1.DeleteRequest{Name: args[0]})
	if err == nil {
		_, err = fmt.Fprintf(to, "%s is removed\n", show.Printable(args[0]))
	}
	return err
}
