package sidekeeper_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// leading calls RunWhileLeader with a function that returns at once.
func leading(t *testing.T, client *sidekeeper.Client, options sidekeeper.LockOptions) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		result <- client.RunWhileLeader(t.Context(), "scheduler", options, func(context.Context, *sidekeeper.Lock) error { return nil })
	}()
	return result
}

func TestWhoWaitsToLeadWaitsAgainWhenItsLeaseWasLost(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	led := leading(t, client, sidekeeper.LockOptions{})
	first := server.NextAcquire()
	first.Queue(1)
	first.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	server.NextAcquire().Grant(8)
	if err := receive(t, led); err != nil {
		t.Error(err)
	}
}

func TestWhoWaitsToLeadWithALeaseThatHasEndedIsToldSo(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := open(t, client, server)
	led := leading(t, client, sidekeeper.LockOptions{Lease: lease})
	server.NextAcquire().Queue(1)
	call.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	want(t, receive(t, led), "lock scheduler: Aborted (LEASE_LOST): expired", sidekeeper.ErrLeaseLost)
}

func TestWhoStaysJoinedJoinsAgainWhenItsLeaseWasLostWhileItWaitedForItsName(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, leave := context.WithCancel(t.Context())
	joined, left := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		left <- client.StayJoined(ctx, "shop", "a", sidekeeper.JoinOptions{}, func(*sidekeeper.Membership) { joined <- struct{}{} })
	}()
	server.NextOpen().Accept(leaseID)
	server.Groups.NextJoin().End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	server.NextOpen().Accept(leaseID)
	server.Groups.NextJoin().Admit(8)
	receive(t, joined)
	leave()
	receive(t, left)
}
