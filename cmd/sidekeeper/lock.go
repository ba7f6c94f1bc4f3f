package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

func newLockCommand(reach *reach) *cobra.Command {
	return parent("lock", "Run commands under locks, and manage locks",
		newLockRunCommand(reach),
		entry("ls [PREFIX]", "List the locks that are held or waited for", cobra.MaximumNArgs(1), nil,
			listing(reach, (*sidekeeper.Client).List, reach.showLocks)),
		showCommand(reach, "Show who holds a lock and who waits for it, in order", reach.completeLock,
			(*sidekeeper.Client).Get, reach.showView, (*sidekeeper.Client).Watch, reach.showWatchedLock),
		newLockWhyCommand(reach),
		newLockClaimCommand(reach),
		newLockExtendCommand(reach),
		newLockReleaseCommand(reach),
		newLockRevokeCommand(reach),
		newLockBreakCommand(reach),
	)
}

func (r *reach) showLocks(to io.Writer, entries []*sidekeeper.LockEntry) error {
	locks := each(entries, wireLock)
	return tabulate(r, to, &lockv1.ListResponse{Locks: locks}, "NAME CONTENDERS CLAIMS", locks, func(lock *lockv1.Lock) []string {
		return []string{show.Printable(lock.GetName()), strconv.Itoa(int(lock.GetContenders())), strconv.Itoa(int(lock.GetClaims()))}
	})
}

func (r *reach) showWatchedLock(to io.Writer, view *sidekeeper.View) error {
	if r.json() {
		return show.Message(to, &lockv1.WatchResponse{View: wireView(view), Stale: view.Stale})
	}
	return withStaleness(to, view.Stale, r.showView(to, view))
}

func (r *reach) showView(to io.Writer, shown *sidekeeper.View) error {
	view := wireView(shown)
	if r.json() {
		return show.Message(to, view)
	}
	rows := append(each(view.GetHolders(), contenderRow("held")), each(view.GetWaiters(), contenderRow("waiting"))...)
	if lost := view.GetLostHold(); lost != nil {
		note := "its delay of " + lost.GetLockDelay().AsDuration().String() + " is kept"
		token := strconv.FormatInt(lost.GetFencingToken(), 10)
		rows = append([][]string{{"lost", "-", token, "-", "-", "-", "-", note}}, rows...)
	}
	if len(rows) == 0 && service.BrokenNameRule(view.GetName()) != "" {
		_, err := fmt.Fprintf(to, "%s is free, and no caller can acquire it: the clients' NameOf makes %s of it\n",
			show.Printable(view.GetName()), sidekeeper.NameOf(view.GetName()))
		return err
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(to, "%s is free\n", show.Printable(view.GetName()))
		return err
	}
	if omitted := view.GetWaitersOmitted(); omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	return show.Table(to, "STATE MODE TOKEN OWNER IDENTITY AGE METADATA NOTES", rows)
}

func contenderRow(state string) func(*holdv1.Contender) []string {
	return func(c *holdv1.Contender) []string {
		row := append([]string{state, show.Enum(c.GetMode()), strconv.FormatInt(c.GetToken(), 10)}, aboutColumns(c)...)
		if claim := c.GetClaim(); claim != nil {
			row[len(row)-1] = strings.TrimPrefix(row[len(row)-1]+", "+claimNote(claim), ", ")
		}
		if delay := c.GetLockDelay(); delay != nil {
			row[len(row)-1] = strings.TrimPrefix(row[len(row)-1]+", delay of "+delay.AsDuration().String(), ", ")
		}
		return row
	}
}

// claimNote says until when a claim stands, and why.
func claimNote(claim *holdv1.Reservation) string {
	note := "claimed"
	if until := claim.GetUntil(); until != nil {
		note += " until " + until.AsTime().Format(time.RFC3339)
	}
	if claim.GetReason() != "" {
		note += ": " + show.Printable(claim.GetReason())
	}
	return note
}

// aboutColumns are what a contender for a lock or a semaphore says about itself, with notes.
func aboutColumns(c *holdv1.Contender) []string {
	var notes []string
	if c.GetRevocationRequested() {
		notes = append(notes, "revocation requested")
	}
	if c.GetForeign() {
		notes = append(notes, "not Sidekeeper's")
	}
	return []string{
		show.Owner(c.GetOwner()), show.Printable(c.GetIdentity()), show.Age(c.GetAge()), show.Metadata(c.GetMetadata()),
		strings.Join(notes, ", "),
	}
}

func (r *reach) completeLock(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, (*sidekeeper.Client).List, func(l *sidekeeper.LockEntry) string { return l.Name })
}
