package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newLockWhyCommand(reach *reach) *cobra.Command {
	return entry("why NAME|LEASE", "Explain who waits for whom, and who waits in a circle",
		cobra.ExactArgs(1), reach.completeLock, asking(reach, explain, reach.showExplanation))
}

// leaseNumber is what a lease is called in the log.
var leaseNumber = regexp.MustCompile(`^[0-9a-f]{8}$`)

// explain takes what looks like a lease's number for one, if there is such a lease, and otherwise for a lock's name.
func explain(ctx context.Context, client *sidekeeper.Client, args []string) (*sidekeeper.Explanation, error) {
	if leaseNumber.MatchString(args[0]) {
		explained, err := client.ExplainLease(ctx, args[0])
		if !errors.Is(err, sidekeeper.ErrLeaseNotFound) {
			return explained, err
		}
	}
	return client.Explain(ctx, args[0])
}

func (r *reach) showExplanation(to io.Writer, explained *sidekeeper.Explanation) error {
	if r.json() {
		return show.Message(to, wireExplanation(explained))
	}
	var rows [][]string
	for _, lock := range explained.Locks {
		rows = append(rows, explainedRows(lock)...)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(to, "it waits for nothing")
		return err
	}
	if err := show.Table(to, "LOCK STATE LEASE OWNER IDENTITY AGE WAITS-FOR NOTES", rows); err != nil {
		return err
	}
	var text strings.Builder
	for _, cycle := range explained.Cycles {
		fmt.Fprintln(&text, "circle: "+strings.Join(each(cycle, linkWords), ", "))
	}
	if len(explained.Cycles) == 0 && slices.ContainsFunc(explained.Locks, isWaitedFor) {
		fmt.Fprintln(&text, "no circle is seen: for what a program waits on another lease is not known here")
	}
	if explained.Incomplete {
		fmt.Fprintln(&text, "there is more than is shown")
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func isWaitedFor(lock *sidekeeper.ExplainedLock) bool { return len(lock.Waiters) > 0 }

func explainedRows(lock *sidekeeper.ExplainedLock) [][]string {
	name := show.Printable(lock.Name)
	rows := append(each(lock.Holders, partyRow(name, "held")), each(lock.Waiters, partyRow(name, "waiting"))...)
	if len(rows) == 0 {
		rows = [][]string{{name, "free", "-", "-", "-", "-", "-"}}
	}
	if usual := lock.UsualHold; usual != nil {
		note := fmt.Sprintf("usually held for %s, at most %s", show.Age(durationpb.New(usual.Median)), show.Age(durationpb.New(usual.Longest)))
		rows[0] = append(rows[0][:7:7], strings.TrimSuffix(note+", "+strings.Join(rows[0][7:], ""), ", "))
	}
	if lock.WaitersOmitted > 0 {
		rows = append(rows, []string{name, "waiting", "-", "-", "-", "-", "-", fmt.Sprintf("%d more", lock.WaitersOmitted)})
	}
	return rows
}

func partyRow(lock, state string) func(*sidekeeper.Party) []string {
	return func(party *sidekeeper.Party) []string {
		about := aboutColumns(wireContender(party.Contender))
		notes := about[len(about)-1]
		if party.Suspended != nil && *party.Suspended {
			notes = strings.TrimSuffix("suspended, "+notes, ", ")
		}
		return []string{
			lock, state, show.Printable(party.Lease), about[0], about[1], about[2], show.Printable(strings.Join(party.WaitsFor, ",")), notes,
		}
	}
}

func linkWords(link *sidekeeper.Link) string {
	who := "lease " + show.Printable(link.Lease)
	if link.Owner != "" {
		who = show.Owner(link.Owner) + " (" + who + ")"
	}
	return who + " waits for " + show.Printable(link.WaitsFor)
}

func wireExplanation(explained *sidekeeper.Explanation) *lockv1.ExplainResponse {
	return &lockv1.ExplainResponse{
		Locks: each(explained.Locks, wireExplained), Incomplete: explained.Incomplete,
		Cycles: each(explained.Cycles, func(links []*sidekeeper.Link) *lockv1.Cycle { return &lockv1.Cycle{Links: each(links, wireLink)} }),
	}
}

func wireExplained(lock *sidekeeper.ExplainedLock) *lockv1.ExplainedLock {
	wire := &lockv1.ExplainedLock{
		Name: lock.Name, Holders: each(lock.Holders, wireParty), Waiters: each(lock.Waiters, wireParty), WaitersOmitted: int32(lock.WaitersOmitted),
	}
	if usual := lock.UsualHold; usual != nil {
		wire.UsualHold = &lockv1.UsualHold{
			Holds: int32(usual.Holds), Median: durationpb.New(usual.Median), Longest: durationpb.New(usual.Longest),
		}
	}
	return wire
}

func wireParty(party *sidekeeper.Party) *lockv1.Party {
	return &lockv1.Party{
		Contender: wireContender(party.Contender), Lease: party.Lease, WaitsFor: party.WaitsFor, Suspended: party.Suspended,
	}
}

func wireLink(link *sidekeeper.Link) *lockv1.Link {
	return &lockv1.Link{
		Lease: link.Lease, Owner: link.Owner, WaitsFor: link.WaitsFor, FencingToken: link.FencingToken, Age: durationpb.New(link.Age),
	}
}
