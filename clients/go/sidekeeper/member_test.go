package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

type joined struct {
	membership *sidekeeper.Membership
	err        error
}

func joining(ctx context.Context, client *sidekeeper.Client, options sidekeeper.JoinOptions) <-chan joined {
	result := make(chan joined, 1)
	go func() {
		membership, err := client.Join(ctx, "shop", "a", options)
		result <- joined{membership, err}
	}()
	return result
}

// join joins with a lease of its own, as the incarnation 7.
func join(
	t *testing.T, client *sidekeeper.Client, server *scripted.Server, options sidekeeper.JoinOptions,
) (*sidekeeper.Membership, *scripted.Join, *scripted.Open) {
	t.Helper()
	result := joining(t.Context(), client, options)
	lease := server.NextOpen()
	lease.Accept(leaseID)
	call := server.Groups.NextJoin()
	call.Admit(7)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.membership, call, lease
}

func TestJoinSendsWhatItWasGivenAndNoDeadline(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result := joining(ctx, client, sidekeeper.JoinOptions{
		Owner: "billing", Metadata: map[string]string{"port": "1"}, OnConflict: sidekeeper.ReplaceMember, Wait: new(time.Second),
	})
	lease := server.NextOpen()
	lease.Accept(leaseID)
	call := server.Groups.NextJoin()
	sent := &membershipv1.JoinRequest{
		Group: "shop", Member: "a", Owner: "billing", Metadata: map[string]string{"port": "1"},
		OnConflict: membershipv1.OnConflict_ON_CONFLICT_REPLACE, WaitTimeout: call.Request.GetWaitTimeout(),
	}
	if wait := sent.GetWaitTimeout().AsDuration(); wait <= 0 || wait >= time.Second {
		t.Errorf("it waits for %v, though its lease has taken some of its time", wait)
	}
	if diff := cmp.Diff(sent, call.Request, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if call.HasDeadline() || lease.HasDeadline() || lease.Request.GetOwner() != "billing" {
		t.Error("a stream has a deadline, which would end the membership, or the lease nobody's name")
	}
	call.Admit(1)
	if got := receive(t, result); got.err != nil || got.membership.Incarnation() != 1 || !got.membership.Valid() {
		t.Errorf("%+v", got)
	}
}

func TestAMembershipEndsWhenItIsLeftAndItsLeaseWithIt(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	membership, call, lease := join(t, client, server, sidekeeper.JoinOptions{})
	for range 2 {
		if err := membership.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if membership.Valid() || membership.Err() != nil || context.Cause(membership.Context()) != sidekeeper.ErrReleased {
		t.Error(membership.Err())
	}
	call.AwaitGone()
	lease.AwaitGone()
}

func TestAMembershipWithALeaseThatGoesOnLeavesItAlone(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, _ := open(t, client, server)
	result := joining(t.Context(), client, sidekeeper.JoinOptions{Lease: lease})
	call := server.Groups.NextJoin()
	call.Admit(7)
	membership := receive(t, result).membership
	if err := membership.Leave(t.Context()); err != nil || !lease.Valid() {
		t.Error(err)
	}
	call.AwaitGone()
}

func TestAMembershipIsLostWithTheReason(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(call *scripted.Join, lease *scripted.Open, clock *sidekeeper.FakeClock)
		want error
	}{
		{"replaced", func(call *scripted.Join, _ *scripted.Open, _ *sidekeeper.FakeClock) {
			call.End(scripted.Status(codes.Aborted, "MEMBER_REPLACED", "by uid:7"))
		}, sidekeeper.ErrMemberReplaced},
		{"removed", func(call *scripted.Join, _ *scripted.Open, _ *sidekeeper.FakeClock) {
			call.End(scripted.Status(codes.Aborted, "MEMBER_REMOVED", "by uid:0"))
		}, sidekeeper.ErrMemberRemoved},
		{"lease lost", func(_ *scripted.Join, lease *scripted.Open, _ *sidekeeper.FakeClock) {
			lease.End(scripted.Status(codes.Aborted, "LEASE_LOST", "it expired"))
		}, sidekeeper.ErrLeaseLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := scripted.Start(t)
			client, clock := dial(t, server)
			membership, call, lease := join(t, client, server, sidekeeper.JoinOptions{})
			c.lose(call, lease, clock)
			receive(t, membership.Done())
			if err := membership.Err(); !errors.Is(err, c.want) || !errors.Is(err, sidekeeper.ErrLost) {
				t.Errorf("lost with %v", err)
			}
			if err := membership.Leave(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("left with %v", err)
			}
		})
	}
}

func TestAMembershipEndsInTimeThoughTheSidecarIsFrozen(t *testing.T) {
	server := scripted.Start(t)
	client, clock := dial(t, server)
	membership, call, _ := join(t, client, server, sidekeeper.JoinOptions{})
	risk := make(chan error, 1)
	go func() { risk <- membership.AwaitRisk(t.Context(), time.Second) }()
	server.CheckLease = scripted.Frozen[leasev1.CheckRequest, leasev1.CheckResponse]
	clock.Advance(scripted.Validity)
	receive(t, membership.Done())
	if err := receive(t, risk); err != nil || !errors.Is(membership.Err(), sidekeeper.ErrLeaseLost) {
		t.Errorf("%v, %v", err, membership.Err())
	}
	call.AwaitGone()
}

func TestAJoinThatFailsKeepsNoLease(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := joining(t.Context(), client, sidekeeper.JoinOptions{})
	lease := server.NextOpen()
	lease.Accept(leaseID)
	server.Groups.NextJoin().End(scripted.Status(codes.AlreadyExists, "MEMBER_EXISTS", "there is one"))
	want(t, receive(t, result).err, "member shop/a: AlreadyExists (MEMBER_EXISTS): there is one", sidekeeper.ErrMemberExists)
	lease.AwaitGone()
}

func TestAJoinCanBeGivenUp(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := joining(ctx, client, sidekeeper.JoinOptions{OnConflict: sidekeeper.WaitForMember})
	lease := server.NextOpen()
	lease.Accept(leaseID)
	call := server.Groups.NextJoin()
	cancel()
	if got := receive(t, result); !errors.Is(got.err, context.Canceled) {
		t.Errorf("ended with %v", got.err)
	}
	call.AwaitGone()
	lease.AwaitGone()
}

func TestAMemberIsToldWhatHappens(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	events := make(chan string, 3)
	membership, call, _ := join(t, client, server, sidekeeper.JoinOptions{
		OnSuspended: func(remaining time.Duration) { events <- "suspended " + remaining.String() },
		OnResumed:   func() { events <- "resumed" },
		OnUpdated:   func(metadata map[string]string) { events <- fmt.Sprint(metadata) },
	})
	call.Send(&membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Suspended{
		Suspended: &holdv1.Suspended{Remaining: durationpb.New(3 * time.Second)},
	}})
	if got := receive(t, events); got != "suspended 3s" || !membership.Suspended() {
		t.Error(got)
	}
	call.Send(&membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Resumed{Resumed: &holdv1.Resumed{}}})
	call.Send(&membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Updated{
		Updated: &membershipv1.Updated{Metadata: map[string]string{"port": "2"}},
	}})
	if got := receive(t, events) + receive(t, events); got != "resumedmap[port:2]" || membership.Suspended() {
		t.Error(got)
	}
}

func TestAnUpdateNamesTheLease(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	sent := make(chan *membershipv1.UpdateRequest, 1)
	server.Groups.Update = func(
		_ context.Context, request *membershipv1.UpdateRequest,
	) (*membershipv1.UpdateResponse, error) {
		sent <- request
		return nil, scripted.Status(codes.NotFound, "MEMBER_NOT_FOUND", "no such member")
	}
	membership, _, _ := join(t, client, server, sidekeeper.JoinOptions{})
	err := membership.Update(t.Context(), map[string]string{"port": "2"})
	want(t, err, "NotFound (MEMBER_NOT_FOUND): no such member", sidekeeper.ErrMemberNotFound)
	wanted := &membershipv1.UpdateRequest{Group: "shop", Member: "a", Metadata: map[string]string{"port": "2"}, LeaseId: leaseID}
	if diff := cmp.Diff(wanted, receive(t, sent), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestASidecarThatDoesNotAnswerHoldsNobodyUpForLongerThanTheyWaitForAName(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := joining(t.Context(), client, sidekeeper.JoinOptions{OnConflict: sidekeeper.WaitForMember, Wait: new(time.Millisecond)})
	server.NextOpen().Accept(leaseID)
	call := server.Groups.NextJoin()
	want(t, receive(t, result).err, "member shop/a: Unavailable: the sidecar does not answer: it may be frozen, or its ensemble away")
	call.AwaitGone()
}
