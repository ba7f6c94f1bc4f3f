package sidekeeper

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// madeOnce are the calls that are not made again, whatever happens.
var madeOnce = map[string]bool{
	leasev1.LeaseService_Check_FullMethodName:            true,
	leasev1.LeaseService_Close_FullMethodName:            true,
	lockv1.LockService_Check_FullMethodName:              true,
	lockv1.LockService_Claim_FullMethodName:              true,
	electionv1.ElectionService_Resign_FullMethodName:     true,
	lockv1.LockService_Release_FullMethodName:            true,
	lockv1.LockService_Break_FullMethodName:              true,
	sequencev1.SequenceService_AdvanceTo_FullMethodName:  true,
	membershipv1.MembershipService_Delete_FullMethodName: true,
}

func TestItIsDecidedForEachCallWhetherItIsMadeAgain(t *testing.T) {
	for _, file := range []protoreflect.FileDescriptor{
		leasev1.File_sidekeeper_lease_v1_lease_proto, lockv1.File_sidekeeper_lock_v1_lock_proto,
		sequencev1.File_sidekeeper_sequence_v1_sequence_proto, membershipv1.File_sidekeeper_membership_v1_membership_proto,
		configv1.File_sidekeeper_config_v1_config_proto, electionv1.File_sidekeeper_election_v1_election_proto,
	} {
		methods := file.Services().Get(0).Methods()
		for i := range methods.Len() {
			method := methods.Get(i)
			name := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
			if decided := (retryable[name] != nil) != madeOnce[name]; decided == method.IsStreamingServer() {
				t.Errorf("%s: streaming %v, made again or once %v", name, method.IsStreamingServer(), decided)
			}
		}
	}
}

// answering answers with errors, one after the other, and then with OK.
type answering struct {
	errors []error
	calls  int
}

func (a *answering) invoke(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	a.calls++
	if a.calls > len(a.errors) {
		return nil
	}
	return a.errors[a.calls-1]
}

func unreachable(t *testing.T) error {
	t.Helper()
	told, err := status.New(codes.Unavailable, "ENSEMBLE_UNREACHABLE: it does not answer").WithDetails(
		&errdetails.ErrorInfo{Domain: "sidekeeper", Reason: "ENSEMBLE_UNREACHABLE"})
	if err != nil {
		t.Fatal(err)
	}
	return told.Err()
}

func TestCallsAreMadeAgainOnlyWhereThatIsSafe(t *testing.T) {
	lost, refused := status.Error(codes.Unavailable, "connection reset"), status.Error(codes.FailedPrecondition, "no")
	texted := status.Error(codes.Unavailable, "ENSEMBLE_UNREACHABLE: says somebody") // a text tells nothing
	for _, test := range []struct {
		method string
		errors []error
		calls  int
		fails  bool
	}{
		{configv1.ConfigService_Get_FullMethodName, []error{lost, unreachable(t)}, 3, false},
		{configv1.ConfigService_Get_FullMethodName, []error{lost, refused}, 2, true},
		{configv1.ConfigService_Put_FullMethodName, []error{unreachable(t)}, 2, false},
		{configv1.ConfigService_Put_FullMethodName, []error{lost}, 1, true},
		{configv1.ConfigService_Put_FullMethodName, []error{texted}, 1, true},
		{lockv1.LockService_Release_FullMethodName, []error{unreachable(t)}, 1, true},
	} {
		inBubble(t, func(t *testing.T) {
			sidecar := &answering{errors: test.errors}
			err := repeated(t.Context(), test.method, nil, nil, nil, sidecar.invoke)
			if sidecar.calls != test.calls || (err != nil) != test.fails {
				t.Errorf("%s after %v: %d calls, %v", test.method, test.errors, sidecar.calls, err)
			}
		})
	}
}

func TestACallIsMadeAgainUntilItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sidecar := &answering{}
		for range 1000 {
			sidecar.errors = append(sidecar.errors, status.Error(codes.Unavailable, "away"))
		}
		began := time.Now()
		method := lockv1.LockService_Get_FullMethodName
		again := func(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, options ...grpc.CallOption) error {
			return repeated(ctx, method, request, reply, c, sidecar.invoke, options...)
		}
		err := bounded(t.Context(), method, nil, nil, nil, again)
		took := time.Since(began)
		if err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("it ends with %v", err)
		}
		if took < CallTimeout-longestPause || took > CallTimeout || sidecar.calls < 6 {
			t.Errorf("%d calls in %v", sidecar.calls, took)
		}
	})
}

func TestADeadlineOfTheCallersStands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	see := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < 50*time.Minute {
			t.Errorf("it is at %v", deadline)
		}
		return nil
	}
	if err := bounded(ctx, "", nil, nil, nil, see); err != nil {
		t.Error(err)
	}
}
