package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newMembersCommand(reach *reach) *cobra.Command {
	return parent("members", "Show and watch the members of groups, and run commands as members",
		entry("ls GROUP", "List the members of a group", cobra.ExactArgs(1), reach.completeGroup, asking(reach, groupOf, reach.showGroup)),
		entry("watch GROUP", "Show the members of a group, and then changes", cobra.ExactArgs(1), reach.completeGroup, reach.watchGroup),
		newMembersJoinCommand(reach),
	)
}

func groupOf(ctx context.Context, client *sidekeeper.Client, args []string) (*sidekeeper.GroupView, error) {
	return client.GetGroup(ctx, args[0])
}

func (r *reach) showGroup(to io.Writer, view *sidekeeper.GroupView) error {
	if r.json() {
		return show.Message(to, wireGroupView(view))
	}
	return showMembers(to, wireGroupView(view))
}

func showMembers(to io.Writer, view *membershipv1.View) error {
	rows := each(view.GetMembers(), memberRow)
	if omitted := view.GetMembersOmitted(); omitted > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", omitted)})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(to, "%s has no members\n", show.Printable(view.GetGroup()))
		return err
	}
	return show.Table(to, "MEMBER INCARNATION OWNER IDENTITY AGE METADATA NOTES", rows)
}

func memberRow(member *membershipv1.Member) []string {
	about, notes := show.Metadata(member.GetMetadata()), "-"
	if member.GetForeign() {
		about, notes = show.Printable(member.GetText()), "not Sidekeeper's"
	}
	return []string{
		show.Printable(member.GetMember()), strconv.FormatInt(member.GetIncarnation(), 10), show.Owner(member.GetOwner()),
		show.Printable(member.GetIdentity()), show.Age(member.GetAge()), about, notes,
	}
}

func (r *reach) watchGroup(command *cobra.Command, args []string) error {
	shown := shownGroup{}
	return watch(r, command, (*sidekeeper.Client).WatchGroup, args[0], func(to io.Writer, change *sidekeeper.GroupChange) error {
		if r.json() {
			return show.Message(to, wireGroupChange(change))
		}
		return shown.show(to, wireGroupChange(change))
	})
}

// A shownGroup is what a person has seen of a group.
type shownGroup struct {
	before bool // something has been shown
	stale  bool
}

func (s *shownGroup) show(to io.Writer, change *membershipv1.WatchResponse) error {
	var err error
	switch {
	case !s.before, change.GetChangesOmitted():
		err = showMembers(to, change.GetView())
	default:
		err = showChanges(to, change)
	}
	s.before = true
	if err == nil && s.stale != change.GetStale() {
		s.stale = change.GetStale()
		words := "contact with the ensemble is back"
		if s.stale {
			words = "no contact with the ensemble: others may have joined or left"
		}
		_, err = fmt.Fprintln(to, words)
	}
	return err
}

func showChanges(to io.Writer, change *membershipv1.WatchResponse) error {
	members := map[string]*membershipv1.Member{}
	for _, member := range change.GetView().GetMembers() {
		members[member.GetMember()] = member
	}
	for _, part := range []struct {
		word string
		of   []*membershipv1.MemberReference
	}{{"left", change.GetLeft()}, {"joined", change.GetJoined()}, {"changed", change.GetChanged()}} {
		for _, reference := range part.of {
			about := ""
			if part.word != "left" {
				about = " " + memberRow(members[reference.GetMember()])[5]
			}
			_, err := fmt.Fprintf(to, "%s %s %d%s\n", part.word, show.Printable(reference.GetMember()), reference.GetIncarnation(), about)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
