package main

import (
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// What the client returns, as the messages that it stands for: their JSON is what --output json prints.

func each[From, To any](items []From, convert func(From) To) (converted []To) {
	for _, item := range items {
		converted = append(converted, convert(item))
	}
	return converted
}

func wireView(view *sidekeeper.View) *lockv1.View {
	wire := &lockv1.View{
		Name: view.Name, Holders: each(view.Holders, wireContender), Waiters: each(view.Waiters, wireContender),
		WaitersOmitted: int32(view.WaitersOmitted),
	}
	if lost := view.LostHold; lost != nil {
		wire.LostHold = &lockv1.LostHold{FencingToken: lost.FencingToken, LockDelay: durationpb.New(lost.LockDelay)}
	}
	return wire
}

func wireContender(c *sidekeeper.Contender) *holdv1.Contender {
	wire := &holdv1.Contender{
		Mode: new(holdv1.Mode(c.Mode)), Identity: c.Identity, Owner: c.Owner, Metadata: c.Metadata, Token: c.FencingToken,
		Age: durationpb.New(c.Age), Foreign: c.Foreign, RevocationRequested: c.RevocationRequested,
	}
	if c.Claim != nil {
		wire.Claim = &holdv1.Reservation{Reason: c.Claim.Reason}
		if !c.Claim.Until.IsZero() {
			wire.Claim.Until = timestamppb.New(c.Claim.Until)
		}
	}
	if c.LockDelay > 0 {
		wire.LockDelay = durationpb.New(c.LockDelay)
	}
	return wire
}

func wireLock(lock *sidekeeper.LockEntry) *lockv1.Lock {
	return &lockv1.Lock{Name: lock.Name, Contenders: int32(lock.Contenders), Claims: int32(lock.Claims)}
}

func wireLease(lease *sidekeeper.LeaseInfo) *leasev1.Lease {
	state := leasev1.State_STATE_CONNECTED
	switch {
	case lease.Suspended:
		state = leasev1.State_STATE_SUSPENDED
	case lease.Sleeping:
		state = leasev1.State_STATE_SLEEPING
	}
	return &leasev1.Lease{
		Identity: lease.Identity, Owner: lease.Owner, Metadata: lease.Metadata, State: state, Age: durationpb.New(lease.Age),
		ValidFor: durationpb.New(lease.ValidFor), Ttl: durationpb.New(lease.TTL),
		Possessions: each(lease.Possessions, func(p sidekeeper.Possession) *leasev1.Possession {
			return &leasev1.Possession{Kind: p.Kind, Name: p.Name, Held: p.Held}
		}),
	}
}

func wireGroupView(view *sidekeeper.GroupView) *membershipv1.View {
	return &membershipv1.View{
		Group: view.Group, Members: each(view.Members, wireMember), MembersOmitted: int32(view.MembersOmitted), Permanent: view.Permanent,
	}
}

func wireMember(member *sidekeeper.GroupMember) *membershipv1.Member {
	return &membershipv1.Member{
		Member: member.Member, Incarnation: member.Incarnation, Identity: member.Identity, Owner: member.Owner, Metadata: member.Metadata,
		Age: durationpb.New(member.Age), Foreign: member.Foreign, Text: member.Text,
	}
}

func wireReference(reference sidekeeper.MemberReference) *membershipv1.MemberReference {
	return &membershipv1.MemberReference{Member: reference.Member, Incarnation: reference.Incarnation}
}

func wireGroupChange(change *sidekeeper.GroupChange) *membershipv1.WatchResponse {
	return &membershipv1.WatchResponse{
		View: wireGroupView(change.View), Joined: each(change.Joined, wireReference), Left: each(change.Left, wireReference),
		Changed: each(change.Changed, wireReference), ChangesOmitted: change.ChangesOmitted, Stale: change.Stale,
	}
}

func wireGroup(group *sidekeeper.GroupEntry) *membershipv1.Group {
	return &membershipv1.Group{Group: group.Group, Members: int32(group.Members), Permanent: group.Permanent}
}

func wireSemaphoreView(view *sidekeeper.SemaphoreView) *semaphorev1.View {
	return &semaphorev1.View{
		Name: view.Name, Limit: int32(view.Limit), Held: int32(view.Held), Holders: each(view.Holders, wirePermitContender),
		Waiters: each(view.Waiters, wirePermitContender), WaitersOmitted: int32(view.WaitersOmitted),
		Quarantines: each(view.Quarantines, wireQuarantine),
	}
}

func wireQuarantine(of *sidekeeper.Quarantine) *semaphorev1.Quarantine {
	wire := &semaphorev1.Quarantine{Number: int32(of.Number)}
	if !of.Until.IsZero() {
		wire.Until = timestamppb.New(of.Until)
	}
	return wire
}

func wirePermitContender(c *sidekeeper.PermitContender) *holdv1.Contender {
	wire := &holdv1.Contender{
		Permits: new(int32(c.Permits)), Identity: c.Identity, Owner: c.Owner, Metadata: c.Metadata, Token: c.Token,
		Age: durationpb.New(c.Age), Foreign: c.Foreign, RevocationRequested: c.RevocationRequested,
	}
	if c.Number != nil {
		wire.Number = new(int32(*c.Number))
	}
	return wire
}

func wireSemaphore(semaphore *sidekeeper.SemaphoreEntry) *semaphorev1.Semaphore {
	return &semaphorev1.Semaphore{Name: semaphore.Name, Limit: int32(semaphore.Limit)}
}

func wireLeader(leader *sidekeeper.Leader) *electionv1.Leader {
	return &electionv1.Leader{
		Candidate: leader.Candidate, Value: leader.Value, Metadata: leader.Metadata, Identity: leader.Identity, Foreign: leader.Foreign,
		Ticket:         &holdv1.Ticket{Lock: leader.Term.Lock, FencingToken: leader.Term.FencingToken},
		YieldRequested: leader.YieldRequested,
	}
}

func wireSequence(sequence *sidekeeper.SequenceEntry) *sequencev1.Sequence {
	return &sequencev1.Sequence{
		Name: sequence.Name, LastIssued: sequence.LastIssued, Incarnation: sequence.Incarnation, Malformed: sequence.Malformed,
	}
}
