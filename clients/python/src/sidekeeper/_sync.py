"""The client for programs with threads. Each client runs an event loop in a thread of its own, so that deadlines are kept whatever
the caller's threads do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, ItemsView, Iterator, KeysView, Mapping, ValuesView
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, cast

import grpc

from sidekeeper import _fork, _green, _guard, _transport, aio
from sidekeeper._config import Commit, Precondition
from sidekeeper._errors import AlreadyDoneError, ForkedError, LostError, SidekeeperError, SuspendedError, results
from sidekeeper._held import Held, HeldStream, log_failure
from sidekeeper._lock import entry_of, leads_again, loss_met
from sidekeeper._locks import check_wanted
from sidekeeper._once import ran
from sidekeeper._options import RULES, check, check_by, check_options
from sidekeeper._standing import Standing
from sidekeeper._types import (
    CommonAllOptions,
    CommonBarrierOptions,
    CommonCampaignOptions,
    CommonLockOptions,
    CommonOnceOptions,
    CommonPermitsOptions,
    CommonShareOptions,
    CommonWorkOptions,
    ConfigEvent,
    Contender,
    ElectionView,
    Entry,
    GroupView,
    LockView,
    Mode,
    Numbers,
    Observation,
    OnConflict,
    Outcome,
    Revocation,
    SemaphoreView,
    SequenceState,
    Token,
    WantedLock,
    YieldRequest,
)

T = TypeVar("T")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._home = _fork.here()
        self._handing = threading.RLock()  # a signal's handler may call the client while this thread has it
        self.closed = False
        """Whether nothing begins any more."""
        self._ending = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="sidekeeper", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def run(
        self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]] | None = None, *, goes_on: bool = False
    ) -> T:
        """Runs work there and waits for it; what interrupts the waiting, such as Ctrl-C, cancels the work, or has its result undone.
        goes_on: for work that ends something, and goes on whatever interrupts the waiting."""
        try:
            if self.is_inherited():
                raise ForkedError(_fork.INHERITED)
            self._refuse_own_thread()
        except BaseException:
            work.close()
            raise
        handover = _Handover(work, undo, goes_on)
        try:  # a signal's handler may raise anywhere: even when the work has begun and this thread does not wait for it yet
            doing = self._begin(handover.run())
            if doing is None:
                work.close()
                raise _transport.closed()
            return doing.result()
        except concurrent.futures.CancelledError:
            raise _transport.closed() from None
        except BaseException:
            self._begin(handover.refuse())
            raise

    def _begin(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T] | None:
        """Has work begin there, unless the loop ends: what has begun by then is ended by `end`. A forked child may have a copy of the mutex
        that stays taken for ever."""
        if not self.is_inherited() and not sys.is_finalizing():
            with self._handing:
                if not self.closed and not self._loop.is_closed():
                    return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        return None

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback of a client must not call the client: it would wait for itself")

    def is_inherited(self) -> bool:
        """Whether this is the copy that a forked child has: its thread is the parent's."""
        return _fork.here() != self._home

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of a stream, which ends when the iterator is closed."""
        try:
            while True:
                try:
                    item = self.run(_next(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            close = getattr(items, "aclose", None)
            if close is not None and not self.is_inherited():
                with suppress(RuntimeError, SidekeeperError):  # it is at work no more, or the client is closed
                    self.run(close())

    def end(self, last: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """Ends the loop, when the last work there is done, and waits for that. What interrupts the waiting leaves it to go on."""
        self._refuse_own_thread()
        try:
            self._begin_to_end(last)
            self._thread.join()
        except BaseException:
            self._begin_to_end(last)
            raise

    def _begin_to_end(self, last: Callable[[], Coroutine[Any, Any, object]] | None) -> None:
        if not self.is_inherited():
            with self._handing:
                self._begin(self._end(last))
                self.closed = True

    async def _end(self, last: Callable[[], Coroutine[Any, Any, object]] | None) -> None:
        if self._ending:
            return
        self._ending = True
        try:
            if last is not None:
                await last()
        finally:
            await _end_others()  # such as grpc's own tasks for calls that were just cancelled
            self._loop.stop()


class _Handover(Generic[T]):
    """Work in the loop whose result a thread takes, or refuses: then it is undone. Only the loop calls it."""

    def __init__(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]] | None, goes_on: bool) -> None:
        self._work, self._undo, self._goes_on = work, undo, goes_on
        self._doing: asyncio.Task[Any] | None = None
        self._results: list[T] = []

    async def run(self) -> T:
        self._doing = asyncio.current_task()
        result = await self._work
        self._results.append(result)
        return result

    async def refuse(self) -> None:
        if self._doing is None:
            if self._goes_on:
                await self._work
            self._work.close()
        elif not self._goes_on:
            self._doing.cancel()
            await asyncio.wait([self._doing])
        while self._undo is not None and self._results:
            with suppress(LostError, SidekeeperError):
                await self._undo(self._results.pop())


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, late = await asyncio.wait(others, timeout=0.5)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


class LockOptions(CommonLockOptions, total=False):
    """How to acquire a lock. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with; None, one of its own that ends with the lock."""


class _Held(Held):
    """What locks, leases and memberships have in common: each is a stream in the client's thread."""

    def __init__(self, loop: _Loop, stream: HeldStream) -> None:
        self._loop = loop
        self._stream = stream
        self._claim = stream._claim
        self._ended = threading.Event()
        self._claim.on_end(self._ended.set)

    def wait_ended(self, timeout: float | None = None) -> bool:
        """Returns True when it is no longer the caller's, lost or given up; False if it still is after timeout seconds."""
        return self._claim.over() or self._ended.wait(timeout)

    def _give_up(self) -> None:
        self._end(self._stream._give_up, goes_on=True)

    def _end(
        self, end: Callable[[], Coroutine[Any, Any, None]], *, goes_on: bool = False, closed: Callable[[], None] | None = None
    ) -> None:
        """Ends it. When the client is closed, `closed` says how it has ended; by default, as giving it up says."""
        self._stream._refuse_if_forked()
        try:
            self._loop.run(end(), goes_on=goes_on)
        except SidekeeperError:
            if not self._loop.closed:
                raise
            (closed or self._stream._raise_outcome)()

    async def _undo(self) -> None:
        await self._stream._give_up()

    def _drop(self) -> None:
        """Begins to give it up, unless that has begun, and waits for nothing."""
        self._loop._begin(self._undo())

    def _leave_body(self, error: BaseException | None) -> None:
        self._give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Gives it up. A failure is only logged if the body failed too."""
        try:
            self._leave_body(error)
        except (LostError, SidekeeperError) as failure:
            if kind is None:
                raise
            log_failure(failure)
        except BaseException:  # of a signal's handler
            self._drop()
            raise


class Lease(_Held):
    """Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost.

    While nothing stands on it, it is not lost when its validity runs out, as after a pause of the process. It is not valid until the
    sidecar answers again, and `error` is None.
    """

    def __init__(self, loop: _Loop, lease: aio.Lease) -> None:
        super().__init__(loop, lease)
        self._lease = lease

    @property
    def id(self) -> str:
        """Names the lease in calls made without this package: 32 hexadecimal digits. It is a secret."""
        return self._lease.id

    @property
    def ttl(self) -> float:
        """The session timeout in seconds that the ensemble granted."""
        return self._lease.ttl

    def close(self) -> None:
        """Ends the lease; for the caller, it and everything acquired with it end at once. When this returns, all of that is gone from the
        ensemble. Raises LostError if the lease was lost before. Calling it again has the same outcome."""
        self._give_up()


class _Stopping(_Held):
    """What says to a body of a thread that it must not go on."""

    def __init__(self, loop: _Loop, held: aio.Lock | aio.Locks | aio.Attempt | aio.Tick, suspension_grace: float | None) -> None:
        super().__init__(loop, held)
        self._held = held
        self._grace = suspension_grace
        self._stop = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        held._on_suspension.append(self._suspended)
        held._claim.on_end(self._over)
        if held.suspended:
            self._suspended(True)

    def should_stop(self) -> bool:
        """Whether the body must not go on: it is lost, or suspended for longer than the grace."""
        return self._stop.is_set() or not self.valid

    def wait_should_stop(self, timeout: float | None = None) -> bool:
        """Returns True as soon as the body must not go on; False if it may still go on after timeout seconds. Use it in place of sleep."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.should_stop():
            left = 0.25 if until is None else min(0.25, until - time.monotonic())
            if left <= 0:
                return False
            self._stop.wait(left)
        return True

    def check(self) -> None:
        """Raises LostError if it is not proven to be the caller's, SuspendedError if it is suspended for longer than the grace."""
        self._held.check()
        if self._stop.is_set():
            raise SuspendedError(f"{self._claim.what} has been suspended for {self._grace} s")

    def _suspended(self, suspended: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if suspended and self._grace is not None:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._stop.set)
        elif not suspended and not self._claim.over():
            self._stop.clear()

    def _over(self) -> None:
        self._suspended(False)
        self._stop.set()


class Lock(_Stopping):
    """A granted hold. Release it, even after it was lost."""

    def __init__(self, loop: _Loop, lock: aio.Lock, suspension_grace: float | None = None) -> None:
        super().__init__(loop, lock, suspension_grace)
        self._lock = lock

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._lock.name

    @property
    def fencing_token(self) -> Token:
        """Orders the grants of this lock: pass it to whatever the lock protects, and have that refuse smaller ones."""
        return self._lock.fencing_token

    @property
    def hold_id(self) -> str:
        """Names this hold in calls made without this package: 32 hexadecimal digits. It is a secret."""
        return self._lock.hold_id

    @property
    def revocation(self) -> Revocation | None:
        """The latest request to release the lock; None if there was none."""
        return self._lock.revocation

    def ticket(self) -> _guard.Ticket:
        """What the holder hands on to others, who guard with it what they write."""
        return self._lock.ticket()

    def guard(self) -> AbstractContextManager[None]:
        """Guards with the lock what its client writes in the body of `with`: `put`, `delete` and `commit` of the configuration, the
        numbers of a sequence unless they are relaxed, and a member's joining and updates.

        The ensemble carries that out only while the lock is held, in one transaction with the write, at no cost; otherwise it is
        GuardLostError, or HoldNotFoundError after the sidecar has restarted. It holds for this thread: another one calls guard itself.
        What another client writes is not guarded by it: hand on a Ticket.
        """
        return self._lock.guard()

    def release(self) -> None:
        """Releases the lock. For the caller it ends at once; when this returns, the next waiter can be granted it.

        Raises LostError if the lock was lost before, and ReleaseUnconfirmedError if the sidecar has not confirmed the release: for the
        caller the lock has ended all the same, and for others it ends at the latest when its validity would have. Calling it again has
        the same outcome.
        """
        self._give_up()


class Claim(Standing):
    """A lock that is held without a process. It outlives this client: only `release`, its time or an operator ends it."""

    def __init__(self, loop: _Loop, claim: aio.Claim) -> None:
        self._loop, self._claim, self._facts = loop, claim, claim._facts

    def extend(self, reserve_for: float) -> None:
        """Has the claim end no earlier than so many seconds from now; see aio.Claim.extend."""
        self._loop.run(self._claim.extend(reserve_for))

    def check(self) -> float:
        """For how many seconds the claim counts from now, whatever operators do; see aio.Claim.check."""
        return self._loop.run(self._claim.check())

    def release(self) -> None:
        """Ends the claim; see aio.Claim.release."""
        self._loop.run(self._claim.release(), goes_on=True)


class AllOptions(CommonAllOptions, total=False):
    """How to acquire several locks. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to hold the locks with, of the same client; None, one of their own that ends with them."""


class Locks(_Stopping):
    """Several locks that are held as one hold: what ends one ends all. Release them, even after they were lost."""

    def __init__(self, loop: _Loop, locks: aio.Locks, suspension_grace: float | None = None) -> None:
        super().__init__(loop, locks, suspension_grace)
        self._locks = locks

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the locks, as they were asked for."""
        return self._locks.names

    @property
    def hold_id(self) -> str:
        """Names the one hold in calls made without this package: 32 hexadecimal digits. It is a secret."""
        return self._locks.hold_id

    @property
    def fencing_tokens(self) -> Mapping[str, Token]:
        """Of each lock, by its name; see Lock.fencing_token."""
        return self._locks.fencing_tokens

    @property
    def revocation(self) -> Revocation | None:
        """The latest request to release any of the locks, which asks for all; None if there was none."""
        return self._locks.revocation

    def tickets(self) -> tuple[_guard.Ticket, ...]:
        """What the holder hands on to others, who guard with them what they write; in the order of the names."""
        return self._locks.tickets()

    def guard(self) -> AbstractContextManager[None]:
        """Guards with all of the locks what its client writes in the body of `with`; see Lock.guard."""
        return self._locks.guard()

    def release(self) -> None:
        """Releases all of the locks. For the caller they end at once; when this returns, the next waiters can be granted them. Errors as of
        Lock.release."""
        self._give_up()


class OnceOptions(CommonOnceOptions, total=False):
    """How to do work once. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with, of the same client; None, one of its own that ends with the attempt."""


class _Recorded(_Stopping):
    """The caller's attempt at work, whose outcome is recorded. Finish it, or release it: then it counts as lost."""

    def __init__(self, loop: _Loop, attempt: aio.Attempt | aio.Tick) -> None:
        super().__init__(loop, attempt, None)
        self._recorded = attempt

    @property
    def name(self) -> str:
        """The name of the work, for all keys; or of the schedule."""
        return self._recorded.name

    @property
    def number(self) -> int:
        """1 for the first attempt at this work."""
        return self._recorded.number

    @property
    def fencing_token(self) -> Token:
        """Larger than that of every earlier attempt at this work."""
        return self._recorded.fencing_token

    @property
    def hold_id(self) -> str:
        """Names this attempt in calls made without this package: 32 hexadecimal digits. It is a secret."""
        return self._recorded.hold_id

    @property
    def revocation(self) -> Revocation | None:
        """The latest request to finish soon; None if there was none."""
        return self._recorded.revocation

    def ticket(self) -> _guard.Ticket:
        """What the caller hands on to others, who guard with it what they write for the attempt."""
        return self._recorded.ticket()

    def guard(self) -> AbstractContextManager[None]:
        """Guards with the attempt what its client writes in the body of `with`; see Lock.guard."""
        return self._recorded.guard()

    def finish(self, outcome: Outcome, note: str = "") -> None:
        """Says how the attempt has ended, and gives up its lock; see aio.Attempt.finish."""
        closed = functools.partial(self._recorded._raise_unless_recorded, outcome)
        self._end(lambda: self._recorded.finish(outcome, note), goes_on=True, closed=closed)

    def release(self) -> None:
        """Gives up the attempt, which counts as lost. Errors as of Lock.release. After finish it does nothing, and has its outcome."""
        self._give_up()

    def _leave_body(self, error: BaseException | None) -> None:
        closed = functools.partial(self._recorded._raise_unless_recorded, Outcome.SUCCEEDED) if error is None else None
        self._end(lambda: self._recorded._leave(error), goes_on=True, closed=closed)


class Attempt(_Recorded):
    """The caller's at work that is done once. Finish it, or release it: then it counts as lost."""

    def __init__(self, loop: _Loop, attempt: aio.Attempt) -> None:
        super().__init__(loop, attempt)
        self._attempt = attempt

    @property
    def key(self) -> str:
        """What is done once."""
        return self._attempt.key


class WorkOptions(CommonWorkOptions, total=False):
    """How to work for a schedule. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with, of the same client; None, one of its own that ends with the attempt."""


class Tick(_Recorded):
    """The caller's attempt at a tick of a schedule, or at a run. Finish it, or release it: then it counts as lost."""

    def __init__(self, loop: _Loop, tick: aio.Tick) -> None:
        super().__init__(loop, tick)
        self._tick = tick

    @property
    def at(self) -> datetime:
        """When the tick was due, in UTC: the same for all attempts. Of a run, when it was asked for."""
        return self._tick.at

    @property
    def run_id(self) -> str:
        """Of a run, its id. Empty for a tick."""
        return self._tick.run_id


class ShareOptions(CommonShareOptions, total=False):
    """How to share. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease for the membership and the locks, of the same client; None, one of its own, and after its loss another one."""


class Item(Lock):
    """An item that its handler works on, and the hold of its lock. The lock is released when the handler has ended.

    A long handler looks at should_stop, or sleeps with wait_should_stop: they say so when the item moves, when the lock is lost or its
    release is asked for, and when share ends. Until the lock is lost, the handler may still finish what it does.
    """

    def __init__(self, loop: _Loop, item: aio.Item) -> None:
        super().__init__(loop, item)
        self.set, self.item = item.set, item.item

    def check(self) -> None:
        """Raises LostError if the lock is not proven to be the caller's at this moment."""
        self._lock.check()

    def _suspended(self, suspended: bool) -> None:
        """Contact that comes back does not take back that the handler shall stop."""

    async def _handle(self, handler: Callable[[Item], object]) -> None:
        """Runs the handler in a thread, and has a cancellation tell it to stop."""
        ended = concurrent.futures.Future[BaseException | None]()
        threading.Thread(target=self._run, args=(handler, ended), name=f"sidekeeper: item {self.name}", daemon=True).start()
        error = asyncio.wrap_future(ended)
        while not error.done():
            try:
                await asyncio.wait([error])
            except asyncio.CancelledError:
                self._stop.set()
        match error.result():
            case Exception() as failed:
                raise failed
            case BaseException() as failed:  # such as SystemExit, which would end the loop
                raise RuntimeError(f"the handler has raised {failed!r}") from failed

    def _run(self, handler: Callable[[Item], object], ended: concurrent.futures.Future[BaseException | None]) -> None:
        try:
            with self.guard():
                ran(handler(self))
        except BaseException as error:
            ended.set_result(error)
        else:
            ended.set_result(None)


S = TypeVar("S", bound=_Stopping)


class PermitsOptions(CommonPermitsOptions, total=False):
    """How to acquire permits. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to hold the permits with, of the same client; None, one of their own that ends with them."""


class Permits(_Held):
    """What the caller holds of a semaphore. Release it, even after it was lost."""

    def __init__(self, loop: _Loop, permits: aio.Permits) -> None:
        super().__init__(loop, permits)
        self._permits = permits

    @property
    def semaphore(self) -> str:
        """The semaphore's name."""
        return self._permits.semaphore

    @property
    def token(self) -> int:
        """Tells these permits from all others of the semaphore. It is no fencing token: others hold permits at the same time."""
        return self._permits.token

    @property
    def number(self) -> int | None:
        """The number that the permit bears, from 0 to the semaphore's limit - 1; None without `numbered`. No other caller has it while the
        permit is valid: ask `valid` before each use. Do not keep it after the loss."""
        return self._permits.number

    @property
    def revocation(self) -> Revocation | None:
        """The latest request to release the permits; None if there was none."""
        return self._permits.revocation

    def check(self) -> None:
        """Raises LostError if the permits are not proven to be the caller's at this moment."""
        self._permits.check()

    def release(self) -> None:
        """Releases all of the permits. For the caller they end at once; when this returns, others can be granted them. Errors as of
        Lock.release."""
        self._give_up()


class BarrierOptions(CommonBarrierOptions, total=False):
    """How to enter a double barrier. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to stand at the barrier with, of the same client; None, one of its own that ends with the entry."""


class BarrierEntry(_Held):
    """The caller's inside a double barrier, until it leaves. Leave, or release it, even after it was lost."""

    def __init__(self, loop: _Loop, entry: aio.BarrierEntry) -> None:
        super().__init__(loop, entry)
        self._entry = entry

    @property
    def barrier(self) -> str:
        """The barrier's name."""
        return self._entry.barrier

    @property
    def token(self) -> int:
        """Tells this entry from all others at the barrier."""
        return self._entry.token

    @property
    def round(self) -> int:
        """The same for all who are inside together, and larger than that of those before."""
        return self._entry.round

    def check(self) -> None:
        """Raises LostError if the caller is not proven to be inside at this moment."""
        self._entry.check()

    def leave(self, wait: float | None = None) -> None:
        """Ends the entry, and returns when all who entered with it have left or have lost their leases. For the caller it ends at once.

        wait: the seconds to wait for the others; None, without a limit. Raises LostError if the entry was lost before. After any
        SidekeeperError, such as WaitTimeoutError, it is over for the caller all the same, but others may be inside. Calling it again has
        the same outcome; release leaves without waiting, and only one of the two does anything.
        """
        self._end(lambda: self._entry.leave(wait))

    def release(self) -> None:
        """Leaves without waiting for the others, who do not wait for this entry any more when this returns. Errors as of Lock.release."""
        self._give_up()

    def _leave_body(self, error: BaseException | None) -> None:
        """Leaves, and waits for the others unless the body has failed."""
        if error is None:
            self.leave()
        else:
            self.release()


class CampaignOptions(CommonCampaignOptions, total=False):
    """How to campaign. The callbacks are called one at a time in the client's own thread: they must not block."""

    lease: Lease | None
    """The lease to campaign with, of the same client; None, one of its own that ends with the term."""


class Leadership(_Held):
    """A term: the time for which the caller leads an election. Resign, even after it was lost."""

    def __init__(self, loop: _Loop, leadership: aio.Leadership) -> None:
        super().__init__(loop, leadership)
        self._leadership = leadership

    @property
    def election(self) -> str:
        """The election's name."""
        return self._leadership.election

    @property
    def candidate(self) -> str:
        """The caller's name."""
        return self._leadership.candidate

    @property
    def term(self) -> _guard.Ticket:
        """Names the term for others, who guard with it what they write for the leader. Its fencing token is larger than that of every
        earlier term."""
        return self._leadership.term

    @property
    def yield_request(self) -> YieldRequest | None:
        """The latest request to resign; None if there was none."""
        return self._leadership.yield_request

    def check(self) -> None:
        """Raises LostError if the caller is not proven to lead at this moment."""
        self._leadership.check()

    def proclaim(self, value: str) -> None:
        """Changes the value that the leader shows. Raises GuardLostError if it does not lead any more."""
        self._loop.run(self._leadership.proclaim(value))

    def resign(self) -> None:
        """Ends the term. For the caller it ends at once; when this returns, another candidate can be elected. Errors as of Lock.release."""
        self._give_up()


class Membership(_Held):
    """The caller as a member of a group, valid for as long as its lease is. Leave the group, even after the membership was lost."""

    def __init__(self, loop: _Loop, membership: aio.Membership) -> None:
        super().__init__(loop, membership)
        self._membership = membership

    @property
    def incarnation(self) -> int:
        """Distinguishes this member from all that have or had its name."""
        return self._membership.incarnation

    def update(self, metadata: Mapping[str, str]) -> None:
        """Replaces the metadata that others see, at most 1 KiB in all."""
        self._loop.run(self._membership.update(metadata))

    def leave(self) -> None:
        """Leaves the group. If the membership has a lease of its own, that is closed, which the sidecar confirms. Raises LostError if the
        membership was lost before. Calling it again has the same outcome."""
        self._give_up()


class Sequence:
    """Hands out numbers, each once. Creating this object makes no call."""

    def __init__(self, loop: _Loop, sequence: aio.Sequence) -> None:
        self._loop, self._sequence = loop, sequence

    def next(self, *, relaxed: bool = False) -> int:
        """Hands out a number; see aio.Sequence.next."""
        return self._loop.run(self._sequence.next(relaxed=relaxed))

    def next_range(self, count: int, *, relaxed: bool = False) -> Numbers:
        """Hands out count numbers at once, 1 to 1,000,000. Errors are those of next."""
        return self._loop.run(self._sequence.next_range(count, relaxed=relaxed))

    def numbers(self, *, ahead: int = 100) -> Iterator[int]:
        """An endless stream of numbers, unique and in no particular order, reserved `ahead` at a time. Those reserved and not used are
        never handed out again."""
        while True:
            yield from self.next_range(ahead, relaxed=True)

    def create(self, first: int) -> int:
        """Creates the sequence, whose first number will be first, and returns its incarnation. Raises SequenceExistsError."""
        return self._loop.run(self._sequence.create(first))

    def get(self) -> SequenceState:
        """Returns how far the sequence has come. Raises SequenceNotFoundError, SequenceMalformedError."""
        return self._loop.run(self._sequence.get())

    def delete(self) -> None:
        """Removes the sequence. Raises SequenceNotFoundError; after OutcomeUnknownError it may be gone."""
        self._loop.run(self._sequence.delete())


class ConfigView(Mapping[str, Entry]):
    """A copy of part of the configuration that follows its changes and knows how old it may be.

    Any thread may look. `keys()`, `values()`, `items()` and an iteration each show one moment's state, which later changes leave alone.
    """

    def __init__(self, view: aio.ConfigView) -> None:
        self._view = view

    def __getitem__(self, key: str) -> Entry:
        return self._view[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._view)

    def __len__(self) -> int:
        return len(self._view)

    def keys(self) -> KeysView[str]:
        return self._view.keys()

    def values(self) -> ValuesView[Entry]:
        return self._view.values()

    def items(self) -> ItemsView[str, Entry]:
        return self._view.items()

    def age(self) -> float:
        """For how many seconds contact with the ensemble or the sidecar has been lost; 0 while the copy is up to date."""
        return self._view.age()


class Config:
    """The configuration. Values are at most 1,000,000 bytes; text is written as UTF-8.

    What is written in the body of `Client.lock` is written only while the lock is held (see `Lock.guard`); otherwise it is GuardLostError.
    """

    def __init__(self, loop: _Loop, config: aio.Config) -> None:
        self._loop, self._config = loop, config

    def get(self, key: str, *, linearizable: bool = False) -> Entry:
        """Reads a key as the sidecar last saw it; with linearizable, the result reflects every write that completed before
        this call. Raises KeyNotFoundError."""
        return self._loop.run(self._config.get(key, linearizable=linearizable))

    def put(self, key: str, value: bytes | str, precondition: Precondition | None = None) -> Entry:
        """Writes a key and returns the entry without its value. Raises PreconditionFailedError; after OutcomeUnknownError it may have
        been written, or may be written later."""
        return self._loop.run(self._config.put(key, value, precondition))

    def delete(self, key: str, precondition: Precondition | None = None) -> None:
        """Deletes a key. Raises KeyNotFoundError, PreconditionFailedError, KeyHasChildrenError."""
        self._loop.run(self._config.delete(key, precondition))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All keys with their values, in the order of keys, or those at and below a prefix of whole segments."""
        return self._loop.iterate(self._config.list(prefix))

    def commit(self, commit: Commit) -> tuple[Entry, ...]:
        """Applies a Commit; see aio.Config.commit."""
        return self._loop.run(self._config.commit(commit))

    def watch(self, *keys: str) -> Iterator[ConfigEvent]:
        """Yields the state of some keys, then each change, also across restarts of the sidecar."""
        return self._loop.iterate(self._config.watch(*keys))

    def watch_prefix(self, prefix: str = "") -> Iterator[ConfigEvent]:
        """Yields the state of all keys at and below a prefix of whole segments, then each change, also across restarts of the
        sidecar."""
        return self._loop.iterate(self._config.watch_prefix(prefix))

    @contextmanager
    def view(self, prefix: str = "") -> Iterator[ConfigView]:
        """Keeps a copy of all keys at and below a prefix up to date while the body of `with` runs. It is complete when the body begins."""
        keeping = self._loop.run(_enter(self._config.view(prefix)), _Kept.leave)
        try:
            yield ConfigView(keeping.view)
        finally:
            if not self._loop.is_inherited():
                self._loop.run(keeping.leave(), goes_on=True)


class _Kept:
    """A view whose body is entered and left from another thread: the loop's task for it waits in between."""

    def __init__(self, view: aio.ConfigView, leaving: asyncio.Event, task: asyncio.Task[None]) -> None:
        self.view, self._leaving, self._task = view, leaving, task

    async def leave(self) -> None:
        self._leaving.set()
        await self._task


async def _enter(context: Any) -> _Kept:
    leaving = asyncio.Event()
    entered: asyncio.Future[aio.ConfigView] = asyncio.get_running_loop().create_future()

    async def keep() -> None:
        try:
            async with context as view:
                entered.set_result(view)
                await leaving.wait()
        except SidekeeperError as error:
            if entered.done():
                raise
            entered.set_exception(error)

    task = asyncio.create_task(keep())
    try:
        return _Kept(await entered, leaving, task)
    except asyncio.CancelledError:
        await _end(task)
        raise


def _of_loop(lease: Lease | None) -> aio.Lease | None:
    """The lease that a client's loop knows."""
    check_by(RULES["lease"]._replace(of=lambda value: isinstance(value, Lease)), "lease", lease)
    return lease._lease if lease is not None else None


def _chosen(known: type[T], options: Mapping[str, Any], **more: object) -> T:
    """Options for the client of asyncio, as soon as they are checked."""
    chosen: Any = {**options, "lease": _of_loop(options.get("lease"))}
    check_options(known, chosen, **more)
    return cast(T, chosen)


class Client:
    """A client of one sidecar, for any number of threads. Close it: that gives up everything that it holds and waits for.

    target: `unix:///path`, a path, or `host:port`; None, the value of SIDEKEEPER_ADDRESS, or if that is not set,
        `unix:///run/sidekeeper/sidekeeper.sock`.
    credentials: for TLS, from `grpc.ssl_channel_credentials`. Required unless the address is a Unix socket or loopback.

    Raises ValueError if the address is invalid, TypeError if it is no str, and RuntimeError where gevent or eventlet has replaced the
    threads of the process. It does not wait for a connection; the first call does. A forked child cannot use it, and raises ForkedError:
    close it before a fork, and make it after one.
    """

    def __init__(self, target: str | None = None, *, credentials: grpc.ChannelCredentials | None = None) -> None:
        _fork.refuse_if_stranded()  # before there is a thread
        _green.refuse_if_patched()
        check(target=target, credentials=credentials)
        _transport.resolve(target)
        self._loop = _Loop()
        try:
            self._client = self._loop.run(self._open(target, credentials), aio.Client.close)
        except BaseException:
            self._loop.end()
            raise
        self.config = Config(self._loop, self._client.config)
        """The configuration."""

    @staticmethod
    async def _open(target: str | None, credentials: grpc.ChannelCredentials | None) -> aio.Client:
        return aio.Client(target, credentials=credentials)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives up everything that this client holds and waits for. Calling it again does nothing, nor does it in a forked child."""
        if not self._loop.is_inherited():
            self._loop.end(self._client.close)

    def open_lease(
        self, *, ttl: float | None = None, owner: str = "", metadata: Mapping[str, str] | None = None, wait: float | None = None
    ) -> Lease:
        """Opens a lease. ttl: the session timeout in seconds after which the ensemble expires it if it hears nothing; None, the
        sidecar's default. wait: the seconds to wait for a sidecar or an ensemble that is away; None, 10 seconds; 0 tries once."""
        return self._loop.run(self._open_lease(ttl, owner, metadata, wait), Lease._undo)

    async def _open_lease(self, ttl: float | None, owner: str, metadata: Mapping[str, str] | None, wait: float | None) -> Lease:
        return Lease(self._loop, await self._client.open_lease(ttl=ttl, owner=owner, metadata=metadata, wait=wait))

    def acquire(self, name: str, *, suspension_grace: float | None = None, **options: Unpack[LockOptions]) -> Lock:
        """Waits in the queue of the lock and returns when the lock is granted and valid.

        Raises LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors, such as
        LeaseLostError if it was granted and lost before this could return. suspension_grace: seconds for which the lock may be
        suspended until should_stop says so.

        While the sidecar or the ensemble is away, it tries again, at the queue's end, for as long as wait says; without wait, for 10
        seconds each time.
        """
        chosen = _chosen(aio.LockOptions, options, suspension_grace=suspension_grace)
        return self._loop.run(self._acquire(name, suspension_grace, chosen), Lock._undo)

    async def _acquire(self, name: str, grace: float | None, options: aio.LockOptions) -> Lock:
        return Lock(self._loop, await self._client.acquire(name, **options), grace)

    def lock(self, name: str, *, suspension_grace: float | None = None, **options: Unpack[LockOptions]) -> AbstractContextManager[Lock]:
        """Holds the lock in the body of `with`, and releases it. LostError is raised at the end of a body that has lost it.

        A thread cannot be interrupted: a long body checks should_stop, sleeps with wait_should_stop, or calls check before each
        step. What the body writes with this client, in this thread, is written only while the lock is held (see `Lock.guard`); `unguarded`
        makes it not so.
        """
        check(name=name)
        chosen = _chosen(aio.LockOptions, options, suspension_grace=suspension_grace)
        return _WithHeld(self._loop, lambda: self._acquire(name, suspension_grace, chosen))

    def acquire_all(self, *locks: str | WantedLock, suspension_grace: float | None = None, **options: Unpack[AllOptions]) -> Locks:
        """Waits for 1 to 16 locks at once, and returns when all are granted and valid, as one hold; see aio.Client.acquire_all.
        suspension_grace as in acquire."""
        chosen = _chosen(aio.AllOptions, options, suspension_grace=suspension_grace)
        return self._loop.run(self._acquire_all(locks, suspension_grace, chosen), Locks._undo)

    async def _acquire_all(self, locks: tuple[str | WantedLock, ...], grace: float | None, options: aio.AllOptions) -> Locks:
        return Locks(self._loop, await self._client.acquire_all(*locks, **options), grace)

    def locks(
        self, *locks: str | WantedLock, suspension_grace: float | None = None, **options: Unpack[AllOptions]
    ) -> AbstractContextManager[Locks]:
        """Holds several locks, acquired at once, in the body of `with`, and releases them. LostError is raised at the end of a body that
        has lost them. A body looks whether it may go on, and is guarded, as in lock."""
        chosen = _chosen(aio.AllOptions, options, suspension_grace=suspension_grace)
        check_wanted(locks, chosen)
        return _WithHeld(self._loop, lambda: self._acquire_all(locks, suspension_grace, chosen))

    def claim(
        self,
        name: str,
        reserve_for: float,
        reason: str,
        *,
        claim_id: str | None = None,
        wait: float | None = None,
        owner: str = "",
        metadata: Mapping[str, str] | None = None,
        mode: Mode = Mode.EXCLUSIVE,
    ) -> Claim:
        """Waits for its turn, and holds the lock without a process for so many seconds, 60 to 30 days, unless it is extended; see
        aio.Client.claim."""
        others: dict[str, Any] = {"wait": wait, "owner": owner, "metadata": metadata, "mode": mode}
        undo = aio.Claim.release if claim_id is None else None
        return Claim(self._loop, self._loop.run(self._client.claim(name, reserve_for, reason, claim_id=claim_id, **others), undo))

    def claim_by_id(self, claim_id: str) -> Claim:
        """The claim with this id, to extend, check or release it. It makes no call."""
        return Claim(self._loop, self._client.claim_by_id(claim_id))

    def run_while_leader(self, name: str, body: Callable[[Lock], T], **options: Unpack[LockOptions]) -> T:
        """Runs body while holding the lock and returns its result. When the lock is lost, body should stop, for example by calling
        lock.check, which raises LostError. The client runs it again after the next grant, even if it returned a result."""
        check(body=body)
        backoff = _transport.Backoff()
        while True:
            lock: Lock | None = None
            try:
                with results() as done, self.lock(name, **options) as lock:
                    backoff.reset()
                    result = body(lock)
                    done.append(result)
                    lock.check()
                    return result
            except (LostError, SidekeeperError) as error:
                if not leads_again(error, name, lock is not None, options.get("lease")):
                    raise
            time.sleep(backoff.next())

    def begin(self, name: str, key: str, **options: Unpack[OnceOptions]) -> Attempt:
        """Waits for its turn at the work of a key, and returns when the attempt is recorded; see aio.Client.begin. Finish the attempt.
        Used as a context manager, it is finished as its body ends; see `attempt`, whose body is guarded, too."""
        return self._loop.run(self._begin(name, key, _chosen(aio.OnceOptions, options)), Attempt._undo)

    async def _begin(self, name: str, key: str, options: aio.OnceOptions) -> Attempt:
        return Attempt(self._loop, await self._client.begin(name, key, **options))

    def attempt(self, name: str, key: str, **options: Unpack[OnceOptions]) -> AbstractContextManager[Attempt]:
        """Begins an attempt at the work of a key, and finishes it as the body of `with` ends: SUCCEEDED, or FAILED with what it raises.
        Errors as of begin and of Attempt.finish.

        An attempt is lost and has not failed if its lock was lost by the time that the body raises, or if the body raises LostError or
        GuardLostError, or an error from one of them. If a body has ended without an error, its success is recorded, even if the lock
        was lost. A body looks whether it may go on, and is guarded, as in lock.
        """
        check(name=name, key=key)
        chosen = _chosen(aio.OnceOptions, options)
        return _WithHeld(self._loop, lambda: self._begin(name, key, chosen))

    def once(self, name: str, key: str, work: Callable[[Attempt], object], **options: Unpack[OnceOptions]) -> bool:
        """Has work done once for a key, as the body of `attempt` is, and says whether it was done in this call. If it was done before, it
        returns False. It does not promise that work runs exactly once: if this process dies within it, another caller begins it again.

        Work that returns a coroutine or a generator has not run: the attempt has failed, with TypeError."""
        check(work=work)
        with ExitStack() as stack:
            try:
                attempt = stack.enter_context(self.attempt(name, key, **options))
            except AlreadyDoneError:
                return False
            ran(work(attempt))
        return True

    def work(self, name: str, **options: Unpack[WorkOptions]) -> AbstractContextManager[Tick]:
        """Waits for the next tick of a schedule, or for a run. Finishes it as the body of `with` ends: SUCCEEDED, or FAILED with what that
        raises. Call it again for the tick after that. Errors as of aio.Client.work and of Tick.finish.

        The body is guarded, and counts as lost, as that of `attempt`. A lost tick begins again, on another machine if one waits. A long
        body looks whether it may go on."""
        check(name=name)
        chosen = _chosen(aio.WorkOptions, options)
        return _WithHeld(self._loop, lambda: self._work(name, chosen))

    async def _work(self, name: str, options: aio.WorkOptions) -> Tick:
        return Tick(self._loop, await self._client.work(name, **options))

    def share(
        self, name: str, handler: Callable[[Item], object], *, stop: threading.Event | None = None, **options: Unpack[ShareOptions]
    ) -> None:
        """Works on the caller's part of the items of a set until stop is set, or without it until something such as Ctrl-C interrupts it.

        For each item of the caller, handler runs in a thread of its own while the item's lock is held; see aio.Client.share. The handler
        looks whether it shall stop, as Item says. share returns when all handlers have ended."""
        check(name=name, handler=handler, stop=stop)
        chosen, ended = _chosen(aio.ShareOptions, options), threading.Event()

        async def begin() -> asyncio.Task[None]:
            working = self._client.share(name, lambda item: Item(self._loop, item)._handle(handler), **chosen)
            task: asyncio.Task[None] = asyncio.create_task(working, name=f"sidekeeper: share {name}")
            task.add_done_callback(lambda _: ended.set())
            return task

        sharing = self._loop.run(begin(), _end)
        try:
            while not ended.wait(0.25) and not (stop is not None and stop.is_set()):
                pass
        finally:
            if not self._loop.is_inherited():
                self._loop.run(_end(sharing), goes_on=True)
        if not sharing.cancelled():
            sharing.result()

    def get_lock(self, name: str) -> LockView:
        """Returns the holders and waiters of the lock."""
        return self._loop.run(self._client.get_lock(name))

    def watch_lock(self, name: str) -> Iterator[LockView]:
        """Yields what get_lock returns, at once and after every change, also across restarts of the sidecar."""
        return self._loop.iterate(self._client.watch_lock(name))

    def watch_leader(self, name: str) -> Iterator[Contender | None]:
        """Yields the first holder of the lock, None if it is free, at once and after every change."""
        return self._loop.iterate(self._client.watch_leader(name))

    def verify(self, ticket: _guard.Ticket) -> _guard.Verification:
        """Says whether the ticket's hold lasts; see aio.Client.verify."""
        return self._loop.run(self._client.verify(ticket))

    def watch_tokens(self, *locks: str) -> Iterator[_guard.CurrentToken]:
        """Yields what locks are held with, at once and after every change, until the sidecar is away; see aio.Client.watch_tokens."""
        return self._loop.iterate(self._client.watch_tokens(*locks))

    def revoke(self, name: str, *, reason: str = "", grace: float | None = None) -> int:
        """Asks every holder of the lock to release it, and returns how many were asked. With a grace in seconds, their holds are ended
        by force when it has passed: for operators."""
        return self._loop.run(self._client.revoke(name, reason=reason, grace=grace))

    def acquire_permits(self, semaphore: str, **options: Unpack[PermitsOptions]) -> Permits:
        """Waits for permits of a semaphore, and returns when they are granted and valid; see aio.Client.acquire_permits. Used as a context
        manager, the permits are released at its end."""
        return self._loop.run(self._acquire_permits(semaphore, _chosen(aio.PermitsOptions, options)), Permits._undo)

    async def _acquire_permits(self, semaphore: str, options: aio.PermitsOptions) -> Permits:
        return Permits(self._loop, await self._client.acquire_permits(semaphore, **options))

    def create_semaphore(self, name: str, limit: int) -> None:
        """Makes a semaphore with so many permits, 1 to 10,000. Making it again does nothing. Raises SemaphoreExistsError if it has another
        limit."""
        self._loop.run(self._client.create_semaphore(name, limit))

    def resize_semaphore(self, name: str, limit: int, *, reason: str = "", grace: float | None = None) -> int:
        """Sets how many permits there are, and returns of how many too many the holders were asked: those with a number beyond it
        first, then those granted last. With a grace in seconds, their holds are ended by force when it has passed: for operators."""
        return self._loop.run(self._client.resize_semaphore(name, limit, reason=reason, grace=grace))

    def get_semaphore(self, name: str) -> SemaphoreView:
        """Returns the limit, the holders, the waiters and the numbers in quarantine. Raises SemaphoreNotFoundError."""
        return self._loop.run(self._client.get_semaphore(name))

    def watch_semaphore(self, name: str) -> Iterator[SemaphoreView]:
        """Yields what get_semaphore returns, at once and after every change, also across restarts of the sidecar."""
        return self._loop.iterate(self._client.watch_semaphore(name))

    def set_barrier(self, name: str) -> None:
        """Sets a barrier, at which await_barrier waits until it is removed. Setting it again does nothing."""
        self._loop.run(self._client.set_barrier(name))

    def remove_barrier(self, name: str) -> None:
        """Removes a barrier: the callers that wait at it go on. Removing one that is not set does nothing."""
        self._loop.run(self._client.remove_barrier(name))

    def await_barrier(self, name: str, *, wait: float | None = None, on_waiting: Callable[[], object] | None = None) -> None:
        """Returns when the barrier is not set, or was not at a moment since the call. While the sidecar or the ensemble is away, it waits
        anew.

        wait: the seconds to wait; None, without a limit; 0 only looks, once. on_waiting is called in the client's own thread when it is
        known that the barrier is set, and must not block. Raises WaitTimeoutError.
        """
        self._loop.run(self._client.await_barrier(name, wait=wait, on_waiting=on_waiting))

    def enter_barrier(self, name: str, size: int, **options: Unpack[BarrierOptions]) -> BarrierEntry:
        """Waits until as many callers as size, 1 to 1,000, stand at the double barrier, and enters it with them; see
        aio.Client.enter_barrier. Used as a context manager, the entry is left at its end, together with the others; or at once if the body
        fails."""
        return self._loop.run(self._enter_barrier(name, size, _chosen(aio.BarrierOptions, options)), BarrierEntry._undo)

    async def _enter_barrier(self, name: str, size: int, options: aio.BarrierOptions) -> BarrierEntry:
        return BarrierEntry(self._loop, await self._client.enter_barrier(name, size, **options))

    def campaign(self, election: str, candidate: str, **options: Unpack[CampaignOptions]) -> Leadership:
        """Waits for its turn to lead an election, and returns when the caller leads; see aio.Client.campaign. Used as a context manager,
        the caller resigns at its end."""
        return self._loop.run(self._campaign(election, candidate, _chosen(aio.CampaignOptions, options)), Leadership._undo)

    async def _campaign(self, election: str, candidate: str, options: aio.CampaignOptions) -> Leadership:
        return Leadership(self._loop, await self._client.campaign(election, candidate, **options))

    def get_election(self, name: str) -> ElectionView:
        """Returns who leads and who the other candidates are, in order."""
        return self._loop.run(self._client.get_election(name))

    def observe(self, name: str) -> Iterator[Observation]:
        """Yields who leads an election, at once and whenever that or the leader's value has changed; see aio.Client.observe."""
        return self._loop.iterate(self._client.observe(name))

    def transfer_leadership(self, name: str, to: str, *, reason: str = "", grace: float | None = None) -> None:
        """Asks the leader to yield to a candidate; see aio.Client.transfer_leadership."""
        self._loop.run(self._client.transfer_leadership(name, to, reason=reason, grace=grace))

    def sequence(self, name: str) -> Sequence:
        """Returns the sequence of that name, which need not exist."""
        return Sequence(self._loop, self._client.sequence(name))

    def join(
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
        """Makes the caller a member of a group, and returns when other callers can see it; see aio.Client.join."""
        return self._loop.run(self._join(group, member, lease, owner, metadata, on_conflict, wait), Membership._undo)

    async def _join(
        self,
        group: str,
        member: str,
        lease: Lease | None,
        owner: str,
        metadata: Mapping[str, str] | None,
        on_conflict: OnConflict,
        wait: float | None,
    ) -> Membership:
        joined = await self._client.join(
            group,
            member,
            lease=_of_loop(lease),
            owner=owner,
            metadata=metadata,
            on_conflict=on_conflict,
            wait=wait,
        )
        return Membership(self._loop, joined)

    @contextmanager
    def stay_joined(self, group: str, member: str, *, owner: str = "", metadata: Mapping[str, str] | None = None) -> Iterator[None]:
        """Stays a member of the group while the body of `with` runs, and joins again after its lease was lost; see
        aio.Client.stay_joined. The body begins when the caller is a member."""
        joined = threading.Event()

        async def begin() -> asyncio.Task[None]:
            work = self._client.stay_joined(group, member, owner=owner, metadata=metadata, on_joined=lambda _: joined.set())
            task = asyncio.create_task(work, name=f"sidekeeper: stay joined to {group}")
            task.add_done_callback(lambda _: joined.set())
            return task

        staying = self._loop.run(begin(), _end)
        try:
            joined.wait()
            if staying.done():
                staying.result()
            yield
        finally:
            if not self._loop.is_inherited():
                self._loop.run(_end(staying), goes_on=True)

    def get_group(self, group: str) -> GroupView:
        """Returns the members of the group."""
        return self._loop.run(self._client.get_group(group))

    def watch_group(self, group: str) -> Iterator[GroupView]:
        """Yields what get_group returns, at once and after every change, also across restarts of the sidecar."""
        return self._loop.iterate(self._client.watch_group(group))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


class _WithHeld(AbstractContextManager[S]):
    """Holds in the body of `with`. Several threads may enter one object: each acquires for itself, and leaves what it entered. A signal's
    handler may raise in any line of this, also before the first: then it is given up all the same, at the latest when this object goes."""

    def __init__(self, loop: _Loop, acquire: Callable[[], Coroutine[Any, Any, S]]) -> None:
        self._loop = loop
        self._acquire: Callable[[], Coroutine[Any, Any, S]] = acquire
        self._entered: list[tuple[object, S, _guard.Guard]] = []

    def __enter__(self) -> S:
        acquired: list[tuple[object, S, _guard.Guard]] = []
        try:
            held = self._loop.run(self._acquire_into(acquired, threading.current_thread()), _Held._undo)
            self._entered += acquired
            _guard.enter(acquired[0][2])
            return held
        except BaseException:
            _drop(acquired)
            raise

    async def _acquire_into(self, acquired: list[tuple[object, S, _guard.Guard]], thread: object) -> S:
        held = await self._acquire()
        acquired.append((thread, held, held._held._own_guard()))
        return held

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        entry = entry_of(self._entered, threading.current_thread())
        try:
            _, held, guard = entry
            _guard.leave(guard)
            lost = loss_met(held._held, error)
            held.__exit__(kind, error, trace)
        except BaseException:
            _drop([entry])
            raise
        finally:
            self._entered.remove(entry)
        if lost is not None:
            raise lost

    def __del__(self) -> None:
        _drop(vars(self).get("_entered", []))


def _drop(entered: list[tuple[object, S, _guard.Guard]]) -> None:
    for _, held, guard in entered:
        _guard.leave(guard)
        held._drop()
