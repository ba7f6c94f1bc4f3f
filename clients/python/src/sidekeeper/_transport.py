"""The way to the sidecar: its address, the channel, and calls whose errors are this package's."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio

from sidekeeper import _clock, _fork, _green
from sidekeeper._errors import (
    EnsembleUnreachableError,
    LeaseClosedError,
    LeaseLostError,
    LockBrokenError,
    LockRevokedError,
    SidecarStoppingError,
    SidekeeperError,
    from_status,
)
from sidekeeper._types import GroupView, LockView, SemaphoreView

DEFAULT_ADDRESS = "unix:///run/sidekeeper/sidekeeper.sock"
"""The default address of a sidecar."""

ADDRESS_VARIABLE = "SIDEKEEPER_ADDRESS"
"""The environment variable with the sidecar's address, for clients that are given none."""

CALL_TIMEOUT = 10.0
"""Seconds that a call with one answer may take, retries included, unless given otherwise."""

ABSENCE_TIMEOUT = 10.0
"""Seconds for which a sidecar or an ensemble that is away is waited for, unless the caller says how long to wait."""

ANSWER_TIME = 2.0
"""Seconds that a sidecar may take to answer above those that it was told to wait. One that is frozen answers never."""

SILENCE_TIMEOUT = 15.0
"""Seconds without a message after which a watch takes the sidecar for away. It asks the sidecar for five messages in this time. A sidecar
that sends no keepalives, as an older one, is never taken for silent."""

# gRPC's own defaults would repeat calls that must not be repeated, notice a dropped network after hours, and wait two minutes for
# a sidecar that was restarted. They would also send a PING with each answer, to find out how much fits on the way. A PING costs both sides
# more than a small answer itself. Each client has a connection of its own.
OPTIONS: list[tuple[str, int]] = [
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", int(ANSWER_TIME * 1000)),  # which is how long one attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 3_000),
]

# A Unix socket drops nothing: it breaks with the sidecar's process, and only then may a lease be resumed, so that it must not be given up
# here.
KEEPALIVE: list[tuple[str, int]] = [
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]

END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # which the type stubs do not know

Message = TypeVar("Message", covariant=True)
T = TypeVar("T")
View = TypeVar("View", LockView, SemaphoreView, GroupView)


class Stream(Protocol[Message]):
    """A call whose answers come one after the other."""

    async def read(self) -> Any: ...
    async def code(self) -> grpc.StatusCode: ...
    async def details(self) -> str | None: ...
    async def trailing_metadata(self) -> Any: ...
    def cancel(self) -> bool: ...


def resolve(target: str | None) -> tuple[str, bool]:
    """The target as gRPC understands it, and whether it stays on this machine.

    Raises ValueError for what is neither `unix:///path`, a path nor `host:port`.
    """
    target = target or os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    if target.startswith("/"):
        target = "unix://" + target
    if _is_socket(target):
        return target, True
    host, _, port = target.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise ValueError(f'sidecar address "{target}" is neither unix:///path, a path nor host:port')
    return target, _is_loopback(host.strip("[]"))


def _is_socket(target: str) -> bool:
    return target.startswith("unix:")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Channel:
    """gRPC's channel, of which nothing is left when it is closed: gRPC itself ends with its last channel, so that a process can be forked.
    In such a process it refuses every call, and gRPC does not learn of it."""

    def __init__(self, channel: grpc.aio.Channel, on_socket: bool) -> None:
        self._channel: grpc.aio.Channel | None = channel
        self.on_socket = on_socket
        """Whether it goes over a Unix socket, where what stands on a lease may outlive the sidecar's process."""
        self._home = _fork.opened(self)

    def __del__(self) -> None:
        _fork.closed(self, self._home)

    def unary_unary(self, path: str, **form: Any) -> Callable[..., Any]:
        return lambda request, **options: self._open().unary_unary(path, **form)(request, **options)

    def unary_stream(self, path: str, **form: Any) -> Callable[..., Any]:
        return lambda request, **options: self._open().unary_stream(path, **form)(request, **options)

    def stream_stream(self, path: str, **form: Any) -> Callable[..., Any]:
        return lambda requests, **options: self._open().stream_stream(path, **form)(requests, **options)

    def _open(self) -> Any:
        _fork.refuse_if_forked(self._home)
        if self._channel is None:
            raise closed()
        return self._channel

    def is_inherited(self) -> bool:
        return _fork.here() != self._home

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)
            _fork.closed(self, self._home)


def open_channel(target: str | None, credentials: grpc.ChannelCredentials | None) -> Channel:
    _fork.refuse_if_stranded()
    _green.refuse_if_patched()
    address, local = resolve(target)
    return Channel(_dial(address, local, credentials), _is_socket(address))


def _dial(address: str, local: bool, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    options = OPTIONS if _is_socket(address) else OPTIONS + KEEPALIVE
    if credentials is not None:
        return grpc.aio.secure_channel(address, credentials, options=options)
    if not local:
        raise ValueError(f"sidecar {address!r}: an address that is neither a Unix socket nor loopback needs credentials")
    return grpc.aio.insecure_channel(address, options=[*options, ("grpc.default_authority", "localhost")])


async def call(method: Callable[..., Any], request: object, timeout: float | None = CALL_TIMEOUT) -> Any:
    """Makes a call with one answer, once. Raises SidekeeperError."""
    try:
        return await method(request, timeout=timeout)
    except grpc.aio.AioRpcError as error:
        raise from_status(error.code(), error.details(), error.trailing_metadata()) from None
    except asyncio.CancelledError:
        if _is_ours():
            raise
        raise closed() from None
    except grpc.aio.UsageError:
        raise closed() from None


def start(method: Callable[..., Any], request: object) -> Stream[Any]:
    """Makes a call whose answers come one after the other. Raises SidekeeperError if the client is closed."""
    try:
        stream: Stream[Any] = method(request)
    except grpc.aio.UsageError:
        raise closed() from None
    return stream


def closed() -> SidekeeperError:
    """The error of whatever a client is asked for, or has, that is closed."""
    return SidekeeperError(grpc.StatusCode.CANCELLED, "the client is closed")


def _is_ours() -> bool:
    """Whether the present task is being cancelled, and not only the call that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def call_idempotent(
    method: Callable[..., Any], request: object, timeout: float = CALL_TIMEOUT, also: tuple[type[SidekeeperError], ...] = ()
) -> Any:
    """Makes an idempotent call, and repeats it while the sidecar or the ensemble is unreachable and the timeout has not passed; also after
    some other errors."""
    return await _repeat(method, request, timeout, lambda error: is_transient(error) or isinstance(error, also))


async def call_non_idempotent(method: Callable[..., Any], request: object) -> Any:
    """Makes a call that must not be executed twice. It is repeated only if the sidecar reports that nothing was done: the ensemble is
    unreachable."""
    return await _repeat(method, request, CALL_TIMEOUT, lambda error: isinstance(error, EnsembleUnreachableError))


async def _repeat(method: Callable[..., Any], request: object, timeout: float, is_repeatable: Callable[[SidekeeperError], bool]) -> Any:
    until, backoff = time.monotonic() + timeout, Backoff()
    while True:
        try:
            return await call(method, request, max(until - time.monotonic(), 0.001))
        except SidekeeperError as error:
            pause = backoff.next()
            if not is_repeatable(error) or time.monotonic() + pause >= until:
                raise
        await asyncio.sleep(pause)


class Backoff:
    """The pauses in seconds between attempts: random, each up to twice as long as the one before, at most 2."""

    def __init__(self) -> None:
        self._longest = 0.05

    def next(self) -> float:
        self._longest = min(2 * self._longest, 2.0)
        return random.uniform(self._longest / 2, self._longest)

    def reset(self) -> None:
        """Begins again with the shortest pause, after a success."""
        self._longest = 0.05


async def answered(wait: float | None, waiting: Awaitable[T]) -> T:
    """Ends what waits for so many seconds if the sidecar does not answer soon after; None and 0 say nothing of how long that takes."""
    if not wait:
        return await waiting
    return await _within(wait + ANSWER_TIME, waiting, "the sidecar does not answer")


async def _within(timeout: float | None, waiting: Awaitable[T], otherwise: str) -> T:
    try:
        async with asyncio.timeout(timeout):
            return await waiting
    except TimeoutError as error:
        if isinstance(error, SidekeeperError):
            raise
        raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, otherwise) from None


def is_transient(error: SidekeeperError) -> bool:
    """Whether nothing was done and the same call may succeed soon."""
    return error.code is grpc.StatusCode.UNAVAILABLE or isinstance(error, EnsembleUnreachableError)


CUT = grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN


def may_heal(error: SidekeeperError, heard: bool) -> bool:
    """is_transient for a stream. Something between the two may have cut a stream over which the sidecar was heard, such as a proxy. gRPC
    makes a status of that which has no reason."""
    return is_transient(error) or (heard and not error.reason and error.code in CUT)


def was_lost(error: SidekeeperError) -> bool:
    """Whether something was lost while it was waited for, or between its grant and the return to the caller."""
    lost = LeaseLostError | LeaseClosedError | LockBrokenError | LockRevokedError | SidecarStoppingError
    return error.code is grpc.StatusCode.ABORTED and isinstance(error, lost)


async def next_of(stream: Stream[Any]) -> Any:
    """The next message, or None at an end with OK. Raises SidekeeperError."""
    try:
        message = await stream.read()
    except grpc.aio.AioRpcError as error:
        raise from_status(error.code(), error.details(), error.trailing_metadata()) from None
    except asyncio.CancelledError:
        if _is_ours():
            raise
        raise SidekeeperError(grpc.StatusCode.CANCELLED, "the stream was cancelled") from None
    if message is not END:
        return message
    code = await stream.code()
    if code is not grpc.StatusCode.OK:
        raise from_status(code, await stream.details(), await stream.trailing_metadata())
    return None


class Heard:
    """When the sidecar was last heard on one stream, if it sends keepalives there."""

    def __init__(self) -> None:
        self._at: float | None = None

    def note(self, message: Any) -> None:
        if self._at is not None or message.HasField("keepalive"):
            self._at = _clock.before()

    def timeout(self) -> float | None:
        """For how many seconds the next message is waited for; None is for ever."""
        return None if self._at is None else SILENCE_TIMEOUT

    def ago(self) -> float:
        """For how many seconds it has not been heard; 0 if that is unknown."""
        return 0.0 if self._at is None else _clock.now() - self._at


@dataclass(frozen=True)
class Away:
    """The end of a watch that is opened again."""

    silent: float
    """For how many seconds the sidecar had not been heard; 0 if that is unknown."""


def ask_for_keepalives(request: Any) -> None:
    """Has the stream of the request send something every few seconds, so that no proxy cuts it as silent."""
    request.keepalive.FromMilliseconds(int(SILENCE_TIMEOUT * 1000 / 5))


async def messages(method: Callable[..., Any], request: Any, heard: Heard | None = None) -> AsyncIterator[Any]:
    """What a watch sends. Raises SidekeeperError, also at an end with OK, or if the sidecar falls silent."""
    heard = heard or Heard()
    ask_for_keepalives(request)
    stream, home = start(method, request), _fork.here()
    try:
        while (message := await _within(heard.timeout(), next_of(stream), "the sidecar is silent")) is not None:
            heard.note(message)
            if not message.HasField("keepalive"):
                yield message
            _fork.refuse_if_forked(home)
        raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream")
    finally:
        if _fork.here() == home:
            stream.cancel()


async def reopened(method: Callable[..., Any], request: Any) -> AsyncIterator[Any]:
    """What a watch sends that is opened again when the sidecar or the ensemble is away; Away each time it has ended so."""
    backoff = Backoff()
    while True:
        heard, told = Heard(), False
        try:
            async for message in messages(method, request, heard):
                told = True
                backoff.reset()
                yield message
        except SidekeeperError as error:
            if not may_heal(error, told):
                raise
        yield Away(heard.ago())
        await asyncio.sleep(backoff.next())


async def views(method: Callable[..., Any], request: Any, of: Callable[[Any, bool], View]) -> AsyncGenerator[View]:
    """What a watch of views shows, also across restarts of the sidecar. While the sidecar is away, the last view is stale."""
    last: View | None = None
    async for message in reopened(method, request):
        if not isinstance(message, Away):
            last = of(message.view, message.stale)
        elif last is None or last.stale:
            continue
        else:
            last = replace(last, stale=True)
        yield last


async def pages(method: Callable[..., Any], request: Any, field: str) -> AsyncIterator[Any]:
    """The entries of a list that comes in pages."""
    request.page_size = 1000
    while True:
        reply = await call_idempotent(method, request)
        for entry in getattr(reply, field):
            yield entry
        if not reply.next_page_token:
            return
        request.page_token = reply.next_page_token
