"""Barriers, and entries of double barriers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from sidekeeper import _fork, _transport
from sidekeeper._claim import notify
from sidekeeper._errors import HoldNotFoundError, LostError, SidekeeperError, WaitTimeoutError, named
from sidekeeper._held import GIVE_UP_TIMEOUT, Attempt, Kind, Single, Streams, leave_body
from sidekeeper._lease import Lease, Leases
from sidekeeper._onlease import OnLease, on_lease
from sidekeeper._options import check
from sidekeeper._types import CommonBarrierOptions, duration, seconds
from sidekeeper.barrier.v1 import barrier_pb2


class BarrierOptions(CommonBarrierOptions, total=False):
    """How to enter a double barrier. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to stand at the barrier with, of the same client; None, one of its own that ends with the entry."""


class BarrierEntry(OnLease):
    """The caller's inside a double barrier, until it leaves. Leave, or release it, even after it was lost."""

    def __init__(self, kind: Kind, stub: Any, barrier: str, size: int, options: BarrierOptions, own: Lease | None) -> None:
        super().__init__(kind, "enter", f"entry of barrier {barrier}", options.get("lease"), own)
        self.barrier = barrier
        self.token = 0
        """Tells this entry from all others at the barrier."""
        self.round = 0
        """The same for all who are inside together, and larger than that of those before."""
        self._stub = stub
        self._size = size
        self._options = options
        self._leaving: _Leaving | None = None

    async def _enter(self, attempt: Attempt) -> BarrierEntry:
        request = barrier_pb2.EnterRequest(
            name=self.barrier,
            size=self._size,
            wait_timeout=duration(attempt.wait),
            owner=self._options.get("owner", ""),
            metadata=self._options.get("metadata"),
        )
        return await self._open(request, attempt)

    def _grant(self, granted: barrier_pb2.Entered) -> str:
        self.token, self.round = granted.token, granted.round
        return granted.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "waiting":
                notify(self._options.get("on_waiting"), event.present)
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))

    async def leave(self, wait: float | None = None) -> None:
        """Ends the entry, and returns when all who entered with it have left or have lost their leases. For the caller it ends at once.

        wait: the seconds to wait for the others; None, without a limit. Raises LostError if the entry was lost before. After any
        SidekeeperError, such as WaitTimeoutError, and if it is cancelled, it is over for the caller all the same, but others may be inside.
        Calling it again has the same outcome; release leaves without waiting, and only one of the two does anything.
        """
        self._refuse_if_forked()
        check(wait=wait)
        if self._giving_up is not None:
            await self._give_up()
            return
        self._leaving = leaving = _Leaving(wait)
        try:
            await self._give_up()
        except asyncio.CancelledError:
            leaving.stop(SidekeeperError(grpc.StatusCode.CANCELLED, "leaving was cancelled: others may be inside"))
            if self._giving_up is not None:
                self._giving_up.add_done_callback(_heard)
            raise

    async def release(self) -> None:
        """Leaves without waiting for the others, who do not wait for this entry any more when this returns. Errors as of Lock.release."""
        await self._give_up()

    async def _confirm(self) -> None:
        if self._leaving is None:
            await super()._confirm()
            return
        try:
            await self._leaving.run(self._ask_to_leave)
        except WaitTimeoutError:
            raise
        except SidekeeperError as error:
            raise self._not_confirmed(error) from error

    async def _ask_to_leave(self) -> None:
        """Asks until all have left. A sidecar that was started anew knows the entry only some time later; and one that is away is waited
        for as long as the entry lives, or for ABSENCE_TIMEOUT."""
        backoff, until = _transport.Backoff(), 0.0
        while True:
            began = time.monotonic()
            try:
                await _transport.call(self._stub.Leave, barrier_pb2.LeaveRequest(hold_id=self._key), None)
                return
            except SidekeeperError as error:
                if began > until:
                    until = time.monotonic() + _transport.ABSENCE_TIMEOUT
                pause = backoff.next()
                inside = self._reader is not None and not self._reader.done()
                away = _transport.is_transient(error) and (inside or time.monotonic() + pause < until)
                if not away and not (inside and isinstance(error, HoldNotFoundError)):
                    raise
            await asyncio.sleep(pause)

    def _stream_ended(self, error: SidekeeperError | None) -> None:
        super()._stream_ended(error)
        if error is not None and self._leaving is not None:
            self._leaving.stop(LostError(self._claim.what, error))  # a sidecar that is frozen would never answer

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leaves, and waits for the others unless the body has failed."""
        if kind is None:
            await self.leave()
        else:
            await leave_body(self.release, strictly=False)


def _heard(done: asyncio.Task[None]) -> None:
    """Takes note of an outcome that the program may never ask for. Otherwise asyncio would complain of it."""
    if not done.cancelled():
        done.exception()


class _Leaving:
    """A wait for the others, which can be stopped."""

    def __init__(self, wait: float | None) -> None:
        self._wait = wait
        self._why: Exception | None = None
        self._asking: asyncio.Task[None] | None = None

    async def run(self, ask: Callable[[], Awaitable[None]]) -> None:
        if self._why is not None:
            raise self._why
        self._asking = asyncio.create_task(within(self._wait, ask, "others are inside"))
        try:
            await self._asking
        except asyncio.CancelledError:
            if self._why is None:
                raise
            raise self._why from None

    def stop(self, why: Exception) -> None:
        self._why = self._why or why
        if self._asking is not None:
            self._asking.cancel()


async def within(wait: float | None, do: Callable[[], Awaitable[None]], late: str) -> None:
    """Does something in so many seconds, without a limit if that is None; late says what has not come about."""
    try:
        async with asyncio.timeout(wait):
            await do()
    except TimeoutError as error:
        if isinstance(error, SidekeeperError):
            raise
        raise named("WAIT_TIMEOUT", late, grpc.StatusCode.DEADLINE_EXCEEDED) from None


async def pass_barrier(stub: Any, name: str, wait: float | None, on_waiting: Callable[[], object] | None) -> None:
    """Waits until the barrier is not set, also at a sidecar that is away for a time."""
    if wait:
        await within(wait, lambda: _wait_again(stub, name, on_waiting), "the barrier is set")
    elif wait is None:
        await _wait_again(stub, name, on_waiting)
    elif await _wait_once(stub, name, lambda: True):
        raise named("WAIT_TIMEOUT", "the barrier is set", grpc.StatusCode.DEADLINE_EXCEEDED)


async def _wait_again(stub: Any, name: str, on_waiting: Callable[[], object] | None) -> None:
    backoff = _transport.Backoff()
    heard = False

    def waits() -> bool:
        nonlocal heard
        heard = True
        backoff.reset()
        notify(on_waiting)
        return False

    while True:
        heard = False
        try:
            await _wait_once(stub, name, waits)
            return
        except SidekeeperError as error:
            if not _transport.may_heal(error, heard):
                raise
        await asyncio.sleep(backoff.next())


async def _wait_once(stub: Any, name: str, waits: Callable[[], bool]) -> bool:
    """Whether it was too much for the caller, who is asked when the barrier is set, to wait."""
    request = barrier_pb2.WaitRequest(name=name)
    _transport.ask_for_keepalives(request)
    stream, home = _transport.start(stub.Wait, request), _fork.here()
    try:
        while (told := await _transport.next_of(stream)) is not None:
            if not told.HasField("keepalive") and waits():
                return True
        return False
    finally:
        if _fork.here() == home:
            stream.cancel()


async def enter(kind: Kind, leases: Leases, stub: Any, barrier: str, size: int, options: BarrierOptions) -> BarrierEntry:
    """Enters a double barrier, also at a sidecar that is away for a time."""

    async def take(own: Lease | None, attempt: Attempt) -> BarrierEntry:
        return await BarrierEntry(kind, stub, barrier, size, options, own)._enter(attempt)

    return await on_lease(kind, leases, options, options.get("owner", ""), take)


def kind(streams: Streams, stub: Any) -> Kind:
    async def release(hold_id: str) -> None:
        try:
            await _transport.call(stub.Leave, barrier_pb2.LeaveRequest(hold_id=hold_id), GIVE_UP_TIMEOUT)
        except SidekeeperError as error:
            if error.code is not grpc.StatusCode.DEADLINE_EXCEEDED:  # which is for the others
                raise

    return Kind(streams, lambda request: Single(stub.Enter, request), "entered", give_up=release, acknowledged=True)
