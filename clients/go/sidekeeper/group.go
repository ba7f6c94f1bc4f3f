package sidekeeper

import (
	"context"
	"iter"
	"time"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// What a sidecar shows of groups.
type (
	GroupView   = membershipv1.View          // who is in a group
	GroupMember = membershipv1.Member        // one of them
	GroupChange = membershipv1.WatchResponse // a view, and what has changed since the one before
	GroupEntry  = membershipv1.Group         // one group in a list
)

func (c *Client) groups() membershipv1.MembershipServiceClient {
	return membershipv1.NewMembershipServiceClient(c.connection)
}

// GetGroup shows who is in the group.
func (c *Client) GetGroup(ctx context.Context, group string) (*GroupView, error) {
	reply, err := c.groups().Get(ctx, &membershipv1.GetRequest{Group: group})
	return reply.GetView(), fromStatus(err)
}

// WatchGroup shows the same as GetGroup, at once and whenever it has changed, with who joined and who left. It ends with an
// error, also when ctx ends.
func (c *Client) WatchGroup(ctx context.Context, group string) iter.Seq2[*GroupChange, error] {
	return func(yield func(*GroupChange, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.groups().Watch(ctx, &membershipv1.WatchRequest{Group: group})
		for err == nil {
			var next *GroupChange
			if next, err = stream.Recv(); err == nil && !yield(next, nil) {
				return
			}
		}
		yield(nil, fromStatus(err))
	}
}

// ListGroups names the groups that have members or were made to stay, in the order of names; all, or those below a prefix
// of whole segments. An error ends it.
func (c *Client) ListGroups(ctx context.Context, prefix string) iter.Seq2[*GroupEntry, error] {
	return pages(func(token string) ([]*GroupEntry, string, error) {
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
	Reason     string         // for the members
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
