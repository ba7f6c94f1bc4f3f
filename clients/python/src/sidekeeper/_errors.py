"""Errors, made from the domain and the reason of a status and never from its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from sidekeeper.lease.v1 import lease_pb2

__all__ = [
    "AgreementNotFoundError",
    "AlreadyContendingError",
    "AlreadyDoneError",
    "AssignmentInUseError",
    "AssignmentNotFoundError",
    "CandidateNotFoundError",
    "ClaimEndedError",
    "ClaimLimitError",
    "ClaimNotFoundError",
    "ClocksDisagreeError",
    "ConnectionLimitError",
    "DeadlockError",
    "DeliveryReturnedError",
    "DirectoryTooLargeError",
    "EnsembleDemandsAuthError",
    "EnsembleDeniedError",
    "EnsembleUnreachableError",
    "EphemeralBytesLimitError",
    "FencingTokenMismatchError",
    "FieldError",
    "ForeignCandidateError",
    "ForkedError",
    "GroupNotEmptyError",
    "GroupNotFoundError",
    "GuardLostError",
    "HoldNotFoundError",
    "InternalError",
    "InvalidFieldError",
    "ItemsAssignedError",
    "KeyHasChildrenError",
    "KeyNotFoundError",
    "KeyRunningError",
    "LeaseClosedError",
    "LeaseLimitError",
    "LeaseLostError",
    "LeaseNotFoundError",
    "LockBrokenError",
    "LockHeldError",
    "LockKindMismatchError",
    "LockRevokedError",
    "LostError",
    "MemberExistsError",
    "MemberNotFoundError",
    "MemberRemovedError",
    "MemberReplacedError",
    "MemoryLimitError",
    "NameIsDirectoryError",
    "NoProcessError",
    "NotRecordedError",
    "NotRepeatedError",
    "OperatorOnlyError",
    "OutcomeUnknownError",
    "PolicyDeniedError",
    "PreconditionFailedError",
    "QueueEmptyError",
    "QueueFullError",
    "QuotaExceededError",
    "RecordMalformedError",
    "RecordNotFoundError",
    "ReleaseUnconfirmedError",
    "ScheduleNotFoundError",
    "SemaphoreExistsError",
    "SemaphoreFullError",
    "SemaphoreMalformedError",
    "SemaphoreNotFoundError",
    "SequenceExhaustedError",
    "SequenceExistsError",
    "SequenceMalformedError",
    "SequenceNotFoundError",
    "SidecarStoppingError",
    "SidekeeperError",
    "SlowReaderError",
    "StreamLimitError",
    "SupersededError",
    "SuspendedError",
    "TooManyKeysError",
    "TooManyPermitsError",
    "WaitTimeoutError",
    "WaiterLimitError",
    "WatchLimitError",
]

DOMAIN = "sidekeeper"


@dataclass(frozen=True)
class FieldError:
    """A field of the request and the rule that it breaks."""

    field: str
    rule: str


class SidekeeperError(Exception):
    """A status that the sidecar, or gRPC on the way to it, ended a call with.

    One class stands for each reason, a name of `sidekeeper.errors.v1.Reason` without its prefix; each is documented
    there. A status without a reason is a SidekeeperError itself.
    """

    reason: str = ""
    """The name of the reason; empty if there is none."""

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        metadata: Mapping[str, str] | None = None,
        fields: Iterable[FieldError] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        """For people, without the reason."""
        self.metadata = dict(metadata or {})
        """More about the reason."""
        self.fields = tuple(fields)
        """With InvalidFieldError: which fields, and why."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, by which pools of processes hand errors on."""
        return _again, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.code.name}{reason}: {self.message}"


def _again(kind: type[SidekeeperError], args: tuple[Any, ...], state: Mapping[str, Any]) -> SidekeeperError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class LeaseLostError(SidekeeperError):
    reason = "LEASE_LOST"


class LeaseClosedError(SidekeeperError):
    reason = "LEASE_CLOSED"


class LockBrokenError(SidekeeperError):
    reason = "LOCK_BROKEN"


class LockRevokedError(SidekeeperError):
    reason = "LOCK_REVOKED"


class SidecarStoppingError(SidekeeperError):
    reason = "SIDECAR_STOPPING"


class EnsembleUnreachableError(SidekeeperError):
    reason = "ENSEMBLE_UNREACHABLE"


class NotRecordedError(SidekeeperError):
    reason = "NOT_RECORDED"


class OutcomeUnknownError(SidekeeperError):
    reason = "OUTCOME_UNKNOWN"


class EnsembleDeniedError(SidekeeperError):
    reason = "ENSEMBLE_DENIED"


class EnsembleDemandsAuthError(SidekeeperError):
    reason = "ENSEMBLE_DEMANDS_AUTH"


class WaitTimeoutError(SidekeeperError, TimeoutError):
    reason = "WAIT_TIMEOUT"


class LockHeldError(SidekeeperError):
    reason = "LOCK_HELD"


class DeadlockError(SidekeeperError):
    reason = "DEADLOCK"


class LockKindMismatchError(SidekeeperError):
    reason = "LOCK_KIND_MISMATCH"


class AlreadyContendingError(SidekeeperError):
    reason = "ALREADY_CONTENDING"


class FencingTokenMismatchError(SidekeeperError):
    reason = "FENCING_TOKEN_MISMATCH"


class NameIsDirectoryError(SidekeeperError):
    reason = "NAME_IS_DIRECTORY"


class LeaseNotFoundError(SidekeeperError):
    reason = "LEASE_NOT_FOUND"


class HoldNotFoundError(SidekeeperError):
    reason = "HOLD_NOT_FOUND"


class OperatorOnlyError(SidekeeperError):
    reason = "OPERATOR_ONLY"


class InvalidFieldError(SidekeeperError, ValueError):
    reason = "INVALID_FIELD"


class LeaseLimitError(SidekeeperError):
    reason = "LEASE_LIMIT"


class WaiterLimitError(SidekeeperError):
    reason = "WAITER_LIMIT"


class StreamLimitError(SidekeeperError):
    reason = "STREAM_LIMIT"


class ConnectionLimitError(SidekeeperError):
    reason = "CONNECTION_LIMIT"


class EphemeralBytesLimitError(SidekeeperError):
    reason = "EPHEMERAL_BYTES_LIMIT"


class SlowReaderError(SidekeeperError):
    reason = "SLOW_READER"


class InternalError(SidekeeperError):
    reason = "INTERNAL"


class SequenceNotFoundError(SidekeeperError):
    reason = "SEQUENCE_NOT_FOUND"


class SequenceExistsError(SidekeeperError):
    reason = "SEQUENCE_EXISTS"


class SequenceExhaustedError(SidekeeperError):
    reason = "SEQUENCE_EXHAUSTED"


class SequenceMalformedError(SidekeeperError):
    reason = "SEQUENCE_MALFORMED"


class MemberExistsError(SidekeeperError):
    reason = "MEMBER_EXISTS"


class MemberReplacedError(SidekeeperError):
    reason = "MEMBER_REPLACED"


class MemberRemovedError(SidekeeperError):
    reason = "MEMBER_REMOVED"


class MemberNotFoundError(SidekeeperError):
    reason = "MEMBER_NOT_FOUND"


class GroupNotFoundError(SidekeeperError):
    reason = "GROUP_NOT_FOUND"


class GroupNotEmptyError(SidekeeperError):
    reason = "GROUP_NOT_EMPTY"


class KeyNotFoundError(SidekeeperError):
    reason = "KEY_NOT_FOUND"


class PreconditionFailedError(SidekeeperError):
    reason = "PRECONDITION_FAILED"


class KeyHasChildrenError(SidekeeperError):
    reason = "KEY_HAS_CHILDREN"


class WatchLimitError(SidekeeperError):
    reason = "WATCH_LIMIT"


class MemoryLimitError(SidekeeperError):
    reason = "MEMORY_LIMIT"


class PolicyDeniedError(SidekeeperError):
    reason = "POLICY_DENIED"


class QuotaExceededError(SidekeeperError):
    reason = "QUOTA_EXCEEDED"


class DirectoryTooLargeError(SidekeeperError):
    reason = "DIRECTORY_TOO_LARGE"


class GuardLostError(SidekeeperError):
    reason = "GUARD_LOST"


class SemaphoreExistsError(SidekeeperError):
    reason = "SEMAPHORE_EXISTS"


class SemaphoreNotFoundError(SidekeeperError):
    reason = "SEMAPHORE_NOT_FOUND"


class SemaphoreMalformedError(SidekeeperError):
    reason = "SEMAPHORE_MALFORMED"


class SemaphoreFullError(SidekeeperError):
    reason = "SEMAPHORE_FULL"


class ReleaseUnconfirmedError(SidekeeperError):
    """The caller gave up what it held, and the sidecar has not confirmed that. The work under it has ended: do not repeat it. The client
    makes this error of whatever goes wrong while it gives up."""

    reason = "RELEASE_UNCONFIRMED"
    result: Any = None
    """What the body returned, if this package called it: in `run_while_leader`, or as a function with `locked`."""


class QueueFullError(SidekeeperError):
    reason = "QUEUE_FULL"


class QueueEmptyError(SidekeeperError):
    reason = "QUEUE_EMPTY"


class DeliveryReturnedError(SidekeeperError):
    reason = "DELIVERY_RETURNED"


class AgreementNotFoundError(SidekeeperError):
    reason = "AGREEMENT_NOT_FOUND"


class AlreadyDoneError(SidekeeperError):
    reason = "ALREADY_DONE"


class NotRepeatedError(SidekeeperError):
    reason = "NOT_REPEATED"


class SupersededError(SidekeeperError):
    reason = "SUPERSEDED"


class TooManyKeysError(SidekeeperError):
    reason = "TOO_MANY_KEYS"


class KeyRunningError(SidekeeperError):
    reason = "KEY_RUNNING"


class RecordNotFoundError(SidekeeperError):
    reason = "RECORD_NOT_FOUND"


class RecordMalformedError(SidekeeperError):
    reason = "RECORD_MALFORMED"


class ScheduleNotFoundError(SidekeeperError):
    reason = "SCHEDULE_NOT_FOUND"


class ClocksDisagreeError(SidekeeperError):
    reason = "CLOCKS_DISAGREE"


class AssignmentNotFoundError(SidekeeperError):
    reason = "ASSIGNMENT_NOT_FOUND"


class ItemsAssignedError(SidekeeperError):
    reason = "ITEMS_ASSIGNED"


class AssignmentInUseError(SidekeeperError):
    reason = "ASSIGNMENT_IN_USE"


class ClaimNotFoundError(SidekeeperError):
    reason = "CLAIM_NOT_FOUND"


class ClaimEndedError(SidekeeperError):
    reason = "CLAIM_ENDED"


class ClaimLimitError(SidekeeperError):
    reason = "CLAIM_LIMIT"


class NoProcessError(SidekeeperError):
    reason = "NO_PROCESS"


class TooManyPermitsError(SidekeeperError):
    reason = "TOO_MANY_PERMITS"


class CandidateNotFoundError(SidekeeperError):
    reason = "CANDIDATE_NOT_FOUND"


class ForeignCandidateError(SidekeeperError):
    reason = "FOREIGN_CANDIDATE"


class ForkedError(SidekeeperError):
    """A client was inherited by a process that was forked from the one that made it, or gRPC was: in that process nothing is held and
    nothing can be asked. No status of the sidecar's: it has not been called."""

    def __init__(self, message: str) -> None:
        super().__init__(grpc.StatusCode.FAILED_PRECONDITION, message)


class LostError(Exception):
    """Something that the caller held has ended without the caller giving it up."""

    def __init__(self, what: str, cause: SidekeeperError) -> None:
        super().__init__(f"{what} lost: {cause}")
        self.what = what
        """Such as `lock orders`."""
        self.cause = cause
        """Why."""
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.cause)


class SuspendedError(Exception):
    """The lock has been suspended for longer than the caller's suspension grace. It is not lost."""


@contextmanager
def results() -> Iterator[list[Any]]:
    """Has the error of a release carry the result that the body has put into the list by then."""
    done: list[Any] = []
    try:
        yield done
    except ReleaseUnconfirmedError as error:
        if done:
            error.result = done[0]
        raise


BY_REASON: Mapping[str, type[SidekeeperError]] = {kind.reason: kind for kind in SidekeeperError.__subclasses__() if kind.reason}


def named(reason: str, message: str, code: grpc.StatusCode = grpc.StatusCode.ABORTED) -> SidekeeperError:
    """The error of a reason that came without a status."""
    return BY_REASON.get(reason, SidekeeperError)(code, message)


_LOOK = (
    "see that it runs, that SIDEKEEPER_ADDRESS is its address, "
    "and that both use TLS, with trusted certificates that have not expired, or neither does"
)


def from_status(code: grpc.StatusCode, details: str | None, trailer: Iterable[Any] | None) -> SidekeeperError:
    """The error that a status with its trailer stands for."""
    reason, message = _split(details or "")
    metadata: Mapping[str, str] = {}
    fields: list[FieldError] = []
    for key, value in trailer or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            reason, metadata, fields = _read_details(value, reason)
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        message = f"the sidecar is not reachable ({message}): {_LOOK}"
    return BY_REASON.get(reason, SidekeeperError)(code, message, metadata, fields)


CODES: Mapping[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def from_ended(ended: lease_pb2.Ended) -> SidekeeperError | None:
    """The error that a request on a lease's stream has ended with; None if it was given up."""
    if ended.code == 0:
        return None
    metadata = dict(ended.metadata)
    fields = [FieldError(metadata["field"], metadata.get("rule", ""))] if "field" in metadata else []
    message = ended.message.removeprefix(f"{ended.reason}: ")
    return BY_REASON.get(ended.reason, SidekeeperError)(CODES.get(ended.code, grpc.StatusCode.UNKNOWN), message, metadata, fields)


def _split(details: str) -> tuple[str, str]:
    """Takes the reason off a message that begins with one: what a proxy that drops details leaves."""
    first, separator, rest = details.partition(": ")
    if separator and first in BY_REASON:
        return first, rest
    return "", details


def _read_details(value: bytes, reason: str) -> tuple[str, Mapping[str, str], list[FieldError]]:
    metadata: Mapping[str, str] = {}
    fields: list[FieldError] = []
    for detail in status_pb2.Status.FromString(value).details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info) and info.domain == DOMAIN:
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            fields.extend(FieldError(each.field, each.description) for each in bad.field_violations)
    return reason, metadata, fields
