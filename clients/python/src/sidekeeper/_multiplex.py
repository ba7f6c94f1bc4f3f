"""The stream of a lease, which carries what its client starts on the lease: requests with ids, and their events and ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from sidekeeper import _transport
from sidekeeper._claim import Answer
from sidekeeper._errors import SidekeeperError, from_ended
from sidekeeper._held import GIVE_UP_TIMEOUT, Told
from sidekeeper._types import seconds
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lease.v1 import lease_pb2

WHY_TIMEOUT = 1.0
RESUME_PAUSE = 0.05
"""Between two attempts to come back to a lease: the sidecar is on this machine, and may be there at any moment."""
TELL_INTERVAL = 1.0
"""How often those who hold something are told how long it is still valid, until the lease is resumed."""


class Multiplex:
    """The stream. A task of gRPC's sends its messages. The task of its lease reads them, and waits for no other task."""

    def __init__(self, method: Callable[..., Any], request: lease_pb2.OpenRequest, ask: Callable[[float], Awaitable[object]]) -> None:
        self._ask = ask
        self._method = method
        self._unsent: asyncio.Queue[lease_pb2.MultiplexRequest | None] = asyncio.Queue()
        self._stream: _transport.Stream[Any] | None = _transport.start(method, _messages(self._unsent))
        self._lease_id = ""
        self._valid_for: Callable[[], float] = lambda: 0.0
        self._broken: SidekeeperError | None = None
        self._requests: dict[int, Request] = {}
        self._checks: dict[int, asyncio.Future[Answer]] = {}
        self._last = 0
        self._why = _transport.closed()
        self.alive = True
        """Whether messages are sent and read."""
        self._send(open=request)

    def _send(self, **request: Any) -> None:
        """Has a message sent if it can be, and waits for nothing."""
        if self.alive:
            self._unsent.put_nowait(lease_pb2.MultiplexRequest(**request))

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    async def next(self) -> Told | None:
        if self._broken is not None:
            return await self._come_back(self._broken)
        message = None
        try:
            message = await self._read()
        except SidekeeperError as error:
            if not self._may_resume(error):
                raise
            error.__context__, self._broken = None, error.with_traceback(None)
            self._stops_may_be_done()
            return self._suspended()
        finally:
            if message is None:
                self._stream = None  # which keeps gRPC
                self._end_sending()
                self.alive = self._broken is not None
        if message is None:
            return None
        return self._take(message)

    async def _read(self) -> Any:
        try:
            return await _transport.next_of(self._stream) if self._stream else None
        except SidekeeperError as error:
            if error.code is grpc.StatusCode.INTERNAL:
                await self._find_out_why(error)
            raise

    def _take(self, message: Any) -> Told:
        kind = message.WhichOneof("response")
        content = kind and getattr(message, kind)
        match kind:
            case "suspended" | "resumed":
                for request in list(self._requests.values()):
                    request.hear(kind, content)
            case "event" if content.request_id in self._requests:
                recipe = content.WhichOneof("event")
                event = getattr(content, recipe)
                told = event.WhichOneof("event")
                self._requests[content.request_id].hear_of(told, told and getattr(event, told))
            case "ended" if content.request_id in self._requests:
                self._requests[content.request_id].hear_end(from_ended(content))
            case "checked" if content.check_id in self._checks:
                _answer(self._checks[content.check_id], Answer(seconds(content.valid_for)))
        return kind, content

    async def _find_out_why(self, error: SidekeeperError) -> None:
        """Raises why the stream has ended if gRPC does not say it, since something was sent in that moment. A sidecar that knows the lease
        has not ended it. Then the stream has broken, as when its process ends."""
        self.alive = bool(self._lease_id)
        await self._ask(WHY_TIMEOUT)
        raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, error.message) from None

    def outlives(self, lease_id: str, valid_for: Callable[[], float]) -> None:
        """Says that the lease outlives the sidecar's process: another stream comes back to it."""
        self._lease_id, self._valid_for = lease_id, valid_for

    def _may_resume(self, error: SidekeeperError) -> bool:
        """Whether the stream has broken without a word, as it does when the sidecar's process ends."""
        broken = error.code is grpc.StatusCode.UNAVAILABLE and not error.reason
        return broken and bool(self._lease_id) and self.alive and self._valid_for() > 0

    def _suspended(self) -> Told:
        suspended = hold_pb2.Suspended()
        suspended.remaining.FromNanoseconds(int(self._valid_for() * 1e9))
        return self._take(lease_pb2.MultiplexResponse(suspended=suspended))

    async def _come_back(self, broken: SidekeeperError) -> Told:
        """Comes back to the lease, or says again that it is suspended. Until then the caller's claims count on what they were told, and no
        longer than that: if it runs out, the claim ends, and with it the attempts."""
        until = time.monotonic() + TELL_INTERVAL
        why = broken
        while self.alive and self._valid_for() > 0:
            try:
                await self._try_to_come_back()
            except SidekeeperError as error:
                self._stops_may_be_done()
                if not _transport.may_heal(error, heard=True):
                    why = broken if error.reason == "LEASE_NOT_FOUND" else error
                    break
            else:
                self._broken = None
                return self._take(lease_pb2.MultiplexResponse(resumed=hold_pb2.Resumed()))
            await asyncio.sleep(RESUME_PAUSE)
            if time.monotonic() > until:
                return self._suspended()
        self.alive, self._stream = False, None
        self._end_sending()
        raise why

    def _stops_may_be_done(self) -> None:
        """Notes whose place may be gone unseen, since a stream has broken over which they were given up."""
        for request in self._requests.values():
            request.may_be_gone = request.stopped

    async def _try_to_come_back(self) -> None:
        claims = [request.claim() for request in self._requests.values()]
        self._end_sending()
        self._unsent = asyncio.Queue()  # what was unsent is among the claims, or follows
        self._send(resume=lease_pb2.Resume(lease_id=self._lease_id, claims=claims))
        for request in self._requests.values():
            if request.stopped:
                self.stop(request.id)
        for check_id in self._checks:
            self._send(check=lease_pb2.CheckValidity(check_id=check_id))
        self._stream = _transport.start(self._method, _messages(self._unsent))
        message = await _transport.next_of(self._stream)
        if message is None:
            raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream without a reason")
        if message.WhichOneof("response") != "opened":
            raise SidekeeperError(grpc.StatusCode.INTERNAL, "the sidecar has resumed the lease without saying so")

    def on_end(self, _: Callable[[SidekeeperError | None], object]) -> None:
        """Tells no listener: the task that reads the stream learns of the end when it comes to it."""

    def close(self) -> None:
        """Has the sidecar close the lease when it has taken what was sent before."""
        self._end_sending()

    def _end_sending(self) -> None:
        """Ends the generator of what is sent: gRPC leaves it waiting when a stream has broken, and one that waits cannot be closed."""
        self._unsent.put_nowait(None)

    def cancel(self) -> None:
        self.alive = False
        if self._stream is not None:
            self._stream.cancel()

    def give_up(self) -> None:
        return None

    def end(self, why: SidekeeperError) -> None:
        """Ends what it carries: its lease has ended, for this reason."""
        self._why = why
        for request in list(self._requests.values()):
            request.end(why)
        for answer in self._checks.values():
            _answer(answer, Answer(0, why))

    def start(self, **of: Any) -> Request:
        """Starts a request; not after its lease has ended."""
        request_id = self._next_id()
        request = Request(self, lease_pb2.Start(request_id=request_id, **of))
        self._requests[request_id] = request
        self._send(start=request.start)
        return request

    def stop(self, request: int) -> None:
        """Gives a request up, or acknowledges its end."""
        if request in self._requests:
            self._requests[request].stopped = True
        self._send(stop=lease_pb2.Stop(request_id=request))

    def carries_anything(self) -> bool:
        """Whether the lease's clock counts: a request has not ended, or the stream is broken."""
        return bool(self._requests) or self._broken is not None

    def forget(self, request: int) -> None:
        self._requests.pop(request, None)

    async def check(self, timeout: float) -> Answer:
        """Asks how long the lease is valid, within a timeout in seconds. The ends that are told before the answer have ended their claims
        by then."""
        if not self.alive:
            return Answer(0, self._why)
        check_id = self._next_id()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._checks[check_id] = answer
        self._send(check=lease_pb2.CheckValidity(check_id=check_id))
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise _unanswered() from None
        finally:
            del self._checks[check_id]


class Request:
    """A request on the stream of its lease."""

    def __init__(self, carrier: Multiplex, start: lease_pb2.Start) -> None:
        self.id = start.request_id
        self.start = start
        self.stopped = False
        """Whether the sidecar was asked to give it up."""
        self.may_be_gone = False
        """Whether it was asked over a stream that has broken since."""
        self._hold_id = ""
        self._token = 0
        self._carrier = carrier
        self._events: asyncio.Queue[Told | None] = asyncio.Queue()
        self._over = asyncio.Event()
        self._outcome: SidekeeperError | None = None
        self._on_end: Callable[[SidekeeperError | None], object] = lambda _: None

    def hear(self, kind: str | None, content: Any) -> None:
        if not self._over.is_set():
            self._events.put_nowait((kind, content))

    def hear_of(self, kind: str | None, content: Any) -> None:
        """Hears an event of its own."""
        if kind in ("granted", "entered", "begun", "fire"):
            self._hold_id, self._token = content.hold_id, _token_of(content)
        elif kind == "elected":
            self._hold_id, self._token = content.hold_id, content.ticket.fencing_token
        elif kind == "joined":
            self._token = content.incarnation
        self.hear(kind, content)

    def claim(self) -> lease_pb2.Claim:
        """What it is for the sidecar that comes back to the lease."""
        return lease_pb2.Claim(start=self.start, hold_id=self._hold_id, token=self._token)

    def hear_end(self, outcome: SidekeeperError | None) -> None:
        """Hears how it has ended. Whose place is gone because the caller gave it up has lost nothing."""
        gone = self.may_be_gone and outcome is not None and outcome.code is grpc.StatusCode.ABORTED
        self.end(None if gone else outcome)

    def end(self, outcome: SidekeeperError | None) -> None:
        """Ends it at once, and not when its events have been handled: the lease goes on."""
        if not self._over.is_set():
            self._outcome = outcome
            self._over.set()
            self._carrier.forget(self.id)
            self._on_end(outcome)
            self._events.put_nowait(None)

    async def next(self) -> Told | None:
        told = await self._events.get()
        if told is None and self._outcome is not None:
            raise self._outcome
        return told

    def on_end(self, listener: Callable[[SidekeeperError | None], object]) -> None:
        """Has a listener told of its end before anything else is read."""
        self._on_end = listener
        if self._over.is_set():
            listener(self._outcome)

    def cancel(self) -> None:
        if not self._over.is_set():
            self._carrier.stop(self.id)
            self.end(SidekeeperError(grpc.StatusCode.CANCELLED, "the stream was cancelled"))

    def give_up(self) -> Any:
        """What has ended is acknowledged by a call: gRPC forgets what it has not been asked for yet when a message comes too late."""
        return self._give_up() if self._carrier.alive and not self._over.is_set() else None

    async def _give_up(self) -> None:
        self._carrier.stop(self.id)
        try:
            async with asyncio.timeout(GIVE_UP_TIMEOUT):
                await self._over.wait()
        except TimeoutError:
            raise _unanswered() from None
        if self._outcome is not None:
            raise self._outcome


async def _messages(unsent: asyncio.Queue[lease_pb2.MultiplexRequest | None]) -> AsyncIterator[lease_pb2.MultiplexRequest]:
    while (message := await unsent.get()) is not None:
        yield message


def _token_of(granted: Any) -> int:
    """The token of what was granted; several locks have one and the same, as their places were made at once."""
    if hasattr(granted, "locks"):
        return int(granted.locks[0].fencing_token)
    return int(granted.token if hasattr(granted, "token") else granted.fencing_token)


def _answer(asked: asyncio.Future[Answer], answer: Answer) -> None:
    if not asked.done():
        asked.set_result(answer)


def _unanswered() -> SidekeeperError:
    return SidekeeperError(grpc.StatusCode.DEADLINE_EXCEEDED, "the sidecar does not answer")
