package sidekeeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// CallTimeout is how long a call with one answer may take, attempts and pauses included, if its context has no deadline.
const CallTimeout = 10 * time.Second

// WithoutRepetition has calls fail at once that are otherwise repeated while the sidecar or the ensemble is away: for programs
// that tell a person about it. Acquire, too, makes one attempt.
func WithoutRepetition() Option {
	return func(s *settings) { s.noRetries = true }
}

// WithAbsence has tell called before each pause of a call that waits for a sidecar or an ensemble that is away: Acquire, Campaign, Join and all
// else that waits for its turn. The error is why the attempt has failed. Several goroutines may call tell at the same time.
func WithAbsence(tell func(err error)) Option {
	return func(s *settings) { s.absent = tell }
}

// retryable are the calls that are made again, and after which errors. What is not here is made once: Check and Release, whose
// answers are worth nothing later and which have attempts of their own, as Claim has, and what operators do by force.
var retryable = map[string]func(error) bool{
	// Those may be done twice; Next skips numbers at worst.
	leasev1.LeaseService_List_FullMethodName:             isTransient,
	lockv1.LockService_Get_FullMethodName:                isTransient,
	lockv1.LockService_Explain_FullMethodName:            isTransient,
	lockv1.LockService_List_FullMethodName:               isTransient,
	lockv1.LockService_Revoke_FullMethodName:             isTransient,
	lockv1.LockService_Extend_FullMethodName:             isTransient,
	fencingv1.FencingService_Verify_FullMethodName:       isTransient,
	electionv1.ElectionService_Proclaim_FullMethodName:   isTransient,
	electionv1.ElectionService_Transfer_FullMethodName:   isTransient,
	electionv1.ElectionService_Get_FullMethodName:        isTransient,
	semaphorev1.SemaphoreService_Create_FullMethodName:   isTransient,
	semaphorev1.SemaphoreService_Resize_FullMethodName:   isTransient,
	semaphorev1.SemaphoreService_Get_FullMethodName:      isTransient,
	semaphorev1.SemaphoreService_List_FullMethodName:     isTransient,
	barrierv1.BarrierService_Set_FullMethodName:          isTransient,
	barrierv1.BarrierService_Leave_FullMethodName:        isTransient,
	sequencev1.SequenceService_Next_FullMethodName:       isTransient,
	sequencev1.SequenceService_Get_FullMethodName:        isTransient,
	sequencev1.SequenceService_List_FullMethodName:       isTransient,
	membershipv1.MembershipService_Get_FullMethodName:    isTransient,
	membershipv1.MembershipService_List_FullMethodName:   isTransient,
	membershipv1.MembershipService_Update_FullMethodName: isTransient,
	membershipv1.MembershipService_Create_FullMethodName: isTransient,
	configv1.ConfigService_Get_FullMethodName:            isTransient,
	configv1.ConfigService_List_FullMethodName:           isTransient,
	// So may this, for Share.
	assignmentv1.AssignmentService_SetCapacity_FullMethodName: isTransient,
	// Those may not, and are only made again where the sidecar says that nothing was done.
	barrierv1.BarrierService_Remove_FullMethodName:   wasNotSent,
	sequencev1.SequenceService_Create_FullMethodName: wasNotSent,
	sequencev1.SequenceService_Delete_FullMethodName: wasNotSent,
	configv1.ConfigService_Put_FullMethodName:        wasNotSent,
	configv1.ConfigService_Delete_FullMethodName:     wasNotSent,
	configv1.ConfigService_Commit_FullMethodName:     wasNotSent,
}

func wasNotSent(err error) bool { return errors.Is(err, ErrEnsembleUnreachable) }

// waiting are the calls with one answer that wait for others.
var waiting = []string{
	lockv1.LockService_Claim_FullMethodName, barrierv1.BarrierService_Leave_FullMethodName, oncev1.OnceService_Finish_FullMethodName,
}

// bounded gives a call a deadline that has none, unless it waits for others.
func bounded(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	waits := slices.Contains(waiting, method)
	if _, has := ctx.Deadline(); !has && !waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, CallTimeout)
		defer cancel()
	}
	return invoke(ctx, method, request, reply, connection, options...)
}

// repeated makes a call again, after a pause at random that grows, while its error may heal and there is time.
func repeated(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	mayRetry := retryable[method]
	var again pause
	for {
		err := invoke(ctx, method, request, reply, connection, options...)
		if err == nil || mayRetry == nil || !mayRetry(fromStatus(err)) {
			return err
		}
		pausing := again.grow()
		if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= pausing || rest(ctx, pausing) != nil {
			return err
		}
	}
}
