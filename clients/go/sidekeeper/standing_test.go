package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

var claimEnd = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// claims is a server that answers Claim with errors, one after the other, and then grants; released are the claims that were given up.
func claims(t *testing.T, failing ...error) (server *scripted.Server, asked chan *lockv1.ClaimRequest, released chan string) {
	t.Helper()
	server, asked, released = scripted.Start(t), make(chan *lockv1.ClaimRequest, 10), make(chan string, 10)
	server.Claim = func(_ context.Context, request *lockv1.ClaimRequest) (*lockv1.ClaimResponse, error) {
		asked <- request
		if calls := len(asked); calls <= len(failing) {
			return nil, failing[calls-1]
		}
		return &lockv1.ClaimResponse{FencingToken: 7, Until: timestamppb.New(claimEnd)}, nil
	}
	server.Release = func(_ context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		released <- request.GetClaimId()
		return &lockv1.ReleaseResponse{}, nil
	}
	return server, asked, released
}

func TestAClaimIsAskedForWithOneIDUntilThereIsAnAnswer(t *testing.T) {
	server, asked, _ := claims(t, scripted.Status(codes.Aborted, "OUTCOME_UNKNOWN", "a reply was lost"),
		scripted.Status(codes.Unavailable, "ENSEMBLE_UNREACHABLE", "it does not answer"))
	client, _ := dial(t, server)
	claim, err := client.Claim(t.Context(), "staging", sidekeeper.ClaimOptions{ReserveFor: time.Hour, Reason: "apply", Wait: new(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		request := receive(t, asked)
		if request.GetClaimId() != claim.ID() || len(claim.ID()) != 32 || request.GetReserveFor().AsDuration() != time.Hour {
			t.Error(request)
		}
		if wait := request.GetWaitTimeout().AsDuration(); wait > time.Minute || wait < time.Minute-10*time.Second {
			t.Error(wait)
		}
	}
	if claim.Ticket() != (sidekeeper.Ticket{Lock: "staging", FencingToken: 7}) || !claim.Until().Equal(claimEnd) {
		t.Error(claim.Ticket(), claim.Until())
	}
}

func TestAClaimWithoutAnAnswerIsReleasedIfNoCallerKnowsItsID(t *testing.T) {
	unknown := scripted.Status(codes.Aborted, "OUTCOME_UNKNOWN", "a reply was lost")
	for _, test := range []struct {
		id       string
		err      error
		released int
	}{
		{"", unknown, 1}, {"0123456789abcdef0123456789abcdef", unknown, 0}, {"", scripted.Status(codes.FailedPrecondition, "LOCK_HELD", "x"), 0},
	} {
		server, asked, released := claims(t, test.err)
		client, _ := dial(t, server)
		options := sidekeeper.ClaimOptions{ID: test.id, ReserveFor: time.Hour, Reason: "apply", Wait: new(time.Duration(0))}
		_, err := client.Claim(t.Context(), "staging", options)
		if !errors.Is(err, sidekeeper.ErrOutcomeUnknown) && !errors.Is(err, sidekeeper.ErrLockHeld) {
			t.Error(err)
		}
		if len(released) != test.released || test.released == 1 && receive(t, released) != receive(t, asked).GetClaimId() {
			t.Error(test, len(released))
		}
	}
}

func TestAClaimCountsFromWhenItWasAskedAbout(t *testing.T) {
	server, _, released := claims(t)
	client, clock := dial(t, server)
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		clock.Advance(8 * time.Second)
		of := &lockv1.CheckedClaim{FencingToken: 7, Until: timestamppb.New(claimEnd), ValidFor: durationpb.New(58 * time.Second)}
		if len(request.GetClaimIds()) != 1 || request.GetClaimIds()[0] != "known" {
			of = &lockv1.CheckedClaim{Reason: "CLAIM_ENDED"}
		}
		return &lockv1.CheckResponse{Claims: []*lockv1.CheckedClaim{of}}, nil
	}
	server.Extend = func(_ context.Context, request *lockv1.ExtendRequest) (*lockv1.ExtendResponse, error) {
		return &lockv1.ExtendResponse{Until: timestamppb.New(claimEnd.Add(request.GetReserveFor().AsDuration()))}, nil
	}
	claim := client.ClaimByID("known")
	if claim.FencingToken() != 0 || !claim.Until().IsZero() {
		t.Error(claim.FencingToken(), claim.Until())
	}
	counts, err := claim.Check(t.Context())
	if err != nil || counts != 50*time.Second || claim.FencingToken() != 7 || !claim.Until().Equal(claimEnd) {
		t.Error(counts, err, claim.FencingToken(), claim.Until())
	}
	if err := claim.Extend(t.Context(), time.Hour); err != nil || !claim.Until().Equal(claimEnd.Add(time.Hour)) {
		t.Error(err, claim.Until())
	}
	if err := claim.Release(t.Context()); err != nil || receive(t, released) != "known" {
		t.Error(err)
	}
	_, err = client.ClaimByID("other").Check(t.Context())
	want(t, err, "Aborted (CLAIM_ENDED): the sidecar says so", sidekeeper.ErrClaimEnded)
}
