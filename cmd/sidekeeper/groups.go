package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newGroupsCommand(reach *reach) *cobra.Command {
	command := newGroupsListCommand(reach, "groups [PREFIX]")
	command.AddCommand(
		newGroupsListCommand(reach, "ls [PREFIX]"),
		entry("create GROUP", "Create a permanent group", cobra.ExactArgs(1), cobra.NoFileCompletions, doing(reach, createGroup)),
		newGroupsRemoveCommand(reach),
	)
	return command
}

func newGroupsListCommand(reach *reach, use string) *cobra.Command {
	return entry(use, "List groups that have members or are permanent", cobra.MaximumNArgs(1), reach.completeGroup,
		listing(reach, (*sidekeeper.Client).ListGroups, reach.showGroups))
}

func createGroup(ctx context.Context, client *sidekeeper.Client, args []string) error {
	return client.CreateGroup(ctx, args[0])
}

func (r *reach) showGroups(to io.Writer, entries []*sidekeeper.GroupEntry) error {
	groups := each(entries, wireGroup)
	return tabulate(r, to, &membershipv1.ListResponse{Groups: groups}, "NAME MEMBERS PERMANENT", groups, func(group *membershipv1.Group) []string {
		stays := "no"
		if group.GetPermanent() {
			stays = "yes"
		}
		return []string{show.Printable(group.GetGroup()), strconv.Itoa(int(group.GetMembers())), stays}
	})
}

func newGroupsRemoveCommand(reach *reach) *cobra.Command {
	var options sidekeeper.DeleteGroupOptions
	var forceAfter time.Duration
	command := entry("rm GROUP", "Remove a group; with --force, its members as well (operators' socket)",
		cobra.ExactArgs(1), reach.completeGroup, func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("force-after") {
				options.ForceAfter = &forceAfter
			}
			if !options.Force && (options.ForceAfter != nil || options.Reason != "") {
				return exit.UsageError(errors.New("--reason and --force-after are for --force"))
			}
			if options.Force && options.Reason == "" {
				return exit.UsageError(errors.New("--force needs --reason: it says why, to the members and in the audit"))
			}
			return reach.removeGroup(command, args[0], options)
		})
	command.Flags().BoolVar(&options.Force, "force", false, "remove the members as well (operators' socket)")
	command.Flags().StringVar(&options.Reason, "reason", "", "with --force: why, for the members and the audit")
	command.Flags().Var(span(&forceAfter, 0, 24*time.Hour), "force-after",
		"how long to wait for the members' sidecars before removing them from outside (default: until their leases must have expired)")
	return command
}

// removeGroup waits longer than other calls if there may be members: for their sidecars first.
func (r *reach) removeGroup(command *cobra.Command, group string, options sidekeeper.DeleteGroupOptions) error {
	address, timeout := r.address, r.timeout
	if options.Force {
		address, timeout = r.operatorAddress, breakTime(r.timeout, options.ForceAfter)
	}
	return r.callWithin(command.Context(), timeout, address, func(ctx context.Context, client *sidekeeper.Client) error {
		forced, err := client.DeleteGroup(ctx, group, options)
		if err != nil || forced == 0 && !r.json() {
			return err
		}
		return r.say(command.OutOrStdout(), &membershipv1.DeleteResponse{Forced: int32(forced)},
			"members removed from outside, who may not have known in time: %d\n", forced)
	})
}

func (r *reach) completeGroup(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, (*sidekeeper.Client).ListGroups, func(g *sidekeeper.GroupEntry) string { return g.Group })
}
