"""The client for asyncio. Its objects belong to the event loop that they were made in."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

import grpc

from sidekeeper import _clock, _fork, _transport
from sidekeeper._claim import Answer, Claim, Keeper, log
from sidekeeper._config import Commit, Config, ConfigView, Precondition, if_exists, if_missing, if_version
from sidekeeper._errors import (
    ForkedError,
    HoldNotFoundError,
    LostError,
    MemberRemovedError,
    MemberReplacedError,
    SidekeeperError,
    SuspendedError,
    named,
)
from sidekeeper._sequence import Sequence
from sidekeeper._types import Contender, GroupView, LockView, Mode, OnConflict, Queued, Revocation, Token, duration, seconds
from sidekeeper.lease.v1 import lease_pb2, lease_pb2_grpc
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc
from sidekeeper.membership.v1 import membership_pb2, membership_pb2_grpc

__all__ = [
    "Client",
    "Commit",
    "Config",
    "ConfigView",
    "Lease",
    "Lock",
    "LockOptions",
    "Membership",
    "Precondition",
    "Sequence",
    "if_exists",
    "if_missing",
    "if_version",
]

GIVE_UP_ATTEMPTS = 3
GIVE_UP_PATIENCE = 5.0
CLOSE_PATIENCE = 1.0
MOST_HOLDS = 1000

T = TypeVar("T")


class LockOptions(TypedDict, total=False):
    """How to acquire a lock. The functions are called one at a time while the stream is read: they must not block."""

    mode: Mode
    lease: Lease | None
    """To hold the lock with; None, a lease that lives as long as the lock."""
    wait: float | None
    """Seconds to wait for the grant: 0 tries once, None waits for ever."""
    owner: str
    """Who the caller is, for people: at most 128 bytes."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_queued: Callable[[Queued], object]
    on_suspended: Callable[[float], object]
    """Contact with the ensemble is lost, the lock is not; gets the seconds it certainly lasts, about once a second."""
    on_resumed: Callable[[], object]
    on_revocation: Callable[[Revocation], object]


class _Held:
    """What is the same for locks, leases and memberships."""

    def __init__(self, client: Client, claim: Claim) -> None:
        self._client = client
        self._claim = claim
        self._following: asyncio.Task[None] | None = None

    @property
    def valid(self) -> bool:
        """Whether it is certainly the caller's at this moment."""
        return self.valid_for > 0

    @property
    def valid_for(self) -> float:
        """For how many seconds it is certainly still the caller's if the sidecar is not heard of again; 0 if it is not."""
        return self._claim.valid_for()

    @property
    def suspended(self) -> bool:
        """Whether the sidecar has lost contact with the ensemble and not regained it yet."""
        return self._claim.suspended_since is not None

    @property
    def error(self) -> LostError | None:
        """Why it was lost, as soon as it is not valid any more; None before that, and if it was given up."""
        return self._claim.lost()

    async def wait_ended(self) -> None:
        """Returns when it is the caller's no more: lost, or given up."""
        if not self._claim.over():
            await self._claim.ended.wait()

    def _follow(self, stream: _transport.Stream[Any], handle: Callable[[Any], None]) -> None:
        """Has the stream read until its end, which is the end of the claim."""
        self._following = asyncio.create_task(self._read(stream, handle), name=f"sidekeeper: {self._claim.what}")
        self._client._tasks.add(self._following)
        self._following.add_done_callback(self._client._tasks.discard)

    async def _read(self, stream: _transport.Stream[Any], handle: Callable[[Any], None]) -> None:
        try:
            while (event := await _transport.next_of(stream)) is not None:
                handle(event)
        except SidekeeperError as error:
            error.__context__ = None  # like its traceback, it keeps the call, and that keeps gRPC
            self._claim.lose(error.with_traceback(None))
        finally:
            self._claim.abandon(None)

    async def _refused(self, error: BaseException) -> None:
        """Gives it up without a word, when it was not handed out yet. What has ended it, or what it stands on, is raised in place of the
        error of its stream, which was cut for it: nothing was the caller's yet, so that nothing was lost."""
        lost = self._claim.lost()
        await self._abandon()
        if lost is not None and lost.cause is not error and isinstance(error, SidekeeperError):
            raise lost.cause from None

    async def _abandon(self) -> None:
        """Gives it up without a word, when it was not handed out yet."""
        self._claim.abandon(None)
        if self._following is not None:
            await asyncio.wait([self._following])

    async def _confirm(self, method: Callable[..., Any], request: object) -> None:
        """Has the sidecar confirm that it is given up. Raises LostError if it was lost before."""
        self._claim.end(None)
        try:
            if (lost := self._claim.lost()) is not None:
                raise lost
            await self._ask_to_take_back(method, request)
        finally:
            await self._abandon()

    def _refuse_if_forked(self) -> None:
        """Raises LostError for the copy that a forked child has; if it was given up before the fork, ForkedError."""
        if self._claim.is_inherited():
            raise self._claim.lost() or ForkedError(_fork.INHERITED)

    async def _ask_to_take_back(self, method: Callable[..., Any], request: object) -> None:
        for attempt in range(GIVE_UP_ATTEMPTS):
            try:
                await _transport.ask(method, request, GIVE_UP_PATIENCE)
                return
            except SidekeeperError as error:
                if error.code is grpc.StatusCode.ABORTED:
                    raise LostError(self._claim.what, error) from error
                if error.reason or attempt == GIVE_UP_ATTEMPTS - 1 or not _is_unanswered(error):
                    raise
                await asyncio.sleep(random.uniform(0.05, 0.1))


def _is_unanswered(error: SidekeeperError) -> bool:
    return error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Lease(_Held):
    """Owns what is acquired in its name: when it ends, all of that is given up at once. Close it, also after it was lost."""

    id: str = ""
    """Names it in calls made without this package. It is a secret."""
    ttl: float = 0.0
    """The timeout in seconds that the ensemble granted."""

    def _handle(self, event: lease_pb2.OpenResponse) -> None:
        kind = event.WhichOneof("event")
        if kind == "opened" and not self.id:
            self.id, self.ttl = event.opened.lease_id, seconds(event.opened.ttl)
        elif kind == "suspended":
            self._claim.suspended_since = self._claim.suspended_since or _clock.now()
        elif kind == "resumed":
            self._claim.suspended_since = None

    async def close(self) -> None:
        """Ends the lease; for the caller, it and all acquired in its name are over at once. Then all of it is gone from the
        ensemble. Raises LostError if it was lost before."""
        self._refuse_if_forked()
        await self._confirm(self._client._leases.Close, lease_pb2.CloseRequest(lease_id=self.id))

    def _why(self) -> SidekeeperError:
        lost = self._claim.lost()
        return lost.cause if lost else named("LEASE_CLOSED", "the lease is closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await _give_up(self.close, kind is None)


async def _give_up(give_up: Callable[[], Awaitable[None]], strictly: bool) -> None:
    """Gives something up at the end of a body, whatever happens to the task; a failure is no more than logged if the body failed
    anyway."""
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
        log.log(logging.DEBUG if isinstance(error, LostError) else logging.WARNING, "%s", error)


class Lock(_Held):
    """A hold. Release it, also after it was lost."""

    def __init__(self, client: Client, name: str, options: LockOptions) -> None:
        super().__init__(client, Claim(f"lock {name}"))
        self.name = name
        self.hold_id = ""
        """What Check and Release call this hold. It is a secret."""
        self.fencing_token = Token(0)
        """Orders the grants of this lock: hand it to whatever the lock protects, and let that refuse smaller ones."""
        self.revocation: Revocation | None = None
        """The newest request to let go, if there was one."""
        self._options = options
        self._releasing: asyncio.Task[None] | None = None
        self._when_suspended: list[Callable[[bool], None]] = []

    async def _acquire(self) -> Self:
        lease = self._options.get("lease")
        stream = _transport.start(self._client._locks.Acquire, self._request(lease))
        self._claim.streams_over(stream.cancel)
        if lease is not None:
            self._claim.stand_on(lease._claim, lambda: self._claim.lose(lease._why()))
        self._claim.when_over(self._acknowledge)
        try:
            while not self.hold_id:
                self._handle(await self._event(stream))
            self._follow(stream, self._handle)
            await self._client._holds.begin(self.hold_id, self._claim)
        except BaseException as error:
            await self._refused(error)
            raise
        return self

    def _acknowledge(self) -> None:
        """Tells the sidecar that a hold which ended otherwise than by the caller's hand is counted on no more: until then its place may be
        kept for it."""
        lease = self._options.get("lease")
        closed = lease is not None and lease._claim.over() and lease._claim.lost() is None
        if self.hold_id and not closed and self._claim.lost() is not None and not self._claim.is_inherited():
            self._client._acknowledge(self.hold_id)

    async def _event(self, stream: _transport.Stream[Any]) -> lock_pb2.AcquireResponse:
        event: lock_pb2.AcquireResponse | None = await _transport.next_of(stream)
        if event is None:
            raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream without a word")
        return event

    def _request(self, lease: Lease | None) -> lock_pb2.AcquireRequest:
        options = self._options
        return lock_pb2.AcquireRequest(
            name=self.name,
            mode=lock_pb2.Mode.Name(options.get("mode", Mode.EXCLUSIVE)),
            lease_id=lease.id if lease else "",
            wait_timeout=duration(options.get("wait")),
            owner=options.get("owner", ""),
            metadata=options.get("metadata"),
        )

    def _handle(self, event: lock_pb2.AcquireResponse) -> None:
        match event.WhichOneof("event"):
            case "queued":
                queued = Queued(event.queued.position, tuple(map(Contender._of, event.queued.holders)))
                _tell(self._options.get("on_queued"), queued)
            case "granted" if not self.hold_id:
                self.hold_id, self.fencing_token = event.granted.hold_id, Token(event.granted.fencing_token)
            case "suspended":
                if self._claim.suspended_since is None:
                    self._claim.suspended_since = _clock.now()
                    self._tell_suspended(True)
                _tell(self._options.get("on_suspended"), seconds(event.suspended.remaining))
            case "resumed":
                self._claim.suspended_since = None
                self._tell_suspended(False)
                _tell(self._options.get("on_resumed"))
            case "revocation_requested":
                wire = event.revocation_requested
                grace = seconds(wire.grace) if wire.HasField("grace") else None
                self.revocation = Revocation(wire.requested_by, wire.reason, grace)
                _tell(self._options.get("on_revocation"), self.revocation)

    def _tell_suspended(self, suspended: bool) -> None:
        for listener in self._when_suspended:
            listener(suspended)

    async def release(self) -> None:
        """Gives the lock up; for the caller it is over at once, and when this returns the next waiter can have it.

        Raises LostError if it was lost before. Any SidekeeperError says that the sidecar has not confirmed it: then it is over for
        the caller all the same, and for others by the time its validity would have been. Again, it does the same.
        """
        self._refuse_if_forked()
        if self._releasing is None:
            request = lock_pb2.ReleaseRequest(hold_id=self.hold_id)
            self._releasing = asyncio.create_task(self._confirm(self._client._locks.Release, request))
        await asyncio.shield(self._releasing)

    def check(self) -> None:
        """Raises LostError if the lock is not certainly the caller's at this moment."""
        if (lost := self._claim.lost()) is not None:
            raise lost
        if not self.valid:
            raise LostError(self._claim.what, named("LEASE_LOST", "it was given up"))


def _tell(listener: Callable[..., object] | None, *told: object) -> None:
    if listener is None:
        return
    try:
        listener(*told)
    except Exception:
        log.exception("a function that is called with events failed")


class _Body:
    """Holds a lock while a body runs, and cancels the body when the lock is lost, or suspended for too long."""

    def __init__(self, lock: Lock, suspension_grace: float | None) -> None:
        self._lock = lock
        self._grace = suspension_grace
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: Exception | None = None
        self._inside = True
        lock._when_suspended.append(self._suspended)
        if lock.suspended:
            self._suspended(True)
        lock._claim.when_over(lambda: self._stop(lock.error))

    def _suspended(self, suspended: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if suspended and self._grace is not None:
            error = SuspendedError(f"{self._lock._claim.what} has been suspended for {self._grace} s")
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._stop, error)

    def _stop(self, error: Exception | None) -> None:
        if self._inside and error is not None and self._stopped is None and self._task is not None:
            self._stopped = error
            self._task.cancel()

    def leave(self, error: BaseException | None) -> Exception | None:
        """Ends the watch over the body, and returns what to raise instead of its own end."""
        self._inside = False
        self._suspended(False)
        if self._stopped is None or self._task is None:
            return None
        ours = self._task.uncancel() <= self._cancelling
        return self._stopped if ours and (error is None or isinstance(error, asyncio.CancelledError)) else None

    def is_cancelled(self) -> bool:
        """Whether somebody else wants the task to end."""
        return self._task is not None and self._task.cancelling() > self._cancelling


class _WithLock(AbstractAsyncContextManager[Lock]):
    def __init__(self, client: Client, name: str, grace: float | None, options: LockOptions) -> None:
        self._client, self._name, self._grace, self._options = client, name, grace, options
        self._entered: list[tuple[Lock, _Body]] = []

    async def __aenter__(self) -> Lock:
        lock = await self._client.acquire(self._name, **self._options)
        self._entered.append((lock, _Body(lock, self._grace)))
        return lock

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        lock, body = self._entered.pop()
        instead = body.leave(error)
        try:
            await _give_up(lock.release, strictly=kind is None and instead is None)
        except asyncio.CancelledError:
            if instead is None or body.is_cancelled():
                raise  # and else it is ours, which came as the body ended by itself
        if instead is not None:
            raise instead


class Membership(_Held):
    """The caller as a member of a group. Leave it, also after it was lost. It is valid for as long as its lease is."""

    def __init__(self, client: Client, group: str, member: str, lease: Lease, single: bool) -> None:
        super().__init__(client, Claim(f"member {group}/{member}"))
        self.group, self.member = group, member
        self.incarnation = 0
        """Tells this member from all that have or had its name."""
        self._lease, self._single = lease, single

    @property
    def valid_for(self) -> float:
        """For how many seconds the caller is certainly still a member if the sidecar is not heard of again; 0 if it is not."""
        return 0.0 if self._claim.over() else self._lease.valid_for

    @property
    def error(self) -> LostError | None:
        """Why it was lost, as soon as it is not valid any more; None before that, and if it was left."""
        lost = self._lease.error
        if self._claim.over() or lost is None:
            return super().error
        return LostError(self._claim.what, lost.cause)

    async def _join(self, request: membership_pb2.JoinRequest) -> Self:
        stream = _transport.start(self._client._groups.Join, request)
        self._claim.streams_over(stream.cancel)
        self._claim.stand_on(self._lease._claim, lambda: self._claim.lose(self._lease._why()))
        try:
            while not self.incarnation:
                event = await _transport.next_of(stream)
                if event is None:
                    raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream without a word")
                self._handle(event)
        except BaseException as error:
            await self._refused(error)
            raise
        self._follow(stream, self._handle)
        return self

    def _handle(self, event: membership_pb2.JoinResponse) -> None:
        match event.WhichOneof("event"):
            case "joined" if not self.incarnation:
                self.incarnation = event.joined.incarnation
            case "suspended":
                self._claim.suspended_since = self._claim.suspended_since or _clock.now()
            case "resumed":
                self._claim.suspended_since = None

    async def update(self, metadata: Mapping[str, str]) -> None:
        """Changes what others are told about this member."""
        request = membership_pb2.UpdateRequest(group=self.group, member=self.member, lease_id=self._lease.id, metadata=metadata)
        await _transport.insist(self._client._groups.Update, request)

    async def leave(self) -> None:
        """Leaves the group; with a lease of its own, which ends, that is confirmed. Raises LostError if it was lost before."""
        self._refuse_if_forked()
        lost = self.error
        await self._abandon()
        if self._single:
            try:
                await self._lease.close()
            except LostError:
                if lost is None:
                    raise
        if lost is not None:
            raise lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await _give_up(self.leave, kind is None)


class Client:
    """Talks to one sidecar, from one event loop. Close it: that gives up all that it holds and waits for.

    target: `unix:///path`, a path, or `host:port`; None, what SIDEKEEPER_ADDRESS says, and without that
        `unix:///run/sidekeeper/sidekeeper.sock`.
    credentials: of TLS, from `grpc.ssl_channel_credentials`. Addresses that are neither a Unix socket nor loopback need them.

    Raises ValueError for an address that is none. It does not wait for a connection; the first call does. A forked child cannot use
    it, and raises ForkedError: close it before a fork, and make it after one.
    """

    def __init__(self, target: str | None = None, *, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._channel = _transport.open_channel(target, credentials)
        self._locks: Any = lock_pb2_grpc.LockServiceStub(self._channel)
        self._leases: Any = lease_pb2_grpc.LeaseServiceStub(self._channel)
        self._groups: Any = membership_pb2_grpc.MembershipServiceStub(self._channel)
        self._holds = Keeper(self._check_holds)
        self._terms = Keeper(self._check_leases)
        self._tasks: set[asyncio.Task[None]] = set()
        self._acknowledging: set[asyncio.Task[None]] = set()
        self.config = Config(self._channel)
        """The configuration."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives up everything that this client holds and waits for. Again, it does nothing, and in a forked child nothing either."""
        if self._channel.is_inherited():
            return
        self._holds.end_all()  # before the sidecar learns of it
        self._terms.end_all()
        if self._acknowledging:
            await asyncio.wait(list(self._acknowledging), timeout=CLOSE_PATIENCE)
        await self._channel.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._holds.stop()
        await self._terms.stop()

    async def open_lease(self, *, ttl: float | None = None, owner: str = "", metadata: Mapping[str, str] | None = None) -> Lease:
        """Opens a lease. ttl: seconds that the ensemble keeps it when it hears nothing of it; None, what the sidecar is set to."""
        lease = Lease(self, Claim("lease"))
        stream = _transport.start(self._leases.Open, lease_pb2.OpenRequest(ttl=duration(ttl), owner=owner, metadata=metadata))
        lease._claim.streams_over(stream.cancel)
        try:
            while not lease.id:
                event = await _transport.next_of(stream)
                if event is None:
                    raise SidekeeperError(grpc.StatusCode.UNAVAILABLE, "the sidecar ended the stream without a word")
                lease._handle(event)
            lease._follow(stream, lease._handle)
            await self._terms.begin(lease.id, lease._claim)
        except BaseException as error:
            await lease._refused(error)
            raise
        return lease

    async def acquire(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """Waits for its turn and returns when the lock is certainly the caller's for some time to come.

        Raises LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors, such as
        LeaseLostError if it was granted and lost before this could return. Cancel it to give up the place in the queue.
        """
        return await Lock(self, name, options)._acquire()

    def lock(
        self, name: str, *, suspension_grace: float | None = None, **options: Unpack[LockOptions]
    ) -> AbstractAsyncContextManager[Lock]:
        """Holds the lock in the body of `async with`, and releases it.

        The body is cancelled, and LostError raised, as soon as the lock is lost; with suspension_grace also, with SuspendedError,
        when it has been suspended for so many seconds.
        """
        return _WithLock(self, name, suspension_grace, options)

    async def run_while_leader(self, name: str, body: Callable[[Lock], Awaitable[T]], **options: Unpack[LockOptions]) -> T:
        """Runs body whenever it holds the lock, until body returns, and returns what it does. When the lock is lost body is cancelled,
        and run again after the next grant."""
        pause = 0.05
        while True:
            lock: Lock | None = None
            try:
                async with self.lock(name, **options) as lock:
                    pause = 0.05
                    return await body(lock)
            except LostError as error:
                if lock is None or error.what != f"lock {name}" or isinstance(error.cause, ForkedError):
                    raise
            except SidekeeperError as error:
                passes = _transport.is_transient(error) or (options.get("lease") is None and _transport.was_lost(error))
                if lock is not None or not passes:
                    raise
            pause = min(2 * pause, 2.0)
            await asyncio.sleep(random.uniform(pause / 2, pause))

    async def get_lock(self, name: str) -> LockView:
        """Shows who holds the lock and who waits for it."""
        reply = await _transport.insist(self._locks.Get, lock_pb2.GetRequest(name=name))
        return LockView._of(reply.view)

    async def watch_lock(self, name: str) -> AsyncGenerator[LockView]:
        """Shows the same as get_lock, at once and whenever it has changed, also across restarts of the sidecar."""
        async for message in _transport.reopened(self._locks.Watch, lock_pb2.WatchRequest(name=name)):
            if message is not None:
                yield LockView._of(message.view)

    async def watch_leader(self, name: str) -> AsyncGenerator[Contender | None]:
        """Says who holds the lock first, None for nobody, at once and whenever that has changed."""
        told: list[Contender | None] = []
        async for view in self.watch_lock(name):
            leader = view.holders[0] if view.holders else None
            token = leader.fencing_token if leader else None
            if not told or token != (told[0].fencing_token if told[0] else None):
                told = [leader]
                yield leader

    async def revoke(self, name: str, *, reason: str = "", grace: float | None = None) -> int:
        """Asks every holder of the lock to let go, and returns how many were asked. With a grace in seconds, the holds end by force
        when it is over: for operators."""
        request = lock_pb2.RevokeRequest(name=name, reason=reason, grace=duration(grace))
        reply = await _transport.insist(self._locks.Revoke, request)
        return int(reply.asked)

    def sequence(self, name: str) -> Sequence:
        """Gives access to the sequence of that name, which need not exist."""
        return Sequence(self._channel, name)

    async def join(
        self,
        group: str,
        member: str,
        *,
        lease: Lease | None = None,
        owner: str = "",
        metadata: Mapping[str, str] | None = None,
        on_conflict: OnConflict = OnConflict.REJECT,
        wait: float | None = None,
    ) -> Membership:
        """Makes the caller a member of a group, and returns when others can see it.

        lease: to be a member with; None, a lease that lives as long as the membership. wait: with WAIT and REPLACE, for how many
        seconds; None, for ever. Raises MemberExistsError, WaitTimeoutError, EnsembleUnreachableError.
        """
        own = lease if lease is not None else await self.open_lease(owner=owner)
        request = membership_pb2.JoinRequest(
            group=group,
            member=member,
            metadata=metadata,
            owner=owner,
            lease_id=own.id,
            on_conflict=membership_pb2.OnConflict.Name(on_conflict),
            wait_timeout=duration(wait),
        )
        try:
            return await Membership(self, group, member, own, single=lease is None)._join(request)
        except BaseException:
            if lease is None:
                await own._abandon()
            raise

    async def stay_joined(
        self,
        group: str,
        member: str,
        *,
        owner: str = "",
        metadata: Mapping[str, str] | None = None,
        on_joined: Callable[[Membership], object] | None = None,
    ) -> None:
        """Is a member of the group until it is cancelled, and joins again when the lease was lost. A member of its name that is still
        there from before is waited for. Raises LostError when somebody wants it out: it was replaced or removed."""
        pause = 0.05
        while True:
            try:
                membership = await self.join(group, member, owner=owner, metadata=metadata, on_conflict=OnConflict.WAIT)
                async with membership:
                    pause = 0.05
                    _tell(on_joined, membership)
                    await membership.wait_ended()
            except LostError as error:
                if isinstance(error.cause, MemberReplacedError | MemberRemovedError | ForkedError) or self._terms._closed:
                    raise
            except SidekeeperError as error:
                if not _transport.is_transient(error) and not _transport.was_lost(error):
                    raise
            pause = min(2 * pause, 2.0)
            await asyncio.sleep(random.uniform(pause / 2, pause))

    async def get_group(self, group: str) -> GroupView:
        """Shows who is in the group."""
        reply = await _transport.insist(self._groups.Get, membership_pb2.GetRequest(group=group))
        return GroupView._of(reply.view)

    async def watch_group(self, group: str) -> AsyncGenerator[GroupView]:
        """Shows the same as get_group, at once and whenever it has changed, also across restarts of the sidecar."""
        async for message in _transport.reopened(self._groups.Watch, membership_pb2.WatchRequest(group=group)):
            if message is not None:
                yield GroupView._of(message.view, message.stale)

    def _acknowledge(self, hold_id: str) -> None:
        if not self._holds._closed:
            task = asyncio.create_task(self._acknowledge_once(hold_id), name="sidekeeper: acknowledge")
            self._acknowledging.add(task)
            task.add_done_callback(self._acknowledging.discard)

    async def _acknowledge_once(self, hold_id: str) -> None:
        """Says by Release that an ended hold is counted on no more; the answer is how it ended, which is known."""
        with suppress(SidekeeperError):
            await _transport.ask(self._locks.Release, lock_pb2.ReleaseRequest(hold_id=hold_id), GIVE_UP_PATIENCE)

    async def _check_holds(self, ids: list[str], patience: float) -> Mapping[str, Answer]:
        answers: dict[str, Answer] = {}
        for first in range(0, len(ids), MOST_HOLDS):
            answers |= await self._check_some(ids[first : first + MOST_HOLDS], patience)
        return answers

    async def _check_some(self, ids: list[str], patience: float) -> dict[str, Answer]:
        """Asks about each hold alone if one of them is unknown: the sidecar does not say which."""
        try:
            reply = await _transport.ask(self._locks.Check, lock_pb2.CheckRequest(hold_ids=ids), patience)
        except HoldNotFoundError as error:
            if len(ids) == 1:
                return {ids[0]: Answer(0, error)}
            each = [await self._check_some([one], patience) for one in ids]
            return {key: answer for some in each for key, answer in some.items()}
        return {hold.hold_id: _answer(hold) for hold in reply.holds}

    async def _check_leases(self, ids: list[str], patience: float) -> Mapping[str, Answer]:
        answers: dict[str, Answer] = {}
        for one in ids:
            try:
                reply = await _transport.ask(self._leases.Check, lease_pb2.CheckRequest(lease_id=one), patience)
                answers[one] = Answer(seconds(reply.valid_for))
            except SidekeeperError as error:
                if error.code not in (grpc.StatusCode.ABORTED, grpc.StatusCode.NOT_FOUND):
                    raise
                answers[one] = Answer(0, error)
        return answers


def _answer(hold: lock_pb2.CheckedHold) -> Answer:
    if hold.reason == "RELEASED":
        return Answer(0, given_up=True)
    if hold.reason:
        return Answer(0, named(hold.reason, "the sidecar says so"))
    return Answer(seconds(hold.valid_for))
