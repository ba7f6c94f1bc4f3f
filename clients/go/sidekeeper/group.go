package sidekeeper

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// A GroupView is who is in a group.
type GroupView struct {
	Group          string
	Members        []*GroupMember // in the order of their names
	MembersOmitted int            // how many were left out because there are too many for one message
	Permanent      bool           // the group was made by CreateGroup: it stays when it has no members
}

// A MemberReference names one member of all that have or had a name.
type MemberReference struct {
	Member      string
	Incarnation int64 // larger than that of every earlier member of the name
}

// A GroupMember is in a group.
type GroupMember struct {
	MemberReference
	Identity string            // as the sidecar that made it verified it; empty where callers are not told apart
	Owner    string            // as given to Join
	Metadata map[string]string // as given to Join, or last to Update
	Age      time.Duration     // how long it has been a member, by the ensemble's clock
	Foreign  bool              // a client of the ensemble that is not Sidekeeper's
	Text     string            // what a foreign member wrote about itself, if that is text: at most its first 1 KiB
}

// A GroupChange is who is in a group, and what has changed since the one before; in the first, all have joined.
type GroupChange struct {
	View           *GroupView
	Joined, Left   []MemberReference
	Changed        []MemberReference // their identity, owner, metadata or text is another now
	ChangesOmitted bool              // those three are incomplete: they have no room, or members are omitted from this View or the one before
	Stale          bool              // the ensemble is out of contact, so that the view may be out of date
}

// A GroupEntry is one group in a list.
type GroupEntry struct {
	Group     string
	Members   int  // what others have put there by hand counts too
	Permanent bool // made by CreateGroup
}

func groupViewFrom(wire *membershipv1.View) *GroupView {
	return &GroupView{
		Group: wire.GetGroup(), Members: each(wire.GetMembers(), groupMemberFrom), MembersOmitted: int(wire.GetMembersOmitted()),
		Permanent: wire.GetPermanent(),
	}
}

func groupMemberFrom(wire *membershipv1.Member) *GroupMember {
	return &GroupMember{
		MemberReference: MemberReference{wire.GetMember(), wire.GetIncarnation()},
		Identity:        wire.GetIdentity(), Owner: wire.GetOwner(), Metadata: wire.GetMetadata(),
		Age: wire.GetAge().AsDuration(), Foreign: wire.GetForeign(), Text: wire.GetText(),
	}
}

func referenceFrom(wire *membershipv1.MemberReference) MemberReference {
	return MemberReference{wire.GetMember(), wire.GetIncarnation()}
}

func groupChangeFrom(wire *membershipv1.WatchResponse) (change *GroupChange, known bool) {
	return &GroupChange{
		View: groupViewFrom(wire.GetView()), Joined: each(wire.GetJoined(), referenceFrom), Left: each(wire.GetLeft(), referenceFrom),
		Changed: each(wire.GetChanged(), referenceFrom), ChangesOmitted: wire.GetChangesOmitted(), Stale: wire.GetStale(),
	}, true
}

func groupEntryFrom(wire *membershipv1.Group) *GroupEntry {
	return &GroupEntry{Group: wire.GetGroup(), Members: int(wire.GetMembers()), Permanent: wire.GetPermanent()}
}

func (c *Client) groups() membershipv1.MembershipServiceClient {
	return membershipv1.NewMembershipServiceClient(c.connection)
}

// GetGroup shows who is in the group.
func (c *Client) GetGroup(ctx context.Context, group string) (*GroupView, error) {
	reply, err := c.groups().Get(ctx, &membershipv1.GetRequest{Group: group})
	if err != nil {
		return nil, fromStatus(err)
	}
	return groupViewFrom(reply.GetView()), nil
}

// WatchGroup shows the same as GetGroup, at once and whenever it has changed, with the members that joined and that left. It ends with an
// error, also when ctx ends or the sidecar is away: what it has shown may then be out of date.
func (c *Client) WatchGroup(ctx context.Context, group string) iter.Seq2[*GroupChange, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[membershipv1.WatchResponse], error) {
		return c.groups().Watch(ctx, &membershipv1.WatchRequest{Group: group, Keepalive: keepaliveEvery})
	}
	return messages(ctx, c.clock, open, groupChangeFrom, unheard)
}

// ListGroups names the groups that have members or were made to stay, in the order of names; all, or those below a prefix
// of whole segments. An error ends it.
func (c *Client) ListGroups(ctx context.Context, prefix string) iter.Seq2[*GroupEntry, error] {
	return pages(groupEntryFrom, func(token string) ([]*membershipv1.Group, string, error) {
		reply, err := c.groups().List(ctx, &membershipv1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetGroups(), reply.GetNextPageToken(), err
	})
}

// CreateGroup makes a group that stays when it has no members. Creating it again is harmless. ErrGroupNotEmpty if the group
// has members and was not made so.
func (c *Client) CreateGroup(ctx context.Context, group string) error {
	_, err := c.groups().Create(ctx, &membershipv1.CreateRequest{Group: group})
	return fromStatus(err)
}

// DeleteGroupOptions say how to delete a group.
type DeleteGroupOptions struct {
	Force      bool           // with its members: for operators
	Reason     string         // with Force, required: why, for the members and the audit
	ForceAfter *time.Duration // how long it is left to the members' sidecars; nil, until their leases must have expired
}

// DeleteGroup removes a group, and says how many members had to be removed from outside: they may not have known in time.
// ErrGroupNotFound; ErrGroupNotEmpty if it has members, unless they are to be removed as well.
func (c *Client) DeleteGroup(ctx context.Context, group string, options DeleteGroupOptions) (forced int, err error) {
	reply, err := c.groups().Delete(ctx, &membershipv1.DeleteRequest{
		Group: group, Force: options.Force, Reason: options.Reason, ForceAfter: optionalDuration(options.ForceAfter),
	})
	return int(reply.GetForced()), fromStatus(err)
}
