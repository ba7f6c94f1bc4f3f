package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// OnConflict is what to do when the group has a member of the name already.
type OnConflict int32

// What to do about a member of the same name. WaitForMember is for a program that was started again before its last lease
// has expired; ReplaceMember ends the member that is there.
const (
	RejectMember  OnConflict = iota + 1 // ErrMemberExists
	WaitForMember                       // until the name is free: those that wait for the same name come in no order
	ReplaceMember                       // which ends with ErrMemberReplaced
)

// JoinOptions say how to join a group. The zero value joins with a lease of its own, or not at all if the name is in use.
// The functions are called one at a time while the stream is read: they must not block, nor leave the group.
type JoinOptions struct {
	Lease      *Lease            // to be a member with; nil, a lease that lives as long as the membership
	Owner      string            // who the caller is, for people
	Metadata   map[string]string // what others shall know, such as an address
	OnConflict OnConflict        // what to do about a member of the same name; zero is RejectMember
	Wait       *time.Duration    // how long to wait for the name, unless RejectMember; 0, nil and what is away as in LockOptions

	OnSuspended func(remaining time.Duration) // contact with the ensemble is lost, the membership is not
	OnResumed   func()
	OnUpdated   func(metadata map[string]string)
}

// A Membership is a member of a group that is this program. Its holder must Leave, also after it was lost. It ends in time
// even if the sidecar is frozen: it is valid for as long as its lease is. When another caller or an operator has ended it, Err wraps
// ErrMemberReplaced or ErrMemberRemoved.
type Membership struct {
	*claim
	client        *Client
	lease         *Lease
	own           *Lease // the same, if it is the membership's alone; otherwise nil
	group, member string
	incarnation   int64
	options       JoinOptions
	leaveOnce     sync.Once
	leaveResult   error
}

// Join makes the caller a member of a group and returns when others can see it. The end of ctx ends the joining, and not a
// membership that Join has returned. Errors that a caller can act on: ErrMemberExists, ErrWaitTimeout,
// ErrEnsembleUnreachable, ErrGuardLost (see Lock.Guard). While the sidecar or the ensemble is away, Join tries again, as Acquire does.
func (c *Client) Join(ctx context.Context, group, member string, options JoinOptions) (*Membership, error) {
	var m *Membership
	err := c.throughAbsence(ctx, "join "+group+"/"+member, options.Wait, options.Lease, func(wait *time.Duration) (heard bool, err error) {
		options.Wait = wait
		m = &Membership{client: c, lease: options.Lease, group: group, member: member, options: options}
		err = m.begin(ctx)
		return m.heard(), err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// begin makes one attempt.
func (m *Membership) begin(ctx context.Context) (err error) {
	if m.lease == nil {
		if m.own, err = m.client.openOwn(ctx, "join "+m.name(), &m.options.Wait, LeaseOptions{Owner: m.options.Owner}); err != nil {
			return err
		}
		m.lease = m.own
		defer func() { err = m.own.dropUnused("join "+m.name(), err) }()
	}
	return m.join(ctx)
}

// heard says whether the sidecar has said anything since begin.
func (m *Membership) heard() bool {
	return m.own.isHeard() || m.claim != nil && m.claim.heard.Load()
}

func (m *Membership) name() string { return m.group + "/" + m.member }

// join returns when the stream says that the caller is a member.
func (m *Membership) join(ctx context.Context) error {
	var streaming context.Context
	m.claim, streaming = m.client.newClaim(ctx, "member "+m.name())
	m.parent = m.lease.claim
	stream := heldCall{claim: m.claim, wait: m.options.Wait}
	if m.lease.client == m.client {
		stream.open = m.carried(m.lease.multiplex, m.request(ctx)).open
	} else {
		stream.open = single(func() (grpc.ServerStreamingClient[membershipv1.JoinResponse], error) {
			request := m.request(ctx)
			request.Keepalive = keepaliveEvery
			return m.client.groups().Join(streaming, request)
		}, m.handle)
	}
	m.standOn(m.lease.claim, func() { m.abandon(m.lease.endOf(m.what)) })
	return stream.begin(ctx, m.client)
}

// carried has the lease's stream carry the membership.
func (m *Membership) carried(by *multiplex, join *membershipv1.JoinRequest) *request {
	join.LeaseId = ""
	return by.carry(&request{
		claim: m.claim, start: &leasev1.Start{Request: &leasev1.Start_Join{Join: join}},
		handle:    func(event *leasev1.Event) { m.handle(event.GetJoin()) },
		suspended: func(remaining *durationpb.Duration) { m.suspend(remaining, m.options.OnSuspended) },
		resumed:   func() { m.resume(m.options.OnResumed) },
	})
}

func (m *Membership) request(ctx context.Context) *membershipv1.JoinRequest {
	request := &membershipv1.JoinRequest{
		Group: m.group, Member: m.member, Metadata: m.options.Metadata, Owner: m.options.Owner, LeaseId: m.lease.id,
		OnConflict: membershipv1.OnConflict(m.options.OnConflict), Guards: m.client.guards(ctx),
	}
	if m.options.OnConflict > RejectMember { // otherwise it does not wait for the name
		request.WaitTimeout = optionalDuration(m.options.Wait)
	}
	return request
}

// endOf is how something ends that stands on the lease, when the lease does.
func (l *Lease) endOf(what string) error {
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s %w: %w", what, ErrLost, err)
	}
	return ErrReleased
}

func (m *Membership) handle(event *membershipv1.JoinResponse) {
	switch event := event.GetEvent().(type) {
	case *membershipv1.JoinResponse_Joined:
		if m.id == "" { // others read them by now
			m.incarnation = event.Joined.GetIncarnation()
			m.id = strconv.FormatInt(m.incarnation, 10)
		}
	case *membershipv1.JoinResponse_Suspended:
		m.suspend(event.Suspended.GetRemaining(), m.options.OnSuspended)
	case *membershipv1.JoinResponse_Resumed:
		m.resume(m.options.OnResumed)
	case *membershipv1.JoinResponse_Updated:
		call(m.options.OnUpdated, event.Updated.GetMetadata())
	}
}

// Incarnation tells this member from all that have or had its name.
func (m *Membership) Incarnation() int64 { return m.incarnation }

// Update replaces what others know of the member. When it returns nil the new metadata is stored. Updating again with the
// same is harmless. Guards of ctx guard it (see Lock.Guard).
func (m *Membership) Update(ctx context.Context, metadata map[string]string) error {
	_, err := m.client.groups().Update(ctx, &membershipv1.UpdateRequest{
		Group: m.group, Member: m.member, Metadata: metadata, LeaseId: m.lease.id, Guards: m.client.guards(ctx),
	})
	return fromStatus(err)
}

// Leave takes the member out of its group; for the caller it is over at once. With a lease of its own, nil says that others
// do not see it any more; with a lease that goes on, that they will not in a moment. Its error wraps ErrLost if the
// membership was lost before. Any other is ErrReleaseUnconfirmed. Leaving again returns the same.
func (m *Membership) Leave(ctx context.Context) error {
	m.leaveOnce.Do(func() { m.leaveResult = m.leave(ctx) })
	return m.leaveResult
}

func (m *Membership) leave(ctx context.Context) error {
	err := m.giveUp(ctx, nil)
	if m.own == nil {
		return err
	}
	if closed := m.own.Close(ctx); err == nil {
		return closed
	}
	return err
}

// StayJoined is a member of the group until ctx ends, and joins again when the lease was lost. A member of its name that is still there
// from before is waited for, and so are a sidecar or an ensemble that is away. It calls joined, if that is not nil, for each
// membership. It returns an error that wraps ErrMemberReplaced or ErrMemberRemoved when the member was ended on purpose, one that joining ended
// with, or the cause of ctx's end; the member is gone then.
func (c *Client) StayJoined(
	ctx context.Context, group, member string, options JoinOptions, joined func(*Membership),
) error {
	options.OnConflict, options.Lease = WaitForMember, nil
	var again pause
	for {
		m, err := c.Join(ctx, group, member, options)
		if err == nil {
			again.reset()
			call(joined, m)
			err = m.stay(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		unwanted := errors.Is(err, ErrMemberReplaced) || errors.Is(err, ErrMemberRemoved)
		if (errors.Is(err, ErrLost) || wasCutShort(err)) && !unwanted {
			err = again.wait(ctx)
		} else {
			err = again.after(ctx, err)
		}
		if err != nil || m != nil && m.Err() == nil {
			return err
		}
	}
}

// stay returns when the caller is not a member any more.
func (m *Membership) stay(ctx context.Context) error {
	select {
	case <-m.Done():
	case <-ctx.Done():
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return m.Leave(leaving)
}
