"""Claims: locks that are held without a process, until a time or until they are released."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sidekeeper import _clock, _guard, _transport
from sidekeeper._errors import OutcomeUnknownError, SidekeeperError, named
from sidekeeper._held import GIVE_UP_TIMEOUT, Streams
from sidekeeper._options import check
from sidekeeper._types import Token, duration, seconds
from sidekeeper.lock.v1 import lock_pb2


@dataclass
class Facts:
    """What is known of a claim: by its id alone, nothing more until `check` has asked."""

    id: str = field(repr=False)
    name: str = ""
    fencing_token: Token = field(default=Token(0))
    until: datetime | None = None


class Standing:
    """What claims have in common, for threads and for asyncio."""

    _facts: Facts

    @property
    def id(self) -> str:
        """Names the claim for every client. It is a secret: a caller that knows it owns the claim."""
        return self._facts.id

    @property
    def fencing_token(self) -> Token:
        """Orders the grants of this lock; of a claim that is known by its id alone, 0 until `check` has asked."""
        return self._facts.fencing_token

    @property
    def until(self) -> datetime | None:
        """When the claim ends, by the ensemble's clock; of a claim that is known by its id alone, None until `check` has asked."""
        return self._facts.until

    def ticket(self) -> _guard.Ticket:
        """What others guard with what they write for the claim. Raises ValueError of a claim that is known by its id alone."""
        if not self._facts.name:
            raise ValueError("a claim that is known by its id alone has no ticket: its lock is not known")
        return _guard.Ticket(self._facts.name, self._facts.fencing_token)


class Claim(Standing):
    """A lock that is held without a process. It outlives this client: only `release`, its time or an operator ends it."""

    def __init__(self, stub: Any, facts: Facts) -> None:
        self._stub, self._facts = stub, facts

    async def extend(self, reserve_for: float) -> None:
        """Has the claim end no earlier than so many seconds from now, 60 to 30 days; see `until`. Raises ClaimEndedError,
        ClaimNotFoundError."""
        check(reserve_for=reserve_for)
        reply = await self._call(self._stub.Extend, lock_pb2.ExtendRequest(claim_id=self.id, reserve_for=duration(reserve_for)))
        self._facts.until = reply.until.ToDatetime(UTC)

    async def check(self) -> float:
        """For how many seconds the claim counts from now, whatever operators do: at most 58, and 0 while it waits. Raises ClaimEndedError,
        ClaimNotFoundError."""
        asked = _clock.before()
        [of] = (await self._call(self._stub.Check, lock_pb2.CheckRequest(claim_ids=[self.id]))).claims
        if of.reason:
            raise named(of.reason, "the sidecar reports that the claim is not held")
        if of.HasField("until"):
            self._facts.fencing_token, self._facts.until = Token(of.fencing_token), of.until.ToDatetime(UTC)
        return max(asked + seconds(of.valid_for) - _clock.now(), 0.0)

    async def release(self) -> None:
        """Ends the claim. Releasing it again does nothing for a day. Raises ClaimEndedError if its time was over or an operator has
        ended it, and ClaimNotFoundError."""
        await self._call(self._stub.Release, lock_pb2.ReleaseRequest(claim_id=self.id))

    async def _call(self, method: Any, request: object) -> Any:
        return await _transport.call_idempotent(method, request, also=(OutcomeUnknownError,))


async def claim(streams: Streams, stub: Any, request: lock_pb2.ClaimRequest, wait: float | None, ours: bool) -> Facts:
    """Asks for a claim until there is an answer, or the time to wait is over. Without an answer, it releases a claim whose id is ours: the
    caller does not know the id."""
    try:
        granted = await _ask(stub, request, wait)
    except BaseException as error:
        if ours and (not isinstance(error, SidekeeperError) or not error.reason or _is_unanswered(error)):
            give_up = lock_pb2.ReleaseRequest(claim_id=request.claim_id)
            streams.acknowledge(lambda: _transport.call(stub.Release, give_up, GIVE_UP_TIMEOUT))
        raise
    return Facts(request.claim_id, request.name, Token(granted.fencing_token), granted.until.ToDatetime(UTC))


async def _ask(stub: Any, request: lock_pb2.ClaimRequest, wait: float | None) -> Any:
    until = math.inf if wait is None else time.monotonic() + wait
    backoff = _transport.Backoff()
    while True:
        try:
            return await _transport.call(stub.Claim, request, None)
        except SidekeeperError as error:
            pause = backoff.next()
            if not _is_unanswered(error) or time.monotonic() + pause >= until:
                raise
        await asyncio.sleep(pause)
        if wait is not None:
            left = max(until - time.monotonic(), 0.001)  # 0 would be an attempt that does not wait
            request.wait_timeout.FromNanoseconds(int(left * 1e9))


def _is_unanswered(error: SidekeeperError) -> bool:
    return _transport.is_transient(error) or isinstance(error, OutcomeUnknownError)
