package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
)

func TestTargetsAreUnderstood(t *testing.T) {
	for target, meant := range map[string]string{
		"":                   "unix:///run/sidekeeper/sidekeeper.sock true <nil>",
		"/tmp/s.sock":        "unix:///tmp/s.sock true <nil>",
		"unix:///tmp/s.sock": "unix:///tmp/s.sock true <nil>",
		"unix:s.sock":        "unix:s.sock true <nil>",
		"127.0.0.1:7181":     "127.0.0.1:7181 true <nil>",
		"[::1]:7181":         "[::1]:7181 true <nil>",
		"localhost:7181":     "localhost:7181 true <nil>",
		"example.org:7181":   "example.org:7181 false <nil>",
		"example.org":        ` false sidecar address "example.org" is neither unix:///path, a path nor host:port`,
	} {
		t.Setenv(sidekeeper.AddressVariable, "")
		resolved, local, err := sidekeeper.Resolve(target)
		if got := fmt.Sprint(resolved, " ", local, " ", err); got != meant {
			t.Errorf("%q: got %s, want %s", target, got, meant)
		}
	}
	t.Setenv(sidekeeper.AddressVariable, "127.0.0.1:1")
	if resolved, _, _ := sidekeeper.Resolve(""); resolved != "127.0.0.1:1" {
		t.Errorf("the variable was not read: %s", resolved)
	}
}

func TestAnAddressElsewhereNeedsTLS(t *testing.T) {
	_, err := sidekeeper.Dial("example.org:7181")
	want(t, err, "sidecar example.org:7181: an address that is neither a Unix socket nor loopback needs TLS")
}

func TestEveryReasonOfTheProtoHasItsSentinel(t *testing.T) {
	sentinels := []error{
		sidekeeper.ErrLeaseLost, sidekeeper.ErrLeaseClosed, sidekeeper.ErrLockBroken, sidekeeper.ErrLockRevoked,
		sidekeeper.ErrSidecarStopping, sidekeeper.ErrEnsembleUnreachable, sidekeeper.ErrOutcomeUnknown,
		sidekeeper.ErrEnsembleDenied, sidekeeper.ErrEnsembleDemandsAuth, sidekeeper.ErrWaitTimeout,
		sidekeeper.ErrLockHeld,
		sidekeeper.ErrLockKindMismatch, sidekeeper.ErrAlreadyContending, sidekeeper.ErrFencingTokenMismatch,
		sidekeeper.ErrNameIsDirectory, sidekeeper.ErrLeaseNotFound, sidekeeper.ErrHoldNotFound,
		sidekeeper.ErrOperatorOnly, sidekeeper.ErrInvalidField, sidekeeper.ErrLeaseLimit, sidekeeper.ErrWaiterLimit,
		sidekeeper.ErrStreamLimit, sidekeeper.ErrConnectionLimit, sidekeeper.ErrEphemeralBytesLimit,
		sidekeeper.ErrSlowReader, sidekeeper.ErrInternal, sidekeeper.ErrWatchLimit, sidekeeper.ErrMemoryLimit,
		sidekeeper.ErrPolicyDenied,
		sidekeeper.ErrQuotaExceeded,
		sidekeeper.ErrDirectoryTooLarge, sidekeeper.ErrGuardLost, sidekeeper.ErrDeadlock,
		sidekeeper.ErrReleaseUnconfirmed,
		sidekeeper.ErrSequenceNotFound, sidekeeper.ErrSequenceExists, sidekeeper.ErrSequenceExhausted,
		sidekeeper.ErrSequenceMalformed,
		sidekeeper.ErrMemberExists, sidekeeper.ErrMemberReplaced, sidekeeper.ErrMemberRemoved, sidekeeper.ErrMemberNotFound,
		sidekeeper.ErrGroupNotFound, sidekeeper.ErrGroupNotEmpty,
		sidekeeper.ErrSemaphoreExists, sidekeeper.ErrSemaphoreNotFound, sidekeeper.ErrSemaphoreMalformed, sidekeeper.ErrSemaphoreFull,
		sidekeeper.ErrQueueFull, sidekeeper.ErrQueueEmpty, sidekeeper.ErrDeliveryReturned, sidekeeper.ErrAgreementNotFound,
		sidekeeper.ErrNotRecorded, sidekeeper.ErrAlreadyDone, sidekeeper.ErrNotRepeated, sidekeeper.ErrSuperseded,
		sidekeeper.ErrClaimNotFound, sidekeeper.ErrClaimEnded, sidekeeper.ErrClaimLimit, sidekeeper.ErrNoProcess,
		sidekeeper.ErrTooManyKeys, sidekeeper.ErrKeyRunning, sidekeeper.ErrRecordNotFound, sidekeeper.ErrRecordMalformed,
		sidekeeper.ErrScheduleNotFound, sidekeeper.ErrClocksDisagree,
		sidekeeper.ErrAssignmentNotFound, sidekeeper.ErrItemsAssigned, sidekeeper.ErrAssignmentInUse,
		sidekeeper.ErrTooManyPermits, sidekeeper.ErrCandidateNotFound, sidekeeper.ErrForeignCandidate,
		sidekeeper.ErrKeyNotFound, sidekeeper.ErrPreconditionFailed, sidekeeper.ErrKeyHasChildren,
	}
	byName := map[string]error{}
	for _, sentinel := range sentinels {
		byName[sentinel.Error()] = sentinel
	}
	for number, name := range errorsv1.Reason_name {
		name = name[len("REASON_"):]
		if number == 0 {
			continue
		}
		err := sidekeeper.FromStatus(scripted.Status(codes.Aborted, name, "why"))
		want(t, err, "Aborted ("+name+"): why")
		if byName[name] == nil || !errors.Is(err, byName[name]) {
			t.Errorf("%s has no sentinel that matches it", name)
		}
	}
	if len(byName) != len(errorsv1.Reason_name)-1 {
		t.Errorf("%d sentinels for %d reasons", len(byName), len(errorsv1.Reason_name)-1)
	}
}

func TestAReasonIsNotReadFromAText(t *testing.T) {
	err := sidekeeper.FromStatus(status.Error(codes.Aborted, "LEASE_LOST: expired"))
	want(t, err, "Aborted: LEASE_LOST: expired")
	if errors.Is(err, sidekeeper.ErrLeaseLost) {
		t.Error("a text is taken for a reason")
	}
}

func TestTheFieldAndTheRuleOfABadRequestAreKept(t *testing.T) {
	bad, err := status.New(codes.InvalidArgument, "INVALID_FIELD: name is empty").WithDetails(
		&errdetails.ErrorInfo{Domain: "sidekeeper", Reason: "INVALID_FIELD"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "name", Description: "must not be empty"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	e := (*sidekeeper.Error)(nil)
	if !errors.As(sidekeeper.FromStatus(bad.Err()), &e) || fmt.Sprint(e.Fields) != "[{name must not be empty}]" {
		t.Errorf("%+v", e)
	}
}

func TestWithLockReleasesAfterwards(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := make(chan error, 1)
	var token int64
	go func() {
		result <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{},
			func(ctx context.Context, lock *sidekeeper.Lock) error {
				token = lock.FencingToken()
				return ctx.Err()
			})
	}()
	call := server.NextAcquire()
	call.Grant(5)
	if err := receive(t, result); err != nil || token != 5 {
		t.Errorf("%v with token %d", err, token)
	}
	call.AwaitGone()
}

func TestTheContextOfWithLockEndsOnLossWithTheReason(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	running, causes, result := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		result <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{},
			func(ctx context.Context, _ *sidekeeper.Lock) error {
				close(running)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil
			})
	}()
	call := server.NextAcquire()
	call.Grant(5)
	receive(t, running)
	call.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	want(t, receive(t, causes), "lock orders lost: Aborted (LEASE_LOST): expired", sidekeeper.ErrLost)
	if err := receive(t, result); !errors.Is(err, sidekeeper.ErrLeaseLost) {
		t.Errorf("WithLock returned %v although the lock was lost", err)
	}
}

func TestWithLockKeepsTheLockWhileAFunctionWindsDownAfterACancel(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	valid := false
	go func() {
		result <- client.WithLock(ctx, "orders", sidekeeper.LockOptions{},
			func(ctx context.Context, lock *sidekeeper.Lock) error {
				cancel()
				<-ctx.Done()
				valid = lock.Valid()
				return context.Cause(ctx)
			})
	}()
	server.NextAcquire().Grant(5)
	want(t, receive(t, result), "context canceled", context.Canceled)
	if !valid {
		t.Error("the lock ended before the function")
	}
}

func TestWithLockPassesTheErrorOfAcquire(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := make(chan error, 1)
	go func() {
		result <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{Wait: new(time.Duration)}, nil)
	}()
	server.NextAcquire().End(scripted.Status(codes.FailedPrecondition, "LOCK_HELD", "held"))
	want(t, receive(t, result), "lock orders: FailedPrecondition (LOCK_HELD): held", sidekeeper.ErrLockHeld)
}
