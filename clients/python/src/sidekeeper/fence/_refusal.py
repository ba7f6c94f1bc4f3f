"""Calls that do not pass."""

from __future__ import annotations

from enum import Enum
from typing import Any

import grpc

from sidekeeper._guard import Ticket


class Reason(Enum):
    """Why a call does not pass, with what its caller gets in gRPC and HTTP."""

    MALFORMED = "malformed"
    """The header breaks its grammar: INVALID_ARGUMENT, 400."""
    MISSING = "missing"
    """There is no ticket, or none of a lock that is wanted: FAILED_PRECONDITION, 428."""
    STALE = "stale"
    """A larger token of the lock has been seen: FAILED_PRECONDITION, 412."""
    NOT_HELD = "not held"
    """The sidecar says that the hold does not last: FAILED_PRECONDITION, 412."""
    UNDECIDED = "undecided"
    """The marks cannot be read or written, or the sidecar not be asked: UNAVAILABLE, 503."""


_ANSWERS = {
    Reason.MALFORMED: (grpc.StatusCode.INVALID_ARGUMENT, "400 Bad Request"),
    Reason.MISSING: (grpc.StatusCode.FAILED_PRECONDITION, "428 Precondition Required"),
    Reason.STALE: (grpc.StatusCode.FAILED_PRECONDITION, "412 Precondition Failed"),
    Reason.NOT_HELD: (grpc.StatusCode.FAILED_PRECONDITION, "412 Precondition Failed"),
    Reason.UNDECIDED: (grpc.StatusCode.UNAVAILABLE, "503 Service Unavailable"),
}


class RefusedError(Exception):
    """A call does not pass. Nothing of it has been carried out."""

    def __init__(self, reason: Reason, message: str, ticket: Ticket | None = None, largest: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.ticket = ticket
        """That of the call, if its reason is STALE or NOT_HELD."""
        self.largest = largest
        """The token that the gate has seen, if STALE; that the lock is held with, if NOT_HELD; 0 if the lock has no holder."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, str(self), self.ticket, self.largest)

    @property
    def code(self) -> grpc.StatusCode:
        """What a caller in gRPC gets."""
        return _ANSWERS[self.reason][0]

    @property
    def http_status(self) -> str:
        """What a caller in HTTP gets, with its phrase."""
        return _ANSWERS[self.reason][1]


def stale(ticket: Ticket, largest: int) -> RefusedError:
    message = (
        f"lock {ticket.lock}: fencing token {ticket.fencing_token} is stale, since {largest} has been seen: "
        "the lock was granted to another holder"
    )
    return RefusedError(Reason.STALE, message, ticket, largest)


def not_held(ticket: Ticket, current: int) -> RefusedError:
    otherwise = f"but with {current}" if current else "nor with any other"
    message = f"lock {ticket.lock} is not held with fencing token {ticket.fencing_token}, {otherwise}"
    return RefusedError(Reason.NOT_HELD, message, ticket, current)


def undecided() -> RefusedError:
    return RefusedError(Reason.UNDECIDED, "whether the tickets of sidekeeper-fence are stale cannot be told at present")
