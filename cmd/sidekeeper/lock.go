package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func newLockCommand(reach *reach) *cobra.Command {
	command := &cobra.Command{
		Use: "lock", Short: "Run commands under locks, and look after locks", Args: cobra.NoArgs, RunE: showHelp,
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
		Use: "ls [PREFIX]", Short: "List the locks that somebody holds or waits for", Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				var locks []*lockv1.Lock
				for lock, err := range client.List(ctx, prefix) {
					if err != nil {
						return err
					}
					locks = append(locks, wireLock(lock))
				}
				return reach.showLocks(command.OutOrStdout(), locks)
			})
		},
	}
}

func (r *reach) showLocks(to io.Writer, locks []*lockv1.Lock) error {
	if r.json() {
		return writeMessage(to, &lockv1.ListResponse{Locks: locks})
	}
	rows := make([][]string, 0, len(locks))
	for _, lock := range locks {
		rows = append(rows, []string{printable(lock.GetName()), strconv.Itoa(int(lock.GetContenders()))})
	}
	return writeTable(to, "NAME CONTENDERS", rows)
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
		return writeMessage(to, view)
	}
	var rows [][]string
	for _, holder := range view.GetHolders() {
		rows = append(rows, contenderRow("held", holder))
	}
	for _, waiter := range view.GetWaiters() {
		rows = append(rows, contenderRow("waiting", waiter))
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(to, "%s is free\n", printable(view.GetName()))
		return err
	}
	if omitted := view.GetWaitersOmitted(); omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	return writeTable(to, "STATE MODE TOKEN OWNER AGE METADATA NOTES", rows)
}

func contenderRow(state string, c *lockv1.Contender) []string {
	notes := ""
	if c.GetRevocationRequested() {
		notes = "asked to let go"
	}
	if c.GetForeign() {
		notes = joinNotes(notes, "not Sidekeeper's")
	}
	return []string{
		state, enumWord(c.GetMode()), strconv.FormatInt(c.GetFencingToken(), 10), printable(c.GetOwner()),
		age(c.GetAge()), metadataWords(c.GetMetadata()), notes,
	}
}

func joinNotes(one, other string) string {
	if one == "" {
		return other
	}
	return one + ", " + other
}

// completionTime bounds how long a shell waits for names.
const completionTime = time.Second

func (r *reach) completeLock(
	command *cobra.Command, args []string, _ string,
) (names []string, directive cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r.timeout = min(r.timeout, completionTime)
	err := r.call(command.Context(), r.address, func(ctx context.Context, client *sidekeeper.Client) error {
		for lock, err := range client.List(ctx, "") {
			if err != nil {
				return err
			}
			names = append(names, lock.Name)
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
