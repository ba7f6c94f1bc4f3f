package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newAssignShowCommand(reach *reach) *cobra.Command {
	var holders, again bool
	once := timed(reach, func(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
		got, err := sets.Get(ctx, &assignmentv1.GetRequest{Set: args[0], Holders: holders})
		switch {
		case err != nil:
			return err
		case reach.json():
			return show.Message(to, got.GetView())
		case holders:
			return showItems(to, got.GetView())
		}
		return showShares(to, got.GetView())
	})
	do := func(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
		switch {
		case holders && again:
			return exit.UsageError(errors.New("--watch shows plans, and --holders one moment: give one of the two"))
		case again:
			return reach.watchSet(ctx, sets, args[0], to)
		}
		return once(ctx, sets, args, to)
	}
	command := stubCommand(reach, &reach.address, assignmentv1.NewAssignmentServiceClient,
		"show SET", "Show a set's members and how its items are shared out", cobra.ExactArgs(1), do)
	command.Flags().BoolVar(&holders, "holders", false, "show each item, its member, and the holder of its lock")
	command.Flags().BoolVarP(&again, "watch", "w", false, "show it again whenever it changes")
	return command
}

// watchSet shows a set whenever it changes. A sidecar that is silent for long ends it.
func (r *reach) watchSet(ctx context.Context, sets assignmentv1.AssignmentServiceClient, set string, to io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keepalive := durationpb.New(sidekeeper.SilenceTimeout / 5)
	stream, err := sets.Watch(ctx, &assignmentv1.WatchRequest{Set: set, Keepalive: keepalive})
	silent := &sidekeeper.Error{Code: codes.Unavailable, Message: "the sidecar is silent"}
	for err == nil {
		timer := time.AfterFunc(sidekeeper.SilenceTimeout, func() { cancel(silent) })
		var next *assignmentv1.WatchResponse
		next, err = stream.Recv()
		switch timer.Stop(); {
		case err != nil && errors.Is(context.Cause(ctx), silent):
			err = silent
		case err != nil, next.GetView() == nil:
		case r.json():
			err = show.Message(to, next)
		default:
			err = withStaleness(to, next.GetStale(), showShares(to, next.GetView()))
		}
	}
	return err
}

// showShares shows a set to a person: who takes how much of it, and what nobody does.
func showShares(to io.Writer, view *assignmentv1.View) error {
	plan := "no plan yet"
	if view.GetEpoch() != 0 {
		plan = fmt.Sprintf("plan %d of %s ago", view.GetEpoch(), show.Age(view.GetAge()))
	}
	rows, omitted := each(view.GetMembers(), shareRow), int(view.GetMembersOmitted())
	members := len(rows) + omitted
	_, err := fmt.Fprintf(to, "%s: %d items, %d members, %s\n", show.Printable(view.GetSet()), len(view.GetItems()), members, plan)
	if omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	if err == nil && len(rows) > 0 {
		err = show.Table(to, "MEMBER CAPACITY ITEMS OWNER IDENTITY AGE METADATA", rows)
	}
	if err != nil {
		return err
	}
	var left []string
	for _, item := range view.GetItems() {
		if item.GetMember() == "" {
			left = append(left, show.Printable(item.GetItem()))
		}
	}
	without := cmp.Or(strings.Join(left, " "), "-")
	if view.GetShortFor() != nil {
		without += ", for " + show.Age(view.GetShortFor())
	}
	_, err = fmt.Fprintf(to, "without a member: %s\nimbalance: %s\n", without, imbalance(view.GetMembers()))
	return err
}

func shareRow(of *assignmentv1.Member) []string {
	return []string{
		show.Printable(of.GetMember()), strconv.Itoa(int(of.GetCapacity())), strconv.Itoa(int(of.GetItems())), show.Owner(of.GetOwner()),
		show.Printable(of.GetIdentity()), show.Age(of.GetAge()), show.Metadata(of.GetMetadata()),
	}
}

// imbalance says which member has most beyond its part, which is in proportion to its capacity. Less than an item is none.
func imbalance(members []*assignmentv1.Member) string {
	items, capacity := 0.0, 0.0
	for _, of := range members {
		items, capacity = items+float64(of.GetItems()), capacity+float64(of.GetCapacity())
	}
	most, who := 0.0, ""
	for _, of := range members {
		part := 0.0
		if capacity > 0 {
			part = items * float64(of.GetCapacity()) / capacity
		}
		if more := float64(of.GetItems()) - part; more > most {
			most, who = more, of.GetMember()
		}
	}
	if most < 1 {
		return "-"
	}
	return fmt.Sprintf("%s has %.1f items more than its part", show.Printable(who), most)
}

func showItems(to io.Writer, view *assignmentv1.View) error {
	return show.Table(to, "ITEM MEMBER HOLDER OWNER TOKEN AGE", each(view.GetItems(), func(of *assignmentv1.Item) []string {
		holder := of.GetHolder()
		if holder == nil {
			return []string{show.Printable(of.GetItem()), show.Printable(of.GetMember()), "-", "-", "-", "-"}
		}
		return []string{
			show.Printable(of.GetItem()), show.Printable(of.GetMember()), show.Printable(holder.GetMember()),
			show.Owner(holder.GetOwner()), strconv.FormatInt(holder.GetFencingToken(), 10), show.Age(holder.GetAge()),
		}
	}))
}
