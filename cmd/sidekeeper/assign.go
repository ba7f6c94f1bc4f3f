package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func newAssignCommand(reach *reach) *cobra.Command {
	return parent("assign", "Share items out among members, and run a command for each",
		newAssignDefineCommand(reach),
		assignCommand(reach, "ls [PREFIX]", "List the sets of items", cobra.MaximumNArgs(1), reach.assignList),
		newAssignShowCommand(reach),
		assignCommand(reach, "drain SET MEMBER", "Have the items of a member move to others", cobra.ExactArgs(2), reach.assignDrain),
		assignCommand(reach, "capacity SET MEMBER N", "Change how many items a member takes", cobra.ExactArgs(3), reach.assignCapacity),
		assignCommand(reach, "rm SET", "Remove a set that has no members", cobra.ExactArgs(1), reach.assignRemove),
		newAssignRunCommand(reach),
	)
}

func assignCommand(
	reach *reach, use, short string, fit cobra.PositionalArgs, do stubCall[assignmentv1.AssignmentServiceClient],
) *cobra.Command {
	return stubCommand(reach, &reach.address, assignmentv1.NewAssignmentServiceClient, use, short, fit, timed(reach, do))
}

func newAssignDefineCommand(reach *reach) *cobra.Command {
	var count int32
	var drop bool
	define := func(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
		items := args[1:]
		if (count == 0) == (len(items) == 0) {
			return exit.UsageError(errors.New("either --count or ITEMs are required, and not both"))
		}
		defined, err := sets.Define(ctx, &assignmentv1.DefineRequest{Set: args[0], Items: items, Count: count, Drop: drop})
		if err != nil {
			return err
		}
		return reach.say(to, defined, "%s has %d items\n", show.Printable(args[0]), max(int(count), len(items)))
	}
	command := assignCommand(reach, "define SET [ITEM...]", "Make a set of items, or give it others", cobra.MinimumNArgs(1), define)
	flags := command.Flags()
	flags.Var(number(&count, 1, recipes.MaxSetItems), "count", "how many items there are, instead of their names: they are called 0, 1 and so on")
	flags.BoolVar(&drop, "drop", false, "let items leave the set even if a member has them")
	return command
}

func (r *reach) assignList(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
	found, err := allPages(func(token string) ([]*assignmentv1.Set, string, error) {
		page, err := sets.List(ctx, &assignmentv1.ListRequest{Prefix: prefixOf(args), PageSize: 1000, PageToken: token})
		return page.GetSets(), page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	all := &assignmentv1.ListResponse{Sets: found}
	return tabulate(r, to, all, "SET ITEMS MEMBERS UNASSIGNED", found, func(of *assignmentv1.Set) []string {
		return append([]string{show.Printable(of.GetSet())}, numbers(of.GetItems(), of.GetMembers(), of.GetUnassigned())...)
	})
}

func numbers(all ...int32) []string {
	return each(all, func(of int32) string { return strconv.Itoa(int(of)) })
}

func (r *reach) assignDrain(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
	set, err := sets.SetCapacity(ctx, &assignmentv1.SetCapacityRequest{Set: args[0], Member: args[1]})
	if err != nil {
		return err
	}
	return r.say(to, set, "%s of %s gets no items any more\n", show.Printable(args[1]), show.Printable(args[0]))
}

func (r *reach) assignCapacity(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
	capacity := int32(0)
	if err := number(&capacity, 0, recipes.MaxSetItems).Set(args[2]); err != nil {
		return exit.UsageError(errors.New("N is " + strconv.Quote(args[2]) + ": " + err.Error()))
	}
	set, err := sets.SetCapacity(ctx, &assignmentv1.SetCapacityRequest{Set: args[0], Member: args[1], Capacity: capacity})
	if err != nil {
		return err
	}
	return r.say(to, set, "%s of %s takes up to %d items\n", show.Printable(args[1]), show.Printable(args[0]), capacity)
}

func (r *reach) assignRemove(ctx context.Context, sets assignmentv1.AssignmentServiceClient, args []string, to io.Writer) error {
	removed, err := sets.Delete(ctx, &assignmentv1.DeleteRequest{Set: args[0]})
	if err != nil {
		return err
	}
	return r.say(to, removed, "%s is removed\n", show.Printable(args[0]))
}
