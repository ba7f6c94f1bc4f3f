package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

var (
	// ErrLost is what every error of a lock or lease wraps that was the caller's and is not any more, without the
	// caller having given it up.
	ErrLost = errors.New("lost")
	// ErrReleased is the cause with which the context of a lock or lease ends that the caller gave up.
	ErrReleased = errors.New("released")
	// ErrSuspended is the cause with which the context of a function ends whose lock was suspended for too long. It is not lost.
	ErrSuspended = errors.New("suspended for longer than the grace")
)

// Errors that the sidecar names, and ErrReleaseUnconfirmed, which the Client makes itself; errors.Is finds them in whatever a Client returns.
// What each means stands at the Reason of the same name in sidekeeper.errors.v1.
var (
	ErrLeaseLost            error = reason(errorsv1.Reason_REASON_LEASE_LOST)
	ErrLeaseClosed          error = reason(errorsv1.Reason_REASON_LEASE_CLOSED)
	ErrLockBroken           error = reason(errorsv1.Reason_REASON_LOCK_BROKEN)
	ErrLockRevoked          error = reason(errorsv1.Reason_REASON_LOCK_REVOKED)
	ErrSidecarStopping      error = reason(errorsv1.Reason_REASON_SIDECAR_STOPPING)
	ErrEnsembleUnreachable  error = reason(errorsv1.Reason_REASON_ENSEMBLE_UNREACHABLE)
	ErrNotRecorded          error = reason(errorsv1.Reason_REASON_NOT_RECORDED)
	ErrOutcomeUnknown       error = reason(errorsv1.Reason_REASON_OUTCOME_UNKNOWN)
	ErrEnsembleDenied       error = reason(errorsv1.Reason_REASON_ENSEMBLE_DENIED)
	ErrEnsembleDemandsAuth  error = reason(errorsv1.Reason_REASON_ENSEMBLE_DEMANDS_AUTH)
	ErrWaitTimeout          error = reason(errorsv1.Reason_REASON_WAIT_TIMEOUT)
	ErrDeadlock             error = reason(errorsv1.Reason_REASON_DEADLOCK)
	ErrReleaseUnconfirmed   error = reason(errorsv1.Reason_REASON_RELEASE_UNCONFIRMED)
	ErrLockHeld             error = reason(errorsv1.Reason_REASON_LOCK_HELD)
	ErrLockKindMismatch     error = reason(errorsv1.Reason_REASON_LOCK_KIND_MISMATCH)
	ErrAlreadyContending    error = reason(errorsv1.Reason_REASON_ALREADY_CONTENDING)
	ErrFencingTokenMismatch error = reason(errorsv1.Reason_REASON_FENCING_TOKEN_MISMATCH)
	ErrNameIsDirectory      error = reason(errorsv1.Reason_REASON_NAME_IS_DIRECTORY)
	ErrLeaseNotFound        error = reason(errorsv1.Reason_REASON_LEASE_NOT_FOUND)
	ErrHoldNotFound         error = reason(errorsv1.Reason_REASON_HOLD_NOT_FOUND)
	ErrOperatorOnly         error = reason(errorsv1.Reason_REASON_OPERATOR_ONLY)
	ErrInvalidField         error = reason(errorsv1.Reason_REASON_INVALID_FIELD)
	ErrLeaseLimit           error = reason(errorsv1.Reason_REASON_LEASE_LIMIT)
	ErrWaiterLimit          error = reason(errorsv1.Reason_REASON_WAITER_LIMIT)
	ErrStreamLimit          error = reason(errorsv1.Reason_REASON_STREAM_LIMIT)
	ErrConnectionLimit      error = reason(errorsv1.Reason_REASON_CONNECTION_LIMIT)
	ErrEphemeralBytesLimit  error = reason(errorsv1.Reason_REASON_EPHEMERAL_BYTES_LIMIT)
	ErrSlowReader           error = reason(errorsv1.Reason_REASON_SLOW_READER)
	ErrSequenceNotFound     error = reason(errorsv1.Reason_REASON_SEQUENCE_NOT_FOUND)
	ErrSequenceExists       error = reason(errorsv1.Reason_REASON_SEQUENCE_EXISTS)
	ErrSequenceExhausted    error = reason(errorsv1.Reason_REASON_SEQUENCE_EXHAUSTED)
	ErrSequenceMalformed    error = reason(errorsv1.Reason_REASON_SEQUENCE_MALFORMED)
	ErrMemberExists         error = reason(errorsv1.Reason_REASON_MEMBER_EXISTS)
	ErrMemberReplaced       error = reason(errorsv1.Reason_REASON_MEMBER_REPLACED)
	ErrMemberRemoved        error = reason(errorsv1.Reason_REASON_MEMBER_REMOVED)
	ErrMemberNotFound       error = reason(errorsv1.Reason_REASON_MEMBER_NOT_FOUND)
	ErrGroupNotFound        error = reason(errorsv1.Reason_REASON_GROUP_NOT_FOUND)
	ErrGroupNotEmpty        error = reason(errorsv1.Reason_REASON_GROUP_NOT_EMPTY)
	ErrKeyNotFound          error = reason(errorsv1.Reason_REASON_KEY_NOT_FOUND)
	ErrPreconditionFailed   error = reason(errorsv1.Reason_REASON_PRECONDITION_FAILED)
	ErrKeyHasChildren       error = reason(errorsv1.Reason_REASON_KEY_HAS_CHILDREN)
	ErrWatchLimit           error = reason(errorsv1.Reason_REASON_WATCH_LIMIT)
	ErrMemoryLimit          error = reason(errorsv1.Reason_REASON_MEMORY_LIMIT)
	ErrPolicyDenied         error = reason(errorsv1.Reason_REASON_POLICY_DENIED)
	ErrQuotaExceeded        error = reason(errorsv1.Reason_REASON_QUOTA_EXCEEDED)
	ErrGuardLost            error = reason(errorsv1.Reason_REASON_GUARD_LOST)
	ErrSemaphoreExists      error = reason(errorsv1.Reason_REASON_SEMAPHORE_EXISTS)
	ErrSemaphoreNotFound    error = reason(errorsv1.Reason_REASON_SEMAPHORE_NOT_FOUND)
	ErrSemaphoreMalformed   error = reason(errorsv1.Reason_REASON_SEMAPHORE_MALFORMED)
	ErrSemaphoreFull        error = reason(errorsv1.Reason_REASON_SEMAPHORE_FULL)
	ErrQueueFull            error = reason(errorsv1.Reason_REASON_QUEUE_FULL)
	ErrQueueEmpty           error = reason(errorsv1.Reason_REASON_QUEUE_EMPTY)
	ErrDeliveryReturned     error = reason(errorsv1.Reason_REASON_DELIVERY_RETURNED)
	ErrAgreementNotFound    error = reason(errorsv1.Reason_REASON_AGREEMENT_NOT_FOUND)
	ErrAlreadyDone          error = reason(errorsv1.Reason_REASON_ALREADY_DONE)
	ErrNotRepeated          error = reason(errorsv1.Reason_REASON_NOT_REPEATED)
	ErrSuperseded           error = reason(errorsv1.Reason_REASON_SUPERSEDED)
	ErrTooManyKeys          error = reason(errorsv1.Reason_REASON_TOO_MANY_KEYS)
	ErrKeyRunning           error = reason(errorsv1.Reason_REASON_KEY_RUNNING)
	ErrClaimNotFound        error = reason(errorsv1.Reason_REASON_CLAIM_NOT_FOUND)
	ErrClaimEnded           error = reason(errorsv1.Reason_REASON_CLAIM_ENDED)
	ErrClaimLimit           error = reason(errorsv1.Reason_REASON_CLAIM_LIMIT)
	ErrNoProcess            error = reason(errorsv1.Reason_REASON_NO_PROCESS)
	ErrRecordNotFound       error = reason(errorsv1.Reason_REASON_RECORD_NOT_FOUND)
	ErrRecordMalformed      error = reason(errorsv1.Reason_REASON_RECORD_MALFORMED)
	ErrScheduleNotFound     error = reason(errorsv1.Reason_REASON_SCHEDULE_NOT_FOUND)
	ErrClocksDisagree       error = reason(errorsv1.Reason_REASON_CLOCKS_DISAGREE)
	ErrAssignmentNotFound   error = reason(errorsv1.Reason_REASON_ASSIGNMENT_NOT_FOUND)
	ErrItemsAssigned        error = reason(errorsv1.Reason_REASON_ITEMS_ASSIGNED)
	ErrAssignmentInUse      error = reason(errorsv1.Reason_REASON_ASSIGNMENT_IN_USE)
	ErrTooManyPermits       error = reason(errorsv1.Reason_REASON_TOO_MANY_PERMITS)
	ErrCandidateNotFound    error = reason(errorsv1.Reason_REASON_CANDIDATE_NOT_FOUND)
	ErrForeignCandidate     error = reason(errorsv1.Reason_REASON_FOREIGN_CANDIDATE)
	ErrDirectoryTooLarge    error = reason(errorsv1.Reason_REASON_DIRECTORY_TOO_LARGE)
	ErrInternal             error = reason(errorsv1.Reason_REASON_INTERNAL)
)

// An Error is a status that the sidecar, or gRPC on the way to it, ended a call with.
type Error struct {
	Code     codes.Code
	Reason   string            // a name of sidekeeper.errors.v1.Reason without its prefix; empty if there is none
	Message  string            // for people, without the reason
	Metadata map[string]string // more about the reason
	Fields   []FieldError      // with ErrInvalidField

	unreached bool // whether gRPC says that it has not reached a sidecar, and the Message is gRPC's
}

// A FieldError says which rule a field of the request breaks.
type FieldError struct{ Field, Rule string }

func (e *Error) Error() string {
	switch {
	case e.unreached:
		return fmt.Sprintf("%s: the sidecar is not reachable (%s): %s", e.Code, e.Message, look)
	case e.Reason == "":
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	default:
		return fmt.Sprintf("%s (%s): %s", e.Code, e.Reason, e.Message)
	}
}

const look = "see that it runs, that " + AddressVariable + " is its address, " +
	"and that both use TLS, with trusted certificates that have not expired, or neither does"

// Is tells errors.Is whether target is the sentinel of this error's reason or, where gRPC itself ended the call, the
// context's error behind it.
func (e *Error) Is(target error) bool {
	switch r, isReason := target.(reason); {
	case isReason:
		return e.Reason == r.name()
	case target == context.DeadlineExceeded:
		return e.Reason == "" && e.Code == codes.DeadlineExceeded
	case target == context.Canceled:
		return e.Reason == "" && e.Code == codes.Canceled
	default:
		return false
	}
}

// A reason is a sentinel.
type reason errorsv1.Reason

func (r reason) Error() string { return r.name() }

func (r reason) name() string { return reasonName(errorsv1.Reason(r)) }

func reasonName(r errorsv1.Reason) string { return strings.TrimPrefix(r.String(), "REASON_") }

// ended is the error of something that ended for a reason which came without a status.
func ended(reason, message string) *Error {
	return &Error{Code: codes.Aborted, Reason: reason, Message: message}
}

// checkTime refuses, as the sidecar would, a time below zero that may not reach the sidecar.
func checkTime(option string, given *time.Duration) error {
	if given == nil || *given >= 0 {
		return nil
	}
	const rule = "a duration from 0s"
	return &Error{
		Code: codes.InvalidArgument, Reason: ErrInvalidField.Error(), Message: fmt.Sprintf("invalid field: %s is %q: %s", option, *given, rule),
		Metadata: map[string]string{"field": option, "value": given.String(), "rule": rule}, Fields: []FieldError{{option, rule}},
	}
}

// FromStatus makes of an error that a generated stub has returned what a Client returns for it: an *Error, which errors.Is compares with the
// errors that the sidecar names. It is for services that a Client has no calls for, as QueueService.
func FromStatus(err error) error { return fromStatus(err) }

// fromStatus makes an *Error of what gRPC returned.
func fromStatus(err error) error {
	from, ok := status.FromError(err)
	if !ok || from.Code() == codes.OK {
		return err
	}
	e := &Error{Code: from.Code(), Message: from.Message()}
	for _, detail := range from.Details() {
		e.add(detail)
	}
	if e.Reason != "" { // which the message repeats for those who cannot read the details
		e.Message = strings.TrimPrefix(e.Message, e.Reason+": ")
	}
	e.unreached = e.Code == codes.Unavailable && e.Reason == ""
	return e
}

func (e *Error) add(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		if detail.GetDomain() == "sidekeeper" {
			e.Reason, e.Metadata = detail.GetReason(), detail.GetMetadata()
		}
	case *errdetails.BadRequest:
		for _, violation := range detail.GetFieldViolations() {
			e.Fields = append(e.Fields, FieldError{violation.GetField(), violation.GetDescription()})
		}
	}
}

// errorOf is what the single call of a request would end with.
func errorOf(ended *leasev1.Ended) error {
	if ended.GetCode() == int32(codes.OK) {
		return io.EOF
	}
	told := &Error{
		Code: codes.Code(ended.GetCode()), Reason: ended.GetReason(),
		Message:  strings.TrimPrefix(ended.GetMessage(), ended.GetReason()+": "),
		Metadata: ended.GetMetadata(),
	}
	if field := told.Metadata["field"]; field != "" {
		told.Fields = []FieldError{{field, told.Metadata["rule"]}}
	}
	return told
}
