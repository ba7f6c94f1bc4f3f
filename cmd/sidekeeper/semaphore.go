package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newSemaphoreCommand(reach *reach) *cobra.Command {
	return parent("semaphore", "Run commands while holding permits, and manage semaphores",
		newSemaphoreRunCommand(reach),
		entry("ls [PREFIX]", "List the semaphores", cobra.MaximumNArgs(1), nil,
			listing(reach, (*sidekeeper.Client).ListSemaphores, reach.showSemaphores)),
		showCommand(reach, "Show who holds permits and who waits for some, in order", reach.completeSemaphore,
			(*sidekeeper.Client).GetSemaphore, reach.showSemaphore, (*sidekeeper.Client).WatchSemaphore, reach.showWatchedSemaphore),
		entry("create NAME LIMIT", "Create a semaphore with so many permits", cobra.ExactArgs(2), cobra.NoFileCompletions,
			reach.createSemaphore),
		newSemaphoreResizeCommand(reach),
	)
}

func (r *reach) showSemaphores(to io.Writer, entries []*sidekeeper.SemaphoreEntry) error {
	semaphores := each(entries, wireSemaphore)
	row := func(of *semaphorev1.Semaphore) []string {
		return []string{show.Printable(of.GetName()), strconv.Itoa(int(of.GetLimit()))}
	}
	return tabulate(r, to, &semaphorev1.ListResponse{Semaphores: semaphores}, "NAME LIMIT", semaphores, row)
}

func (r *reach) showWatchedSemaphore(to io.Writer, view *sidekeeper.SemaphoreView) error {
	if r.json() {
		return show.Message(to, &semaphorev1.WatchResponse{View: wireSemaphoreView(view), Stale: view.Stale})
	}
	return withStaleness(to, view.Stale, r.showSemaphore(to, view))
}

func (r *reach) showSemaphore(to io.Writer, shown *sidekeeper.SemaphoreView) error {
	view := wireSemaphoreView(shown)
	if r.json() {
		return show.Message(to, view)
	}
	if _, err := fmt.Fprintf(to, "%s: %d of %d held\n", show.Printable(view.GetName()), view.GetHeld(), view.GetLimit()); err != nil {
		return err
	}
	rows := append(each(view.GetHolders(), permitRow("held")), each(view.GetWaiters(), permitRow("waiting"))...)
	if omitted := view.GetWaitersOmitted(); omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	if len(rows) > 0 {
		if err := show.Table(to, "STATE PERMITS NUMBER TOKEN OWNER IDENTITY AGE METADATA NOTES", rows); err != nil {
			return err
		}
	}
	for _, of := range view.GetQuarantines() {
		until := "in quarantine once a caller wants a number"
		if of.GetUntil() != nil {
			until = "in quarantine until " + of.GetUntil().AsTime().UTC().Format(time.RFC3339)
		}
		if _, err := fmt.Fprintf(to, "number %d: %s\n", of.GetNumber(), until); err != nil {
			return err
		}
	}
	return nil
}

func permitRow(state string) func(*holdv1.Contender) []string {
	return func(c *holdv1.Contender) []string {
		permits, number, token := "-", "-", "-"
		if c.Number != nil {
			number = strconv.Itoa(int(c.GetNumber()))
		}
		if c.GetPermits() > 0 {
			permits, token = strconv.Itoa(int(c.GetPermits())), strconv.FormatInt(c.GetToken(), 10)
		}
		return append([]string{state, permits, number, token}, aboutColumns(c)...)
	}
}

func (r *reach) completeSemaphore(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, (*sidekeeper.Client).ListSemaphores, func(s *sidekeeper.SemaphoreEntry) string { return s.Name })
}

func (r *reach) createSemaphore(command *cobra.Command, args []string) error {
	limit, err := limitOf(args[1])
	if err != nil {
		return err
	}
	return doing(r, func(ctx context.Context, client *sidekeeper.Client, args []string) error {
		return client.CreateSemaphore(ctx, args[0], limit)
	})(command, args)
}

func limitOf(text string) (int, error) {
	limit, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, exit.UsageError(fmt.Errorf("LIMIT is %q: a number from 1 to 10,000", text))
	}
	return int(limit), nil
}

func newSemaphoreResizeCommand(reach *reach) *cobra.Command {
	var options sidekeeper.ResizeOptions
	var grace time.Duration
	command := entry("resize NAME LIMIT", "Change how many permits there are",
		cobra.ExactArgs(2), reach.completeSemaphore, func(command *cobra.Command, args []string) error {
			limit, err := limitOf(args[1])
			if err != nil {
				return err
			}
			address := reach.address
			if command.Flags().Changed("grace") {
				options.Grace, address = &grace, reach.operatorAddress
			}
			return reach.call(command.Context(), address, func(ctx context.Context, client *sidekeeper.Client) error {
				asked, err := client.ResizeSemaphore(ctx, args[0], limit, options)
				if err != nil {
					return err
				}
				return reach.say(command.OutOrStdout(), &semaphorev1.ResizeResponse{Asked: int32(asked)}, "permits asked for: %d\n", asked)
			})
		})
	command.Flags().StringVar(&options.Reason, "reason", "", "why, for holders that are asked to release permits")
	command.Flags().Var(span(&grace, 0, 24*time.Hour), "grace", "end their holds by force after this time (operators' socket)")
	return command
}
