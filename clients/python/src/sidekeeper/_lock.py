"""Locks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from sidekeeper import _guard, _transport
from sidekeeper._claim import Answer, notify
from sidekeeper._election import Leadership
from sidekeeper._errors import ForkedError, GuardLostError, HoldNotFoundError, LostError, SidekeeperError, SuspendedError, named
from sidekeeper._held import GIVE_UP_TIMEOUT, Attempt, HeldStream, Kind, Single, Streams, leave_body, through_absence
from sidekeeper._lease import Lease, Leased, Leases, on_own
from sidekeeper._locks import Locks
from sidekeeper._once import Attempt as OnceAttempt
from sidekeeper._once import Recorded
from sidekeeper._permits import Permits
from sidekeeper._schedule import Tick
from sidekeeper._types import CommonLockOptions, Contender, Mode, Queued, Revocation, Token, duration, seconds
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lock.v1 import lock_pb2

MAX_HOLDS_PER_CHECK = 1000


class LockOptions(CommonLockOptions, total=False):
    """How to acquire a lock. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with; None, one of its own that ends with the lock."""


class Lock(Leased):
    """A granted hold. Release it, even after it was lost."""

    def __init__(self, kind: Kind, name: str, options: LockOptions, own: Lease | None) -> None:
        super().__init__(kind, "acquire", f"lock {name}", options.get("lease"), own)
        self.name = name
        self.hold_id = ""
        """Names this hold in calls made without this package: 32 hexadecimal digits. It is a secret."""
        self.fencing_token = Token(0)
        """Orders the grants of this lock: pass it to whatever the lock protects, and have that refuse smaller ones."""
        self.revocation: Revocation | None = None
        """The latest request to release the lock; None if there was none."""
        self._options = options

    async def _acquire(self, attempt: Attempt) -> Lock:
        options, lease = self._options, self._options.get("lease")
        request = lock_pb2.AcquireRequest(
            name=self.name,
            mode=hold_pb2.Mode.Name(options.get("mode", Mode.EXCLUSIVE)),
            lease_id=lease.id if lease else "",
            wait_timeout=duration(attempt.wait),
            owner=options.get("owner", ""),
            metadata=options.get("metadata"),
            lock_delay=duration(options.get("lock_delay")),
            detect_deadlock=options.get("detect_deadlock", False),
        )
        return await self._open(request, attempt)

    def _grant(self, granted: lock_pb2.Granted) -> str:
        self.hold_id, self.fencing_token = granted.hold_id, Token(granted.fencing_token)
        return self.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "queued":
                notify(self._options.get("on_queued"), Queued(event.position, tuple(map(Contender._of, event.holders))))
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))
            case "revocation_requested":
                self.revocation = Revocation._of(event)
                notify(self._options.get("on_revocation"), self.revocation)

    async def release(self) -> None:
        """Releases the lock. For the caller it ends at once; when this returns, the next waiter can be granted it.

        Raises LostError if the lock was lost before, and ReleaseUnconfirmedError if the sidecar has not confirmed the release: for the
        caller the lock has ended all the same, and for others it ends at the latest when its validity would have. Calling it again has
        the same outcome.
        """
        await self._give_up()

    def ticket(self) -> _guard.Ticket:
        """What the holder hands on to others, who guard with it what they write."""
        return _guard.Ticket(self.name, self.fencing_token)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guards with the lock what its client writes in the body of `with`: `put`, `delete` and `commit` of the configuration, the
        numbers of a sequence unless they are relaxed, and a member's joining and updates.

        The ensemble carries that out only while the lock is held, in one transaction with the write, at no cost; otherwise it is
        GuardLostError, or HoldNotFoundError after the sidecar has restarted. It holds for this thread or task, and tasks that the body
        begins. What another client writes is not guarded by it: hand on a Ticket.
        """
        with _guard.entered(self._own_guard()):
            yield

    def _own_guard(self) -> _guard.Guard:
        shared = self._options.get("mode", Mode.EXCLUSIVE) == Mode.READ
        return _guard.of_hold(self.hold_id, self._kind.streams, *(() if shared else (self.ticket(),)))

    def check(self) -> None:
        """Raises LostError if the lock is not proven to be the caller's at this moment."""
        if (lost := self._claim.lost()) is not None:
            raise lost
        if not self.valid:
            raise LostError(self._claim.what, named("LEASE_LOST", "it was given up"))


async def acquire(kind: Kind, leases: Leases | None, name: str, options: LockOptions) -> Lock:
    """Acquires a lock, also from a sidecar that is away for a time. Without a lease it gets one of its own, which may outlive the sidecar's
    process; where none does, its stream is its lease, which costs a message less."""

    async def attempt(this: Attempt) -> Lock:
        async def begin(own: Lease | None) -> Lock:
            return await Lock(kind, name, options, own)._acquire(this)

        if leases is None or options.get("lease") is not None:
            return await begin(None)
        return await on_own(leases, this, options.get("owner", ""), options.get("metadata"), begin)

    return await through_absence(kind.streams, options.get("wait"), options.get("lease"), attempt)


class _Watchdog:
    """Cancels the task that runs a body when its lock is lost, or suspended for too long."""

    def __init__(self, lock: HeldStream, suspension_grace: float | None) -> None:
        self._lock = lock
        self._grace = suspension_grace
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: Exception | None = None
        self._inside = True
        lock._on_suspension.append(self._suspended)
        if lock.suspended:
            self._suspended(True)
        lock._claim.on_end(self._over)

    def _suspended(self, suspended: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if suspended and self._grace is not None:
            error = SuspendedError(f"{self._lock._claim.what} has been suspended for {self._grace} s")
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._stop, error)

    def _over(self) -> None:
        """Stops the body, unless the body has released the lock itself. Any caller that knows the id of a hold can release it, too."""
        error = self._lock.error
        if error is None and self._lock._giving_up is None:
            error = LostError(self._lock._claim.what, named("", "it was released elsewhere"))
        if error is not None:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        if self._inside and self._stopped is None and self._task is not None:
            self._stopped = error
            self._task.cancel()

    def leave(self, error: BaseException | None) -> Exception | None:
        """Stops watching the body, and returns what to raise in place of its own outcome."""
        self._inside = False
        self._suspended(False)
        if self._stopped is None or self._task is None:
            return None
        ours = self._task.uncancel() <= self._cancelling
        return self._stopped if ours and (error is None or isinstance(error, asyncio.CancelledError)) else None

    def is_cancelled(self) -> bool:
        """Whether the task was also cancelled by other code."""
        return self._task is not None and self._task.cancelling() > self._cancelling


E = TypeVar("E", bound=tuple[Any, ...])


def entry_of(entered: Sequence[E], here: object) -> E:
    """The entry that a body leaves, of an object that was entered once or several times: the newest of this task or thread. The only one
    there is may be left from elsewhere, as when a generator is closed or a fixture is torn down."""
    entries = list(entered)  # others enter and leave meanwhile
    own = [entry for entry in entries if entry[0] is here]
    if not own and len(entries) != 1:
        raise RuntimeError("neither this task nor this thread has entered: leave where you have entered")
    return (own or entries)[-1]


H = TypeVar("H", Lock, Locks, Permits, Leadership, OnceAttempt, Tick)
R = TypeVar("R", OnceAttempt, Tick)


class WithHeld(AbstractAsyncContextManager[H]):
    """Acquires a lock or several, permits or leadership, holds them while a body runs, and releases them. Several tasks may enter one
    object: each acquires for itself, and leaves what it entered."""

    def __init__(self, acquire: Callable[[], Awaitable[H]], grace: float | None) -> None:
        self._acquire: Callable[[], Awaitable[H]] = acquire
        self._grace = grace
        self._entered: list[tuple[object, H, _Watchdog, _guard.Guard | None]] = []

    async def __aenter__(self) -> H:
        held = await self._acquire()
        guard = None if isinstance(held, Permits) else held._own_guard()
        self._entered.append((asyncio.current_task(), held, _Watchdog(held, self._grace), guard))
        if guard is not None:
            _guard.enter(guard)
        return held

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        entry = entry_of(self._entered, asyncio.current_task())
        self._entered.remove(entry)
        _, held, watchdog, guard = entry
        if guard is not None:
            _guard.leave(guard)
        instead = watchdog.leave(error) or (None if isinstance(held, Permits) else loss_met(held, error))
        await self._leave(held, watchdog, error, instead)

    async def _leave(self, held: H, watchdog: _Watchdog, error: BaseException | None, instead: Exception | None) -> None:
        try:
            await leave_body(held.release, strictly=error is None and instead is None)
        except asyncio.CancelledError:
            if instead is None or watchdog.is_cancelled():
                raise  # otherwise it is ours, which came as the body ended by itself
        if instead is not None:
            raise instead


class WithAttempt(WithHeld[R]):
    """Begins an attempt at work whose outcome is recorded, and finishes it as its body ends. A body that ends without an error has
    succeeded, even if its lock is lost."""

    async def _leave(self, held: R, watchdog: _Watchdog, error: BaseException | None, instead: Exception | None) -> None:
        try:
            await leave_body(lambda: held._leave(error), strictly=error is None)
        except asyncio.CancelledError:
            if instead is None or watchdog.is_cancelled():
                raise
            if error is None:  # it was ours, and the outcome counts
                await held._give_up()
        if error is not None and instead is not None:
            raise instead


class WithTick(WithAttempt[Tick]):
    """What `work` returns. Await it for a tick that the caller finishes; in `async with` the body's end finishes it."""

    def __await__(self) -> Generator[Any, None, Tick]:
        return self._acquire().__await__()


def loss_met(lock: Lock | Locks | Leadership | Recorded, error: BaseException | None) -> LostError | None:
    """The loss of a body's lock that a write of the body has met first."""
    if not isinstance(error, GuardLostError) or lock._giving_up is not None:
        return None
    return LostError(lock._claim.what, error) if error.metadata.get("fencing_token") == str(lock.fencing_token) else None


def leads_again(error: Exception, name: str, granted: bool, lease: object) -> bool:
    """Whether a leader should acquire its lock again after an error, from before or after the grant."""
    if isinstance(error, LostError):
        return granted and error.what == f"lock {name}" and not isinstance(error.cause, ForkedError)
    passes = isinstance(error, SidekeeperError) and (_transport.is_transient(error) or (lease is None and _transport.was_lost(error)))
    return passes and not granted


def kind(streams: Streams, stub: Any) -> Kind:
    async def release(hold_id: str) -> None:
        await _transport.call(stub.Release, lock_pb2.ReleaseRequest(hold_id=hold_id), GIVE_UP_TIMEOUT)

    async def check(ids: list[str], timeout: float) -> Mapping[str, Answer]:
        answers: dict[str, Answer] = {}
        for first in range(0, len(ids), MAX_HOLDS_PER_CHECK):
            answers |= await _check(stub, ids[first : first + MAX_HOLDS_PER_CHECK], timeout)
        return answers

    return Kind(
        streams,
        lambda request: Single(stub.Acquire, request),
        "granted",
        give_up=release,
        checker=streams.checker(check),
        acknowledged=True,
    )


async def _check(stub: Any, ids: list[str], timeout: float) -> dict[str, Answer]:
    """Asks about each hold alone if one of them is unknown: the sidecar does not say which."""
    try:
        reply = await _transport.call(stub.Check, lock_pb2.CheckRequest(hold_ids=ids), timeout)
    except HoldNotFoundError as error:
        if len(ids) == 1:
            return {ids[0]: Answer(0, error)}
        each = [await _check(stub, [one], timeout) for one in ids]
        return {key: answer for some in each for key, answer in some.items()}
    return {hold.hold_id: _answer(hold) for hold in reply.holds}


def _answer(hold: lock_pb2.CheckedHold) -> Answer:
    if hold.reason == "RELEASED":
        return Answer(0, given_up=True)
    if hold.reason:
        return Answer(0, named(hold.reason, "the sidecar reports that it has ended"))
    return Answer(seconds(hold.valid_for))
