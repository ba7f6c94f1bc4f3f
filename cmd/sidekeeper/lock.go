package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newLockCommand(reach *reach) *cobra.Command {
	command := &cobra.Command{
		Use: "lock", Short: "Run commands under locks, and manage locks", Args: cobra.NoArgs, RunE: showHelp,
	}
	command.AddCommand(
		newLockRunCommand(reach),
		newLockListCommand(reach),
		newLockShowCommand(reach),
		newLockRevokeCommand(reach),
		newLockBreakCommand(reach),
	)
	return command
}

func newLockListCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "ls [PREFIX]", Short: "List the locks that are held or waited for", Args: cobra.MaximumNArgs(1),
		RunE: listing(reach, (*sidekeeper.Client).List, reach.showLocks),
	}
}

func (r *reach) showLocks(to io.Writer, entries []*sidekeeper.LockEntry) error {
	locks := eachWire(entries, wireLock)
	if r.json() {
		return show.Message(to, &lockv1.ListResponse{Locks: locks})
	}
	rows := make([][]string, 0, len(locks))
	for _, lock := range locks {
		rows = append(rows, []string{show.Printable(lock.GetName()), strconv.Itoa(int(lock.GetContenders()))})
	}
	return show.Table(to, "NAME CONTENDERS", rows)
}

func newLockShowCommand(reach *reach) *cobra.Command {
	watch := false
	command := &cobra.Command{
		Use: "show NAME", Short: "Show who holds a lock and who waits for it, in order", Args: cobra.ExactArgs(1),
		ValidArgsFunction: reach.completeLock,
		RunE: func(command *cobra.Command, args []string) error {
			if watch {
				return reach.watchLock(command, args[0])
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				view, err := client.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return reach.showView(command.OutOrStdout(), wireView(view))
			})
		},
	}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever it changes")
	return command
}

func (r *reach) watchLock(command *cobra.Command, name string) error {
	client, err := r.dial(r.address)
	if err != nil {
		return err
	}
	defer client.Close()
	for view, err := range client.Watch(command.Context(), name) {
		if err != nil {
			return err
		}
		if err := r.showView(command.OutOrStdout(), wireView(view)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reach) showView(to io.Writer, view *lockv1.View) error {
	if r.json() {
		return show.Message(to, view)
	}
	var rows [][]string
	for _, holder := range view.GetHolders() {
		rows = append(rows, contenderRow("held", holder))
	}
	for _, waiter := range view.GetWaiters() {
		rows = append(rows, contenderRow("waiting", waiter))
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(to, "%s is free\n", show.Printable(view.GetName()))
		return err
	}
	if omitted := view.GetWaitersOmitted(); omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	return show.Table(to, "STATE MODE TOKEN OWNER AGE METADATA NOTES", rows)
}

func contenderRow(state string, c *lockv1.Contender) []string {
	notes := ""
	if c.GetRevocationRequested() {
		notes = "revocation requested"
	}
	if c.GetForeign() {
		notes = joinNotes(notes, "not Sidekeeper's")
	}
	return []string{
		state, show.Enum(c.GetMode()), strconv.FormatInt(c.GetFencingToken(), 10), show.Printable(c.GetOwner()),
		show.Age(c.GetAge()), show.Metadata(c.GetMetadata()), notes,
	}
}

func joinNotes(one, other string) string {
	if one == "" {
		return other
	}
	return one + ", " + other
}

func (r *reach) completeLock(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, (*sidekeeper.Client).List, func(l *sidekeeper.LockEntry) string { return l.Name })
}
