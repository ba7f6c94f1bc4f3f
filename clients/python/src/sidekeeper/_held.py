"""What a caller holds by a stream, whatever it is: the stream is opened, something is granted on it, its validity is checked, it is
suspended and resumed, and it ends with a reason, which is acknowledged. No recipe is named here: each is a thin type on top."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import grpc

from sidekeeper import _fork, _transport
from sidekeeper._claim import SHORTEST_PAUSE, Ask, Checker, Claim, log, quiet
from sidekeeper._errors import ForkedError, LostError, SidekeeperError, named

T = TypeVar("T")

Told = tuple[str | None, Any]
"""An event: its name and what it carries."""

GIVE_UP_ATTEMPTS = 3
GIVE_UP_TIMEOUT = 5.0
CLOSE_TIMEOUT = 1.0


class Streams:
    """All held streams of one client."""

    def __init__(self) -> None:
        self.closed = False
        self._checkers: list[Checker] = []
        self._readers: set[asyncio.Task[None]] = set()
        self._acknowledgments: set[asyncio.Task[None]] = set()

    def checker(self, ask: Ask) -> Checker:
        self._checkers.append(Checker(ask))
        return self._checkers[-1]

    def read(self, reading: asyncio.Task[None]) -> asyncio.Task[None]:
        return _keep(self._readers, reading)

    def acknowledge(self, give_up: Callable[[], Awaitable[object]]) -> None:
        """Sends an acknowledgment once, unless the client is closed. The answer only repeats how it ended."""

        async def send() -> None:
            with suppress(SidekeeperError):
                await give_up()

        if not self.closed:
            _keep(self._acknowledgments, asyncio.create_task(send(), name="sidekeeper: acknowledge"))

    async def close(self, channel: _transport.Channel) -> None:
        self.closed = True
        for checker in self._checkers:
            checker.end_all()  # before the sidecar learns of it
        if self._acknowledgments:
            await asyncio.wait(list(self._acknowledgments), timeout=CLOSE_TIMEOUT)
        await channel.close()
        if self._readers:
            await asyncio.wait(list(self._readers))
        for checker in self._checkers:
            await checker.stop()


def _keep(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> asyncio.Task[None]:
    quiet(task)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


class Carrier(Protocol):
    """What brings the events of something held: a call of its own, or a request on the stream of its lease."""

    async def next(self) -> Told | None:
        """The next event; None at an end without an error. Raises SidekeeperError."""

    def on_end(self, listener: Callable[[SidekeeperError | None], object]) -> None:
        """Has a listener told of the end at once, if something else that is told later could be taken for newer."""

    def cancel(self) -> object: ...

    def give_up(self) -> Awaitable[None] | None:
        """Has the sidecar end it, or acknowledges that it has; None if that takes a call."""


class Single:
    """A call of its own."""

    def __init__(self, method: Callable[..., Any], request: Any) -> None:
        _transport.ask_for_keepalives(request)
        self._stream = _transport.start(method, request)
        self.cancel = self._stream.cancel

    async def next(self) -> Told | None:
        event = await _transport.next_of(self._stream)
        while event is not None and event.HasField("keepalive"):
            event = await _transport.next_of(self._stream)
        if event is None:
            return None
        kind = event.WhichOneof("event")
        return kind, kind and getattr(event, kind)

    def on_end(self, _: Callable[[SidekeeperError | None], object]) -> None:
        """Nothing else tells of it."""

    def give_up(self) -> None:
        return None


@dataclass(frozen=True)
class Kind:
    """What one recipe is made of."""

    streams: Streams
    open: Callable[[Any], Carrier]
    granted: str
    """The event of the stream that grants it."""
    give_up: Callable[[str], Awaitable[object]] | None = None
    """Has the sidecar end what the key names, by a call."""
    checker: Checker | None = None
    """Without one, the validity is that of the lease."""
    acknowledged: bool = False
    """Whether the sidecar may keep the place after a loss until it is given up."""


class Attempt:
    """One attempt to get something."""

    def __init__(self, wait: float | None) -> None:
        self.wait = wait
        """What it may wait for a grant, in seconds; None, without a limit."""
        self.heard = False
        """Whether the sidecar has said anything."""


async def through_absence(streams: Streams, wait: float | None, lease: HeldStream | None, attempt: Callable[[Attempt], Awaitable[T]]) -> T:
    """Makes attempts while the sidecar or the ensemble is away: for as long as the caller waits; if that has no limit, until nothing has
    been heard for ABSENCE_TIMEOUT. What depends on a lease is tried no longer than that lives. What an attempt was granted has ended
    before the next one."""
    until = None if wait is None else time.monotonic() + wait
    backoff, left = _transport.Backoff(), wait
    while True:
        this = Attempt(left)
        try:
            if lease is not None:
                await lease._await_validity()
            return await attempt(this)
        except SidekeeperError as error:
            lost = lease is not None and lease._claim.over()
            if not _transport.may_heal(error, this.heard) or lost or streams.closed:
                raise
            if this.heard:
                backoff.reset()
            if until is None or (wait is None and this.heard):
                until = time.monotonic() + _transport.ABSENCE_TIMEOUT
            pause = backoff.next()
            if time.monotonic() + pause >= until:
                raise
        await asyncio.sleep(pause)
        if wait is not None:
            left = max(until - time.monotonic(), 0.001)  # 0 would be an attempt that does not wait


class Held:
    """What all that is held has in common, for threads and for asyncio."""

    _claim: Claim

    @property
    def valid(self) -> bool:
        """Whether it is proven to be the caller's at this moment."""
        return self.valid_for > 0

    @property
    def valid_for(self) -> float:
        """For how many seconds it is proven to remain the caller's, even if the sidecar is not heard from again; 0 if it is not."""
        return self._claim.valid_for()

    @property
    def suspended(self) -> bool:
        """Whether the sidecar has lost contact with the ensemble and not regained it yet."""
        return self._claim.suspended

    @property
    def error(self) -> LostError | None:
        """Why it was lost, from the moment it is no longer valid; None before that, and if it was given up."""
        return self._claim.lost()


class HeldStream(Held):
    """Something held by a stream, with asyncio. A recipe derives from it and says in `_grant` what the granting event carries."""

    def __init__(self, kind: Kind, what: str, lease: HeldStream | None = None) -> None:
        self._kind = kind
        self._lease = lease
        self._claim = Claim(what, lease._claim if lease and kind.checker is None else None)
        self._key = ""
        self._carrier: Carrier | None = None
        self._reader: asyncio.Task[None] | None = None
        self._giving_up: asyncio.Task[None] | None = None
        self._on_suspension: list[Callable[[bool], None]] = []

    def _grant(self, granted: Any) -> str:
        """Takes in the event that grants it, and returns the key by which later calls name it."""
        raise NotImplementedError

    def _notice(self, kind: str | None, event: Any) -> None:
        """Is called with every event, after the core has handled it."""

    async def wait_ended(self) -> None:
        """Returns when it is no longer the caller's: lost, or given up."""
        if not self._claim.over():
            await self._claim.ended.wait()

    async def _await_validity(self) -> None:
        """Returns when it is valid or has ended. A lease on which nothing stands may be neither: then its checker goes on asking."""
        until = time.monotonic() + _transport.ANSWER_TIME
        while not (self._claim.valid_for() or self._claim.lost() or self._claim.over()):
            if time.monotonic() > until:
                raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar does not answer: it may be frozen, or its ensemble away")
            await asyncio.sleep(SHORTEST_PAUSE)

    async def _open(self, request: object, attempt: Attempt) -> Self:
        """Opens the stream, and returns when it is granted and valid."""
        self._carrier = carrier = self._kind.open(request)
        self._claim.cancels(carrier.cancel)
        if self._lease is not None:
            self._claim.depends_on(self._lease._claim)
        self._claim.on_end(self._acknowledge)
        carrier.on_end(self._stream_ended)
        try:
            while not self._key:
                told = await carrier.next()
                if told is None:
                    raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream without a reason")
                attempt.heard = True
                self._handle(*told)
            reading = asyncio.create_task(self._read(carrier), name=f"sidekeeper: {self._claim.what}")
            self._reader = self._kind.streams.read(reading)
            if self._kind.checker is not None:
                await self._kind.checker.begin(self._key, self._claim)
            elif (lost := self._claim.lost()) is not None:
                raise lost.cause
        except BaseException as error:
            lost = self._claim.lost()
            await self._abandon()
            if lost is not None and isinstance(error, SidekeeperError):
                raise lost.cause from None  # it never was the caller's, so that nothing was lost
            raise
        return self

    def _handle(self, kind: str | None, content: Any) -> None:
        if kind == self._kind.granted:
            self._key = self._key or self._grant(content)
        elif kind in ("suspended", "resumed"):
            if not self._key:
                return  # it is the lease's, and nothing is held yet
            if self._claim.suspended != (kind == "suspended"):
                self._claim.suspended = kind == "suspended"
                for listener in self._on_suspension:
                    listener(self._claim.suspended)
        self._notice(kind, content)

    async def _read(self, carrier: Carrier) -> None:
        """Reads the stream until its end, which is the end of the claim."""
        try:
            while (told := await carrier.next()) is not None:
                self._handle(*told)
        except SidekeeperError as error:
            self._stream_ended(error)
        finally:
            self._claim.abandon()
            self._carrier = None  # which keeps gRPC

    def _stream_ended(self, error: SidekeeperError | None) -> None:
        if error is None:
            self._claim.abandon()
            return
        error.__context__ = None  # like its traceback, it keeps the call, and that keeps gRPC
        self._claim.lose(error.with_traceback(None))

    def _acknowledge(self) -> None:
        """Acknowledges a loss: until then the sidecar may keep its place for the caller. What was lost because the caller closed its
        lease needs no acknowledgment."""
        closed = self._lease is not None and self._lease._claim.was_given_up()
        lost = self._claim.lost() is not None and not self._claim.is_inherited()
        if self._kind.acknowledged and self._key and lost and not closed:
            carrier = self._carrier
            self._kind.streams.acknowledge(lambda: self._ask_to_end(carrier))

    async def _ask_to_end(self, carrier: Carrier | None) -> None:
        """Has the sidecar end it, or acknowledges that it has."""
        asked: Awaitable[object] | None = carrier.give_up() if carrier else None
        if asked is None:
            assert self._kind.give_up is not None
            asked = self._kind.give_up(self._key)
        await asked

    def _refuse_if_forked(self) -> None:
        """Raises LostError for a forked child's copy; if it was given up before the fork, ForkedError."""
        if self._claim.is_inherited():
            raise self._claim.lost() or ForkedError(_fork.INHERITED)

    async def _give_up(self) -> None:
        """Gives it up and has the sidecar confirm that, once. Raises LostError if it was lost before."""
        self._refuse_if_forked()
        if self._giving_up is None:
            self._giving_up = asyncio.create_task(self._give_up_once())
        await asyncio.shield(self._giving_up)

    def _raise_outcome(self) -> None:
        """Does what giving it up would, without the loop of a client that is closed."""
        if self._giving_up is not None and self._giving_up.done() and not self._giving_up.cancelled():
            self._giving_up.result()
        else:
            raise self._claim.lost() or self._not_confirmed(_transport.closed())

    async def _give_up_once(self) -> None:
        self._claim.end()
        try:
            if (lost := self._claim.lost()) is not None:
                raise lost
            await self._confirm()
        finally:
            await self._abandon()

    async def _confirm(self) -> None:
        for attempt in range(GIVE_UP_ATTEMPTS):
            try:
                await self._ask_to_end(self._carrier)
                return
            except SidekeeperError as error:
                unanswered = error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
                if error.reason or attempt == GIVE_UP_ATTEMPTS - 1 or not unanswered:
                    raise self._not_confirmed(error) from error
                await asyncio.sleep(random.uniform(0.05, 0.1))

    def _not_confirmed(self, error: SidekeeperError) -> LostError | SidekeeperError:
        """What the caller is told when the sidecar was asked to end it, and has not confirmed that. It is never the error itself: a caller
        that retries a call must not repeat the work."""
        if error.code is grpc.StatusCode.ABORTED:
            return LostError(self._claim.what, error)
        return named("RELEASE_UNCONFIRMED", f"{self._claim.what}: the work has ended, but its release is not confirmed: {error}")

    async def _abandon(self) -> None:
        """Ends it and its stream without asking for a confirmation."""
        self._claim.abandon()
        if self._reader is not None:
            await asyncio.wait([self._reader])
        self._carrier = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await leave_body(lambda: self._leave(error), strictly=kind is None)

    async def _leave(self, _: BaseException | None) -> None:
        """Ends it as its body has ended: with an error, or without one."""
        await self._give_up()


async def leave_body(give_up: Callable[[], Awaitable[None]], strictly: bool) -> None:
    """Gives something up at the end of a body, even if the task is cancelled meanwhile. Unless strictly, a failure is only logged."""
    doing = asyncio.ensure_future(give_up())
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        if not doing.cancelled() and (error := doing.exception()):
            log.warning("%s", error)
        raise
    except (LostError, SidekeeperError) as error:
        if strictly:
            raise
        log_failure(error)


def log_failure(error: Exception) -> None:
    """Logs why something could not be given up after its body had failed."""
    log.log(logging.DEBUG if isinstance(error, LostError) else logging.WARNING, "%s", error)
