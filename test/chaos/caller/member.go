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
	op := c.begin(history.Event{Kind: history.Joining, Group: group, Member: member})
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
				Kind: history.Seen, Members: members(change.GetView().GetMembers()), Stale: change.GetStale(),
				Joined: members(change.GetJoined()), Left: members(change.GetLeft()),
			})
		}
	}
}

// members are those that a message names.
func members[T interface {
	GetMember() string
	GetIncarnation() int64
}](wire []T,
) []history.Member {
	named := make([]history.Member, 0, len(wire))
	for _, each := range wire {
		named = append(named, history.Member{Name: each.GetMember(), Incarnation: each.GetIncarnation()})
	}
	return named
}
