package caller

import (
	"context"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// groupCallers is how many callers of a process have to do with the group.
const groupCallers = 3

// comeAndGo joins the group and leaves it; the last caller of a process watches it instead.
func comeAndGo(ctx context.Context, c *caller) {
	if c.index == groupCallers-1 {
		c.watchGroup(ctx)
		return
	}
	for pause(ctx, c.between(20*time.Millisecond, 300*time.Millisecond)) {
		c.calm(ctx, c.attend(ctx))
	}
}

// attend is a member for a while. Whoever fills the slot of a client that was killed waits until its members are gone.
func (c *caller) attend(ctx context.Context) bool {
	group, member := c.name("group"), fmt.Sprintf("%d-%d", c.order.Slot, c.index)
	op := c.begin(history.Event{Kind: history.Joining, Group: group, Member: member, Resumes: c.order.Resumes})
	options := sidekeeper.JoinOptions{
		Owner: history.Owner(c.order.Client, op), OnConflict: sidekeeper.WaitForMember,
		OnSuspended: func(time.Duration) { c.note(op, history.Event{Kind: history.Suspended}) },
		OnResumed:   func() { c.note(op, history.Event{Kind: history.Resumed}) },
	}
	if c.index == 0 {
		options.Lease = c.lease.get(ctx, c.library)
	}
	joined, err := c.library.Join(ctx, group, member, options)
	if err != nil {
		c.noteEnd(ctx, op, err)
		return false
	}
	c.note(op, history.Event{Kind: history.Joined, Incarnation: joined.Incarnation()})
	c.belong(ctx, op, joined)
	return true
}

// belong stays a member until the time is over or the membership is lost.
func (c *caller) belong(ctx context.Context, op int64, joined *sidekeeper.Membership) {
	stay := time.NewTimer(c.between(c.order.Timeout/4, 3*c.order.Timeout))
	defer stay.Stop()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	select {
	case <-joined.Done():
		c.note(op, ending(joined.Err()))
		joined.Leave(leaving) //nolint:errcheck // it is over
		return
	case <-stay.C:
	case <-ctx.Done():
	}
	c.note(op, history.Event{Kind: history.Releasing})
	event := ending(joined.Leave(leaving))
	event.ByUser = true
	c.note(op, event)
}

// watchGroup watches the group, and begins again when the watch ends.
func (c *caller) watchGroup(ctx context.Context) {
	if c.order.Slot >= watchers {
		return
	}
	for pause(ctx, c.between(20*time.Millisecond, 100*time.Millisecond)) {
		op := c.begin(history.Event{Kind: history.Watching, Group: c.name("group")})
		for change, err := range c.library.WatchGroup(ctx, c.name("group")) {
			if err != nil {
				c.noteEnd(ctx, op, err)
				break
			}
			c.note(op, history.Event{
				Kind: history.Seen, Members: present(change.View), Stale: change.Stale,
				Joined: members(change.Joined), Left: members(change.Left),
			})
		}
	}
}

// members are those that are named.
func members(references []sidekeeper.MemberReference) []history.Member {
	named := make([]history.Member, 0, len(references))
	for _, each := range references {
		named = append(named, history.Member{Name: each.Member, Incarnation: each.Incarnation})
	}
	return named
}

// present are those that a view shows.
func present(view *sidekeeper.GroupView) []history.Member {
	references := make([]sidekeeper.MemberReference, 0, len(view.Members))
	for _, each := range view.Members {
		references = append(references, each.MemberReference)
	}
	return members(references)
}
