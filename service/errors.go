package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// errorDomain stands in every ErrorInfo.
const errorDomain = "sidekeeper"

// retryDelay is what RetryInfo asks of a caller that met UNAVAILABLE.
const retryDelay = time.Second

// The errors of this service. What stands after the colon of a status message is their text.
var (
	errLeaseLost         = errors.New("the lease has expired or can no longer be proved alive")
	errLeaseClosed       = errors.New("the lease is closed")
	errLockBroken        = errors.New("the hold was ended by an operator, or its place was removed by hand")
	errLockRevoked       = errors.New("the grace period of a revocation expired")
	errHoldStopped       = errors.New("the sidecar stopped, and its drain timeout expired")
	errStopping          = errors.New("the sidecar is stopping; nothing is held")
	errEnsembleLost      = errors.New("the ensemble does not answer; nothing is held")
	errDeadlock          = errors.New("the wait would never end: each waits for a lock of the next, and the last for one of the first")
	errWaitTimeout       = errors.New("wait_timeout expired")
	errSemaphoreFull     = errors.New("not enough free permits")
	errQueueEmpty        = errors.New("no item that is due and that no other caller takes")
	errDeliveryReturned  = errors.New("the caller ended the stream before it was done: the item is delivered again")
	errLockHeld          = errors.New("the lock is held by another caller")
	errAlreadyContending = errors.New("the lease already holds this or waits for it")
	errLeaseNotFound     = errors.New("no such lease of this caller")
	errHoldNotFound      = errors.New("no such hold of this caller")
	ErrOperatorOnly      = errors.New("available only on the operators' listener")
	errPolicyDenied      = errors.New("denied by the policy")
	errInvalidField      = errors.New("invalid field")
	errUnknownKind       = errors.New("this sidecar does not know what is started: it is older than its caller, or there are too many fields")
	errLeaseLimit        = errors.New("lease limit reached")
	errWaiterLimit       = errors.New("waiter limit reached")
	errStreamLimit       = errors.New("limit of long-lived streams per connection reached")
	errSlowReader        = errors.New("the caller does not read its stream")
	errMemoryLimit       = errors.New("not enough memory for so large an answer, or for one more stream")
	errWatchLimit        = errors.New("watch limit exceeded")
	errQuotaExceeded     = errors.New("limit of one caller reached")
	errInterrupted       = errors.New("interrupted by a panic")
	errNotRecorded       = errors.New("the sidecar cannot write what it must record first")
	errKeyRunning        = errors.New("another caller holds the lock of the work, or waits for it")
)

// An answer is what the caller is told of one error.
type answer struct {
	err    error
	code   codes.Code
	reason errorsv1.Reason
}

// answers is every error this service names, and what its caller is told. The first match wins.
var answers = []answer{
	{errInvalidField, codes.InvalidArgument, errorsv1.Reason_REASON_INVALID_FIELD},
	{errUnknownKind, codes.Unimplemented, errorsv1.Reason_REASON_UNSPECIFIED},
	{errLeaseLost, codes.Aborted, errorsv1.Reason_REASON_LEASE_LOST},
	{errLeaseClosed, codes.Aborted, errorsv1.Reason_REASON_LEASE_CLOSED},
	{errLockBroken, codes.Aborted, errorsv1.Reason_REASON_LOCK_BROKEN},
	{errLockRevoked, codes.Aborted, errorsv1.Reason_REASON_LOCK_REVOKED},
	{errHoldStopped, codes.Aborted, errorsv1.Reason_REASON_SIDECAR_STOPPING},
	{errStopping, codes.Unavailable, errorsv1.Reason_REASON_SIDECAR_STOPPING},
	{errNotRecorded, codes.Unavailable, errorsv1.Reason_REASON_NOT_RECORDED},
	{errEnsembleLost, codes.Unavailable, errorsv1.Reason_REASON_ENSEMBLE_UNREACHABLE},
	{errDeadlock, codes.Aborted, errorsv1.Reason_REASON_DEADLOCK},
	{errWaitTimeout, codes.DeadlineExceeded, errorsv1.Reason_REASON_WAIT_TIMEOUT},
	{errLockHeld, codes.FailedPrecondition, errorsv1.Reason_REASON_LOCK_HELD},
	{errSemaphoreFull, codes.FailedPrecondition, errorsv1.Reason_REASON_SEMAPHORE_FULL},
	{recipes.ErrQueueFull, codes.ResourceExhausted, errorsv1.Reason_REASON_QUEUE_FULL},
	{errQueueEmpty, codes.FailedPrecondition, errorsv1.Reason_REASON_QUEUE_EMPTY},
	{errDeliveryReturned, codes.Aborted, errorsv1.Reason_REASON_DELIVERY_RETURNED},
	{errAlreadyContending, codes.FailedPrecondition, errorsv1.Reason_REASON_ALREADY_CONTENDING},
	{errLeaseNotFound, codes.NotFound, errorsv1.Reason_REASON_LEASE_NOT_FOUND},
	{errHoldNotFound, codes.NotFound, errorsv1.Reason_REASON_HOLD_NOT_FOUND},
	{ErrOperatorOnly, codes.PermissionDenied, errorsv1.Reason_REASON_OPERATOR_ONLY},
	{errPolicyDenied, codes.PermissionDenied, errorsv1.Reason_REASON_POLICY_DENIED},
	{errLeaseLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_LEASE_LIMIT},
	{errWaiterLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_WAITER_LIMIT},
	{errStreamLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_STREAM_LIMIT},
	{errSlowReader, codes.ResourceExhausted, errorsv1.Reason_REASON_SLOW_READER},
	{recipes.ErrKindMismatch, codes.FailedPrecondition, errorsv1.Reason_REASON_LOCK_KIND_MISMATCH},
	{recipes.ErrDirectory, codes.FailedPrecondition, errorsv1.Reason_REASON_NAME_IS_DIRECTORY},
	{recipes.ErrTokenMismatch, codes.FailedPrecondition, errorsv1.Reason_REASON_FENCING_TOKEN_MISMATCH},
	{errMemoryLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_MEMORY_LIMIT},
	{errWatchLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_WATCH_LIMIT},
	{errQuotaExceeded, codes.ResourceExhausted, errorsv1.Reason_REASON_QUOTA_EXCEEDED},
	{recipes.ErrNoSequence, codes.NotFound, errorsv1.Reason_REASON_SEQUENCE_NOT_FOUND},
	{recipes.ErrSequenceExists, codes.AlreadyExists, errorsv1.Reason_REASON_SEQUENCE_EXISTS},
	{recipes.ErrExhausted, codes.OutOfRange, errorsv1.Reason_REASON_SEQUENCE_EXHAUSTED},
	{recipes.ErrMalformed, codes.FailedPrecondition, errorsv1.Reason_REASON_SEQUENCE_MALFORMED},
	{recipes.ErrFell, codes.FailedPrecondition, errorsv1.Reason_REASON_SEQUENCE_MALFORMED},
	{recipes.ErrBarrierInUse, codes.FailedPrecondition, errorsv1.Reason_REASON_NAME_IS_DIRECTORY},
	{recipes.ErrForeignChildren, codes.FailedPrecondition, errorsv1.Reason_REASON_NAME_IS_DIRECTORY},
	{recipes.ErrMemberExists, codes.AlreadyExists, errorsv1.Reason_REASON_MEMBER_EXISTS},
	{recipes.ErrReplaced, codes.Aborted, errorsv1.Reason_REASON_MEMBER_REPLACED},
	{recipes.ErrRemoved, codes.Aborted, errorsv1.Reason_REASON_MEMBER_REMOVED},
	{recipes.ErrNoMember, codes.NotFound, errorsv1.Reason_REASON_MEMBER_NOT_FOUND},
	{recipes.ErrNoGroup, codes.NotFound, errorsv1.Reason_REASON_GROUP_NOT_FOUND},
	{recipes.ErrGroupNotEmpty, codes.FailedPrecondition, errorsv1.Reason_REASON_GROUP_NOT_EMPTY},
	{recipes.ErrNoSemaphore, codes.NotFound, errorsv1.Reason_REASON_SEMAPHORE_NOT_FOUND},
	{recipes.ErrSemaphoreExists, codes.AlreadyExists, errorsv1.Reason_REASON_SEMAPHORE_EXISTS},
	{recipes.ErrMalformedLimit, codes.FailedPrecondition, errorsv1.Reason_REASON_SEMAPHORE_MALFORMED},
	{recipes.ErrTooManyPermits, codes.FailedPrecondition, errorsv1.Reason_REASON_TOO_MANY_PERMITS},
	{recipes.ErrUndecided, codes.FailedPrecondition, errorsv1.Reason_REASON_PRECONDITION_FAILED},
	{recipes.ErrNoAgreement, codes.NotFound, errorsv1.Reason_REASON_AGREEMENT_NOT_FOUND},
	{recipes.ErrDone, codes.FailedPrecondition, errorsv1.Reason_REASON_ALREADY_DONE},
	{recipes.ErrNotRepeated, codes.FailedPrecondition, errorsv1.Reason_REASON_NOT_REPEATED},
	{recipes.ErrSuperseded, codes.FailedPrecondition, errorsv1.Reason_REASON_SUPERSEDED},
	{recipes.ErrTooManyKeys, codes.ResourceExhausted, errorsv1.Reason_REASON_TOO_MANY_KEYS},
	{recipes.ErrNoSchedule, codes.NotFound, errorsv1.Reason_REASON_SCHEDULE_NOT_FOUND},
	{recipes.ErrClocksDisagree, codes.FailedPrecondition, errorsv1.Reason_REASON_CLOCKS_DISAGREE},
	{errKeyRunning, codes.FailedPrecondition, errorsv1.Reason_REASON_KEY_RUNNING},
	{recipes.ErrNoRecord, codes.NotFound, errorsv1.Reason_REASON_RECORD_NOT_FOUND},
	{recipes.ErrMalformedRecord, codes.FailedPrecondition, errorsv1.Reason_REASON_RECORD_MALFORMED},
	{recipes.ErrNoClaim, codes.NotFound, errorsv1.Reason_REASON_CLAIM_NOT_FOUND},
	{recipes.ErrClaimEnded, codes.FailedPrecondition, errorsv1.Reason_REASON_CLAIM_ENDED},
	{recipes.ErrTooManyClaims, codes.ResourceExhausted, errorsv1.Reason_REASON_CLAIM_LIMIT},
	{recipes.ErrClaimAsked, codes.Aborted, errorsv1.Reason_REASON_LOCK_BROKEN},
	{recipes.ErrNoProcess, codes.FailedPrecondition, errorsv1.Reason_REASON_NO_PROCESS},
	{recipes.ErrNoAssignment, codes.NotFound, errorsv1.Reason_REASON_ASSIGNMENT_NOT_FOUND},
	{recipes.ErrItemsAssigned, codes.FailedPrecondition, errorsv1.Reason_REASON_ITEMS_ASSIGNED},
	{recipes.ErrAssignmentInUse, codes.FailedPrecondition, errorsv1.Reason_REASON_ASSIGNMENT_IN_USE},
	{recipes.ErrNoCandidate, codes.NotFound, errorsv1.Reason_REASON_CANDIDATE_NOT_FOUND},
	{recipes.ErrForeignCandidate, codes.FailedPrecondition, errorsv1.Reason_REASON_FOREIGN_CANDIDATE},
	{recipes.ErrNoKey, codes.NotFound, errorsv1.Reason_REASON_KEY_NOT_FOUND},
	{recipes.ErrPrecondition, codes.FailedPrecondition, errorsv1.Reason_REASON_PRECONDITION_FAILED},
	{recipes.ErrKeyHasChildren, codes.FailedPrecondition, errorsv1.Reason_REASON_KEY_HAS_CHILDREN},
	{recipes.ErrGone, codes.Aborted, errorsv1.Reason_REASON_LOCK_BROKEN},
	{recipes.ErrSessionEnded, codes.Aborted, errorsv1.Reason_REASON_LEASE_LOST},
	{recipes.ErrConnectionLimit, codes.ResourceExhausted, errorsv1.Reason_REASON_CONNECTION_LIMIT},
	{recipes.ErrTooManyBytes, codes.ResourceExhausted, errorsv1.Reason_REASON_EPHEMERAL_BYTES_LIMIT},
	{recipes.ErrDirectoryTooLarge, codes.ResourceExhausted, errorsv1.Reason_REASON_DIRECTORY_TOO_LARGE},
	{recipes.ErrQuota, codes.ResourceExhausted, errorsv1.Reason_REASON_QUOTA_EXCEEDED},
	{recipes.ErrDenied, codes.PermissionDenied, errorsv1.Reason_REASON_ENSEMBLE_DENIED},
	{recipes.ErrAuthDemanded, codes.PermissionDenied, errorsv1.Reason_REASON_ENSEMBLE_DEMANDS_AUTH},
	{recipes.ErrUnauthenticated, codes.PermissionDenied, errorsv1.Reason_REASON_ENSEMBLE_DEMANDS_AUTH},
	{recipes.ErrLocalSession, codes.PermissionDenied, errorsv1.Reason_REASON_ENSEMBLE_DENIED},
	{recipes.ErrOutcomeUnknown, codes.Aborted, errorsv1.Reason_REASON_OUTCOME_UNKNOWN},
	{recipes.ErrGuardLost, codes.FailedPrecondition, errorsv1.Reason_REASON_GUARD_LOST},
	{recipes.ErrRestored, codes.Unavailable, errorsv1.Reason_REASON_ENSEMBLE_UNREACHABLE},
	{recipes.ErrUnreachable, codes.Unavailable, errorsv1.Reason_REASON_ENSEMBLE_UNREACHABLE},
	{context.Canceled, codes.Canceled, errorsv1.Reason_REASON_UNSPECIFIED},
	{context.DeadlineExceeded, codes.DeadlineExceeded, errorsv1.Reason_REASON_UNSPECIFIED},
}

// unnamed is what the caller is told of everything else.
var unnamed = answer{errors.New("internal error"), codes.Internal, errorsv1.Reason_REASON_INTERNAL}

// A detailedError is an error of the table with what its caller may know beyond its kind.
type detailedError struct {
	kind  error
	facts map[string]string // for ErrorInfo
	text  string            // for people; empty if kind says it all
	retry time.Duration     // for RetryInfo; 0 for none
}

func (f *detailedError) Error() string { return strings.TrimSuffix(f.kind.Error()+": "+f.text, ": ") }
func (f *detailedError) Unwrap() error { return f.kind }

// invalid says that a field of the request breaks a rule.
func invalid(field, value, rule string) error {
	value = quoted(value)
	return &detailedError{
		kind:  errInvalidField,
		facts: map[string]string{"field": field, "value": value, "rule": rule},
		text:  fmt.Sprintf("%s is %s: %s", field, value, rule),
	}
}

// limited says which limit is reached, and at how many.
func limited(kind error, limit string, most int) error {
	return &detailedError{
		kind:  kind,
		facts: map[string]string{"limit": limit, "max": fmt.Sprint(most)},
		text:  fmt.Sprintf("%s is %d", limit, most),
	}
}

// StreamLimit says that a connection carries as many long-lived streams as it may.
func StreamLimit(most int) error { return limited(errStreamLimit, "max-streams", most) }

// QuotaExceeded says which limit of one caller is reached, at how many, and whose it is; and after how long the same would be
// allowed, if that is a matter of time alone, else 0.
func QuotaExceeded(limit string, most int, identity string, retry time.Duration) error {
	made := &detailedError{
		kind:  errQuotaExceeded,
		facts: map[string]string{"limit": limit, "max": fmt.Sprint(most), "caller": identity},
		text:  fmt.Sprintf("%s of %s: at most %d", limit, identity, most),
	}
	if retry > 0 {
		made.retry = (retry + time.Millisecond - 1).Truncate(time.Millisecond)
		made.facts["retry_after_ms"] = fmt.Sprint(made.retry.Milliseconds())
		made.text += ", again in " + made.retry.String()
	} else {
		made.text += ": give up what is not needed, or have an operator raise the limit"
	}
	return made
}

// MemoryLimit says that there is no memory for an answer.
func MemoryLimit(most int) error { return limited(errMemoryLimit, "max-memory", most) }

// ensembleLimit is what a limit in the ensemble says of itself.
func ensembleLimit(limit interface {
	error
	Unwrap() error
	Facts() map[string]string
},
) error {
	text := strings.TrimPrefix(limit.Error(), limit.Unwrap().Error()+": ")
	return &detailedError{kind: limit.Unwrap(), facts: limit.Facts(), text: text}
}

// PolicyDenied is the same answer whatever is stored under the name. It tells the caller as whom it was seen.
func PolicyDenied(identity, action string) error {
	return &detailedError{
		kind:  errPolicyDenied,
		facts: map[string]string{"caller": identity, "action": action},
		text:  "no rule allows " + identity + " " + action + " for what it names: have an operator add one",
	}
}

// nameless are the errors of a name that is missing or taken, which do not say which.
var nameless = []error{recipes.ErrNoSequence, recipes.ErrSequenceExists, recipes.ErrNoGroup, recipes.ErrNoSemaphore, recipes.ErrNoKey}

// Naming says in an error what the call was about, if that is missing.
func Naming(err error, about []string) error {
	if _, told := errors.AsType[*detailedError](err); told || err == nil {
		return err
	}
	for _, kind := range nameless {
		if errors.Is(err, kind) && len(about) == 1 {
			return &detailedError{kind: kind, text: about[0]}
		}
	}
	return err
}

// quoted makes a caller's value fit for a message: escaped, and no longer than a line.
func quoted(value string) string {
	const most = 64
	if len(value) > most {
		return fmt.Sprintf("%q…", value[:most])
	}
	return fmt.Sprintf("%q", value)
}

// answerTo finds what the caller is told of err.
func answerTo(err error) answer {
	for _, known := range answers {
		if errors.Is(err, known.err) {
			return known
		}
	}
	return unnamed
}

// ReasonOf is the reason of an error as it stands on the wire, without the enum's prefix; empty if it has none.
func ReasonOf(err error) string {
	return reasonText(answerTo(err).reason)
}

func reasonText(reason errorsv1.Reason) string {
	if reason == errorsv1.Reason_REASON_UNSPECIFIED {
		return ""
	}
	return strings.TrimPrefix(reason.String(), "REASON_")
}

// StatusOf makes the status that err leaves with, and the reason for the trailer (empty if it has none). What the
// error's wrapping says stays here, since it may name what must not leave the sidecar: only the table's text and the facts of a
// detailedError go out. An error that is a status already, which only the transport makes, leaves as it is.
func StatusOf(err error) (*status.Status, string) {
	if err == nil {
		return nil, ""
	}
	if made, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return made.GRPCStatus(), ""
	}
	if limit, ok := errors.AsType[interface {
		error
		Unwrap() error
		Facts() map[string]string
	}](err); ok {
		err = ensembleLimit(limit)
	}
	known := answerTo(err)
	reason := reasonText(known.reason)
	if reason == "" {
		return status.New(known.code, known.err.Error()), ""
	}
	made := status.New(known.code, reason+": "+messageOf(err, known))
	detailed, failure := made.WithDetails(detailsOf(err, known)...)
	if failure != nil { // only if the details cannot be marshalled, and then the code still counts
		return made, reason
	}
	return detailed, reason
}

func messageOf(err error, known answer) string {
	if of, ok := errors.AsType[*detailedError](err); ok {
		return of.Error()
	}
	return known.err.Error()
}

func detailsOf(err error, known answer) []protoadapt.MessageV1 {
	facts := map[string]string{}
	info := &errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonText(known.reason), Metadata: facts}
	details := []protoadapt.MessageV1{info}
	if of, ok := errors.AsType[*detailedError](err); ok {
		maps.Copy(facts, of.facts)
		if of.retry > 0 {
			details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(of.retry)})
		}
	}
	if known.reason == errorsv1.Reason_REASON_INVALID_FIELD {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{
			Field: facts["field"], Description: facts["rule"], Reason: info.GetReason(),
		}}})
	}
	if known.code == codes.Unavailable {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryDelay)})
	}
	return details
}
