"""Leases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import grpc

from sidekeeper import _transport
from sidekeeper._claim import Answer
from sidekeeper._errors import LeaseLostError, SidekeeperError, named
from sidekeeper._held import GIVE_UP_TIMEOUT, Attempt, HeldStream, Kind, Streams
from sidekeeper._multiplex import Multiplex, Request
from sidekeeper._types import seconds
from sidekeeper.lease.v1 import lease_pb2

T = TypeVar("T")


class Lease(HeldStream):
    """Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost.

    While nothing stands on it, it is not lost when its validity runs out, as after a pause of the process. It is not valid until the
    sidecar answers again, and `error` is None.
    """

    id: str = ""
    """Names the lease in calls made without this package: 32 hexadecimal digits. It is a secret."""
    ttl: float = 0.0
    """The session timeout in seconds that the ensemble granted."""

    def __init__(self, leases: Leases) -> None:
        super().__init__(leases.kind, "lease")
        self._open_leases = leases.open
        self._may_outlive = leases.on_socket
        self._multiplex: Multiplex | None = None

    def _grant(self, granted: lease_pb2.Opened) -> str:
        self.id, self.ttl = granted.lease_id, seconds(granted.ttl)
        multiplex = cast(Multiplex, self._carrier)
        self._multiplex = self._open_leases[self.id] = multiplex
        if granted.resumable and self._may_outlive:
            multiplex.outlives(self.id, self._claim.valid_for)
        self._claim.carries(multiplex.carries_anything)
        self._claim.on_end(self._carry_no_more)
        return self.id

    def _carry_no_more(self) -> None:
        multiplex = self._open_leases.pop(self.id, None)
        self._multiplex = None
        if multiplex is not None and not self._claim.is_inherited():
            multiplex.end(self._claim.cause())

    def _start(self, recipe: str, request: Any) -> Request:
        """Starts a request on the lease's stream."""
        if self._multiplex is None:
            raise self._claim.cause()
        return self._multiplex.start(**{recipe: request})

    async def close(self) -> None:
        """Ends the lease; for the caller, it and everything acquired with it end at once. When this returns, all of that is gone from the
        ensemble. Raises LostError if the lease was lost before. Calling it again has the same outcome."""
        await self._give_up()

    async def _close_used(self, released: bool) -> None:
        """Closes a lease that was opened for one thing alone. Where that is gone, nothing is waited for."""
        self._claim.end()
        if released and isinstance(self._carrier, Multiplex):
            self._carrier.close()
        else:
            await self._abandon()


class Leased(HeldStream):
    """Something held on a lease, which may be its alone, or by a call of its own."""

    def __init__(self, kind: Kind, recipe: str, what: str, lease: Lease | None, own: Lease | None) -> None:
        super().__init__(carried(kind, recipe, own or lease), what, own or lease)
        self._own = own

    async def _give_up_once(self) -> None:
        released = False
        try:
            await super()._give_up_once()
            released = True
        finally:
            if self._own is not None:
                await self._own._close_used(released)


@dataclass(frozen=True)
class Leases:
    """All leases of one client."""

    kind: Kind
    open: dict[str, Multiplex]
    """The streams of those that are open, by their ids."""
    on_socket: bool
    """Whether they may outlive the sidecar's process: over anything else than a Unix socket they do not, whatever the sidecar says."""


def leases(streams: Streams, stub: Any, on_socket: bool) -> Leases:
    streams_of: dict[str, Multiplex] = {}

    async def close(lease_id: str) -> None:
        await _transport.call(stub.Close, lease_pb2.CloseRequest(lease_id=lease_id), GIVE_UP_TIMEOUT)

    async def check(ids: list[str], timeout: float) -> Mapping[str, Answer]:
        """A lease whose stream is silent keeps the others from nothing."""
        asked = [lease_id for lease_id in ids if lease_id in streams_of]
        answers = await asyncio.gather(*(streams_of[lease_id].check(timeout) for lease_id in asked), return_exceptions=True)
        answered = {lease_id: answer for lease_id, answer in zip(asked, answers, strict=True) if isinstance(answer, Answer)}
        for failed in answers:
            if isinstance(failed, BaseException) and not (answered and isinstance(failed, SidekeeperError)):
                raise failed
        return answered

    def open_stream(request: lease_pb2.OpenRequest) -> Multiplex:
        async def ask(timeout: float) -> None:
            """Raises why the lease has ended, if it has."""
            lease_id = next((key for key, stream in streams_of.items() if stream is multiplex), None)
            if lease_id:
                await _transport.call(stub.Check, lease_pb2.CheckRequest(lease_id=lease_id), timeout)

        multiplex = Multiplex(stub.Multiplex, request, ask)
        return multiplex

    return Leases(Kind(streams, open_stream, "opened", give_up=close, checker=streams.checker(check)), streams_of, on_socket)


async def on_own(
    leases: Leases, attempt: Attempt, owner: str, metadata: Mapping[str, str] | None, begin: Callable[[Lease], Awaitable[T]]
) -> T:
    """Begins something on a lease that is opened for it alone, and takes from the attempt's wait what that took. If the lease was lost
    first, the error says that another attempt may succeed: nothing was the caller's yet. The sidecar says of the thing that the lease is
    lost before it ends the lease's stream."""
    began = time.monotonic()
    lease = await Lease(leases)._open(lease_pb2.OpenRequest(owner=owner, metadata=metadata), attempt)
    if attempt.wait:  # 0 would be an attempt that does not wait
        attempt.wait = max(attempt.wait - (time.monotonic() - began), 0.001)
    try:
        return await begin(lease)
    except BaseException as error:
        lost = lease.error
        await lease._abandon()
        ended = isinstance(error, SidekeeperError) and error.code is grpc.StatusCode.ABORTED
        if ended and (isinstance(error, LeaseLostError) or (lost is not None and error is lost.cause)):
            raise named("ENSEMBLE_UNREACHABLE", f"nothing is held: {error.message}", grpc.StatusCode.UNAVAILABLE) from None
        raise


def carried(kind: Kind, recipe: str, lease: Lease | None) -> Kind:
    """How the stream of a lease carries a recipe, which is valid for as long as the lease; a lease of another client carries nothing."""
    if lease is None or lease._kind.streams is not kind.streams:
        return kind

    def start(request: Any) -> Request:
        request.ClearField("lease_id")
        return lease._start(recipe, request)

    return replace(kind, open=start, checker=None)
