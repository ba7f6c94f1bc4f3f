"""The stream of a lease, which carries what its client starts on the lease: requests with ids, and their events and ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from sidekeeper import _transport
from sidekeeper._claim import Answer
from sidekeeper._errors import SidekeeperError, from_ended
from sidekeeper._held import GIVE_UP_TIMEOUT, Told
from sidekeeper._types import seconds
from sidekeeper.lease.v1 import lease_pb2

WHY_TIMEOUT = 1.0


class Multiplex:
    """The stream. Its messages are sent by a task of gRPC's, and read by that of its lease, which waits for nobody else."""

    def __init__(self, method: Callable[..., Any], request: lease_pb2.OpenRequest, ask: Callable[[float], Awaitable[object]]) -> None:
        self._ask = ask
        self._unsent: asyncio.Queue[lease_pb2.MultiplexRequest] = asyncio.Queue()
        self._stream: _transport.Stream[Any] | None = _transport.start(method, self._messages())
        self._requests: dict[int, Request] = {}
        self._checks: dict[int, asyncio.Future[Answer]] = {}
        self._last = 0
        self._why = _transport.closed()
        self.alive = True
        """Whether messages are sent and read."""
        self._send(open=request)

    async def _messages(self) -> AsyncIterator[lease_pb2.MultiplexRequest]:
        while True:
            yield await self._unsent.get()

    def _send(self, **request: Any) -> None:
        """Has a message sent if it can be, and waits for nothing."""
        if self.alive:
            self._unsent.put_nowait(lease_pb2.MultiplexRequest(**request))

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    async def next(self) -> Told | None:
        message = None
        try:
            message = await _transport.next_of(self._stream) if self._stream else None
        except SidekeeperError as error:
            if error.code is not grpc.StatusCode.INTERNAL:
                raise
            await self._find_out_why(error)
        finally:
            if message is None:
                self.alive, self._stream = False, None  # which keeps gRPC
        if message is None:
            return None
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
                self._requests[content.request_id].hear(told, told and getattr(event, told))
            case "ended" if content.request_id in self._requests:
                self._requests[content.request_id].end(from_ended(content))
            case "checked" if content.check_id in self._checks:
                _answer(self._checks[content.check_id], Answer(seconds(content.valid_for)))
        return kind, content

    async def _find_out_why(self, error: SidekeeperError) -> None:
        """Raises why the stream has ended if gRPC does not say it, since something was sent in that moment."""
        self.alive = False
        await self._ask(WHY_TIMEOUT)
        raise error

    def on_end(self, _: Callable[[SidekeeperError | None], object]) -> None:
        """Whoever reads it is told when that has come."""

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
        request = Request(self, self._next_id())
        self._requests[request.id] = request
        self._send(start=lease_pb2.Start(request_id=request.id, **of))
        return request

    def stop(self, request: int) -> None:
        """Gives a request up, or acknowledges its end."""
        self._send(stop=lease_pb2.Stop(request_id=request))

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

    def __init__(self, carrier: Multiplex, request_id: int) -> None:
        self.id = request_id
        self._carrier = carrier
        self._events: asyncio.Queue[Told | None] = asyncio.Queue()
        self._over = asyncio.Event()
        self._outcome: SidekeeperError | None = None
        self._on_end: Callable[[SidekeeperError | None], object] = lambda _: None

    def hear(self, kind: str | None, content: Any) -> None:
        if not self._over.is_set():
            self._events.put_nowait((kind, content))

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


def _answer(asked: asyncio.Future[Answer], answer: Answer) -> None:
    if not asked.done():
        asked.set_result(answer)


def _unanswered() -> SidekeeperError:
    return SidekeeperError(grpc.StatusCode.DEADLINE_EXCEEDED, "the sidecar does not answer")
