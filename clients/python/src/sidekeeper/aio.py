"""The client for asyncio. Its objects belong to the event loop that they were made in."""

from __future__ import annotations

import asyncio
import inspect
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, NoReturn, Self, TypeVar, Unpack

import grpc

from sidekeeper import _barrier, _election, _held, _lease, _lock, _locks, _once, _permits, _schedule, _share, _standing, _transport
from sidekeeper._barrier import BarrierEntry, BarrierOptions
from sidekeeper._claim import notify
from sidekeeper._config import Commit, Config, ConfigView, Precondition, if_exists, if_missing, if_version
from sidekeeper._election import CampaignOptions, Leadership, Observer
from sidekeeper._errors import AlreadyDoneError, LostError, SidekeeperError, results
from sidekeeper._guard import CurrentToken, Ticket, Verification, guards, tickets, unguarded
from sidekeeper._held import Kind, Single, Streams, through_absence
from sidekeeper._lease import Lease, on_own
from sidekeeper._lock import Lock, LockOptions, WithAttempt, WithHeld, WithTick
from sidekeeper._locked import current_attempt_of_task as current_attempt
from sidekeeper._locked import current_lock_of_task as current_lock
from sidekeeper._locked import done_once_task as done_once
from sidekeeper._locked import locked_task as locked
from sidekeeper._locks import AllOptions, Locks, check_wanted
from sidekeeper._membership import Membership, joins_again
from sidekeeper._once import Attempt, OnceOptions
from sidekeeper._options import check, check_options
from sidekeeper._permits import Permits, PermitsOptions
from sidekeeper._schedule import Tick, WorkOptions
from sidekeeper._sequence import Sequence
from sidekeeper._share import Item, ShareOptions
from sidekeeper._standing import Claim
from sidekeeper._types import (
    Assignment,
    Contender,
    ElectionView,
    GroupView,
    LockView,
    Mode,
    Observation,
    OnConflict,
    Outcome,
    SemaphoreView,
    WantedLock,
    duration,
)
from sidekeeper.assignment.v1 import assignment_pb2_grpc
from sidekeeper.barrier.v1 import barrier_pb2, barrier_pb2_grpc
from sidekeeper.election.v1 import election_pb2, election_pb2_grpc
from sidekeeper.fencing.v1 import fencing_pb2, fencing_pb2_grpc
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lease.v1 import lease_pb2, lease_pb2_grpc
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc
from sidekeeper.membership.v1 import membership_pb2, membership_pb2_grpc
from sidekeeper.once.v1 import once_pb2_grpc
from sidekeeper.schedule.v1 import schedule_pb2_grpc
from sidekeeper.semaphore.v1 import semaphore_pb2, semaphore_pb2_grpc

__all__ = [
    "AllOptions",
    "Assignment",
    "Attempt",
    "BarrierEntry",
    "BarrierOptions",
    "CampaignOptions",
    "Claim",
    "Client",
    "Commit",
    "Config",
    "ConfigView",
    "CurrentToken",
    "Item",
    "Leadership",
    "Lease",
    "Lock",
    "LockOptions",
    "Locks",
    "Membership",
    "OnceOptions",
    "Outcome",
    "Permits",
    "PermitsOptions",
    "Precondition",
    "Sequence",
    "ShareOptions",
    "Tick",
    "Ticket",
    "Verification",
    "WantedLock",
    "WorkOptions",
    "current_attempt",
    "current_lock",
    "done_once",
    "if_exists",
    "if_missing",
    "if_version",
    "locked",
    "tickets",
    "unguarded",
]

T = TypeVar("T")


class Client:
    """A client of one sidecar, for one event loop. Close it: that gives up everything that it holds and waits for.

    target: `unix:///path`, a path, or `host:port`; None, the value of SIDEKEEPER_ADDRESS, or if that is not set,
        `unix:///run/sidekeeper/sidekeeper.sock`.
    credentials: for TLS, from `grpc.ssl_channel_credentials`. Required unless the address is a Unix socket or loopback.

    Raises ValueError if the address is invalid, and TypeError if it is no str. It does not wait for a connection; the first call does. A
    forked child cannot use it, and raises ForkedError: close it before a fork, and make it after one.
    """

    def __init__(self, target: str | None = None, *, credentials: grpc.ChannelCredentials | None = None) -> None:
        check(target=target, credentials=credentials)
        self._channel = _transport.open_channel(target, credentials)
        self._locks: Any = lock_pb2_grpc.LockServiceStub(self._channel)
        self._groups: Any = membership_pb2_grpc.MembershipServiceStub(self._channel)
        self._semaphores: Any = semaphore_pb2_grpc.SemaphoreServiceStub(self._channel)
        self._barriers: Any = barrier_pb2_grpc.BarrierServiceStub(self._channel)
        self._fencing: Any = fencing_pb2_grpc.FencingServiceStub(self._channel)
        self._streams = Streams()
        self._lock = _lock.kind(self._streams, self._locks)
        self._several = _locks.kind(self._lock, self._locks)
        self._elections: Any = election_pb2_grpc.ElectionServiceStub(self._channel)
        self._leadership = _election.kind(self._streams, self._elections)
        self._permit = _permits.kind(self._streams, self._semaphores)
        self._works: Any = once_pb2_grpc.OnceServiceStub(self._channel)
        self._attempt = _once.kind(self._streams, self._locks, self._works.Begin, "begun")
        self._schedules: Any = schedule_pb2_grpc.ScheduleServiceStub(self._channel)
        self._tick = _once.kind(self._streams, self._locks, self._schedules.Work, "fire")
        self._assignments: Any = assignment_pb2_grpc.AssignmentServiceStub(self._channel)
        self._share = Kind(self._streams, lambda request: Single(self._assignments.Join, request), "joined")
        self._entry = _barrier.kind(self._streams, self._barriers)
        self._leases = _lease.leases(self._streams, lease_pb2_grpc.LeaseServiceStub(self._channel), self._channel.on_socket)
        self._member = Kind(self._streams, lambda request: Single(self._groups.Join, request), "joined")
        self.config = Config(self._channel, self._streams)
        """The configuration."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives up everything that this client holds and waits for. Calling it again does nothing, nor does it in a forked child."""
        if not self._channel.is_inherited():
            await self._streams.close(self._channel)

    async def open_lease(
        self, *, ttl: float | None = None, owner: str = "", metadata: Mapping[str, str] | None = None, wait: float | None = None
    ) -> Lease:
        """Opens a lease. ttl: the session timeout in seconds after which the ensemble expires it if it hears nothing; None, the
        sidecar's default. wait: the seconds to wait for a sidecar or an ensemble that is away; None, 10 seconds; 0 tries once."""
        check(ttl=ttl, owner=owner, metadata=metadata, wait=wait)
        request = lease_pb2.OpenRequest(ttl=duration(ttl), owner=owner, metadata=metadata)

        async def attempt(this: _held.Attempt) -> Lease:
            return await Lease(self._leases)._open(request, this)

        return await _transport.answered(self._bound(wait), through_absence(self._streams, wait, None, attempt))

    def _bound(self, wait: float | None) -> float | None:
        """What a call may take; a forked child has no loop, and is refused at once."""
        return None if self._channel.is_inherited() else wait

    async def acquire(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """Waits in the queue of the lock and returns when the lock is granted and valid.

        Raises LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors, such as
        LeaseLostError if it was granted and lost before this could return. Cancel it to give up the place in the queue.

        While the sidecar or the ensemble is away, it tries again, at the queue's end, for as long as wait says; without wait, for 10
        seconds each time.
        """
        check(name=name)
        check_options(LockOptions, options)
        leases = self._leases if self._channel.on_socket else None
        return await _transport.answered(self._bound(options.get("wait")), _lock.acquire(self._lock, leases, name, options))

    def lock(
        self, name: str, *, suspension_grace: float | None = None, **options: Unpack[LockOptions]
    ) -> AbstractAsyncContextManager[Lock]:
        """Holds the lock in the body of `async with`, and releases it.

        The body is cancelled, and LostError raised, as soon as the lock is lost; with suspension_grace also, with SuspendedError,
        when it has been suspended for that many seconds. What the body, and a task that it begins, writes with this client is written only
        while the lock is held (see `Lock.guard`); `unguarded` makes it not so.
        """
        check(name=name)
        check_options(LockOptions, options, suspension_grace=suspension_grace)
        return WithHeld(lambda: self.acquire(name, **options), suspension_grace)

    async def acquire_all(self, *locks: str | WantedLock, **options: Unpack[AllOptions]) -> Locks:
        """Waits until it is the caller's turn for each of 1 to 16 locks, and returns when all are granted and valid, as one hold.

        It takes its places in all queues at the same moment: callers that take what they need with one acquire_all never wait for each
        other in a circle, whatever the order of the names. Errors, and what happens while the sidecar or the ensemble is away, as of
        acquire. Cancel it to give up all places.
        """
        check_wanted(locks, options)
        leases = self._leases if self._channel.on_socket else None
        return await _transport.answered(self._bound(options.get("wait")), _locks.acquire(self._several, leases, locks, options))

    def locks(
        self, *locks: str | WantedLock, suspension_grace: float | None = None, **options: Unpack[AllOptions]
    ) -> AbstractAsyncContextManager[Locks]:
        """Holds several locks, acquired at once, in the body of `async with`, and releases them. The body is cancelled, and LostError
        raised, as soon as they are lost; suspension_grace, and what the body writes, are as in lock."""
        check_wanted(locks, options, suspension_grace=suspension_grace)
        return WithHeld(lambda: self.acquire_all(*locks, **options), suspension_grace)

    async def claim(
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
        """Waits for its turn, and holds the lock without a process for so many seconds, 60 to 30 days, unless it is extended. Closing the
        client does not end it.

        reason: why, for people. claim_id: `secrets.token_hex(16)`, stored before the call: with the same id, the same claim answers again,
        whatever became of an earlier call. None, a new one; if there is no answer then, the claim is released as well as can be. wait: as
        in acquire, but None has no limit for a sidecar that is away, either.

        Raises LockHeldError, WaitTimeoutError, ClaimEndedError, ClaimLimitError and other SidekeeperErrors.
        """
        check(name=name, reserve_for=reserve_for, reason=reason, claim_id=claim_id, wait=wait, owner=owner, metadata=metadata, mode=mode)
        request = lock_pb2.ClaimRequest(
            name=name,
            claim_id=secrets.token_hex(16) if claim_id is None else claim_id,
            mode=hold_pb2.Mode.Name(mode),
            reserve_for=duration(reserve_for),
            wait_timeout=duration(wait),
            owner=owner,
            metadata=metadata,
            reason=reason,
        )
        asked = _standing.claim(self._streams, self._locks, request, wait, claim_id is None)
        return Claim(self._locks, await _transport.answered(self._bound(wait), asked))

    def claim_by_id(self, claim_id: str) -> Claim:
        """The claim with this id, to extend, check or release it. It makes no call."""
        check(claim_id=claim_id)
        return Claim(self._locks, _standing.Facts(claim_id))

    async def run_while_leader(self, name: str, body: Callable[[Lock], Awaitable[T]], **options: Unpack[LockOptions]) -> T:
        """Runs body while holding the lock and returns its result. When the lock is lost, body is cancelled, and run again after
        the next grant."""
        check(body=body)
        backoff = _transport.Backoff()
        while True:
            lock: Lock | None = None
            try:
                with results() as done:
                    async with self.lock(name, **options) as lock:
                        backoff.reset()
                        result = await body(lock)
                        done.append(result)
                        return result
            except (LostError, SidekeeperError) as error:
                if not _lock.leads_again(error, name, lock is not None, options.get("lease")):
                    raise
            await asyncio.sleep(backoff.next())

    async def begin(self, name: str, key: str, **options: Unpack[OnceOptions]) -> Attempt:
        """Waits for its turn at the work of a key, and returns when the work is the caller's for some time to come, and its attempt is
        recorded. Finish the attempt. Used as a context manager, it is finished as its body ends; see `attempt`.

        Raises AlreadyDoneError, NotRepeatedError, LockHeldError, WaitTimeoutError, TooManyKeysError, EnsembleUnreachableError and other
        SidekeeperErrors. Cancel it to give up the place in the queue. While the sidecar or the ensemble is away, it tries again as acquire
        does.
        """
        check(name=name, key=key)
        check_options(OnceOptions, options)
        begun = _once.begin(self._attempt, self._leases, self._works, name, key, options)
        return await _transport.answered(self._bound(options.get("wait")), begun)

    def attempt(self, name: str, key: str, **options: Unpack[OnceOptions]) -> AbstractAsyncContextManager[Attempt]:
        """Begins an attempt at the work of a key, and finishes it as the body of `async with` ends: SUCCEEDED, or FAILED with what it
        raises. Errors as of begin and of Attempt.finish.

        The body is cancelled, and LostError raised, as soon as the lock is lost. Such an attempt is lost and has not failed; so is one
        whose body raises LostError or GuardLostError, or an error from one of them. If a body has ended without an error, its success
        is recorded, even if the lock was lost. What the body writes with this client is guarded by the attempt (see `Attempt.guard`).
        """
        check(name=name, key=key)
        check_options(OnceOptions, options)
        return WithAttempt(lambda: self.begin(name, key, **options), None)

    async def once(self, name: str, key: str, work: Callable[[Attempt], object], **options: Unpack[OnceOptions]) -> bool:
        """Has work done once for a key, as the body of `attempt` is, and says whether it was done in this call. If it was done before, it
        returns False. It does not promise that work runs exactly once: if this process dies within it, another caller begins it again.

        What work returns is awaited if it can be. Work that returns a generator has not run: the attempt has failed, with TypeError."""
        check(work=work)
        async with AsyncExitStack() as stack:
            try:
                attempt = await stack.enter_async_context(self.attempt(name, key, **options))
            except AlreadyDoneError:
                return False
            result = work(attempt)
            _once.ran(await result if inspect.isawaitable(result) else result)
        return True

    def work(self, name: str, **options: Unpack[WorkOptions]) -> WithTick:
        """Waits for the next tick of a schedule, or for a run, until it is the caller's for some time to come, and its attempt is recorded.
        Call it again for the tick after that. `async with` finishes the tick as its body ends: SUCCEEDED, or FAILED with what that raises.
        Awaited, it returns a tick to finish or to release.

        Raises ScheduleNotFoundError, ClocksDisagreeError, LockHeldError, WaitTimeoutError, EnsembleUnreachableError and other
        SidekeeperErrors. Cancel it to give up the place in the queue. While the sidecar or the ensemble is away, it tries again as acquire
        does. The body is cancelled and guarded, and counts as lost, as that of `attempt`. A lost tick begins again, on another machine if
        one waits.
        """
        check(name=name)
        check_options(WorkOptions, options)

        async def take() -> Tick:
            work = _schedule.work(self._tick, self._leases, self._schedules, name, options)
            return await _transport.answered(self._bound(options.get("wait")), work)

        return WithTick(take, None)

    async def share(self, name: str, handler: Callable[[Item], Awaitable[object]], **options: Unpack[ShareOptions]) -> NoReturn:
        """Works on the caller's part of the items of a set until it is cancelled. The members of the set divide the items among themselves.

        For each item of the caller, handler runs in a task of its own while the item's lock is held. What it writes with this client is
        guarded by the lock. It is cancelled when the item moves to another member, when the lock is lost or its release is asked for, and
        at the end. The lock is released when the handler has ended, however long that takes. A handler that ends earlier, or fails, is
        run again after 1 second, then 2, up to a minute.

        When the membership is lost, and the lease is not given, the caller joins again after such a pause. Raises AssignmentNotFoundError,
        InvalidFieldError and PolicyDeniedError, and with a given lease LostError, after all handlers have ended.
        """
        check(name=name, handler=handler)
        check_options(ShareOptions, options)
        member = options.get("member") or socket.gethostname()
        await _share.Work(self, self._share, self._lock, self._assignments, name, member, handler, options).run()

    async def get_lock(self, name: str) -> LockView:
        """Returns the holders and waiters of the lock."""
        check(name=name)
        reply = await _transport.call_idempotent(self._locks.Get, lock_pb2.GetRequest(name=name))
        return LockView._of(reply.view)

    def watch_lock(self, name: str) -> AsyncGenerator[LockView]:
        """Yields what get_lock returns, at once and after every change, also across restarts of the sidecar. Until the sidecar and the
        ensemble are back, the last view is stale, and is yielded again as such."""
        check(name=name)
        return _transport.views(self._locks.Watch, lock_pb2.WatchRequest(name=name), LockView._of)

    async def watch_leader(self, name: str) -> AsyncGenerator[Contender | None]:
        """Yields the first holder of the lock, None if it is free, at once and after every change. It does not say when that may be out of
        date; observe does."""
        seen: list[Contender | None] = []
        async for view in self.watch_lock(name):
            if view.stale:
                continue
            leader = view.holders[0] if view.holders else None
            token = leader.fencing_token if leader else None
            if not seen or token != (seen[0].fencing_token if seen[0] else None):
                seen = [leader]
                yield leader

    async def verify(self, ticket: Ticket) -> Verification:
        """Says whether the ticket's hold lasts, for a program that protects something stored elsewhere. The hold may have ended since: a
        resource that can compare tokens should refuse all but the largest that it has seen."""
        asked = hold_pb2.Ticket(lock=ticket.lock, fencing_token=ticket.fencing_token)
        reply = await _transport.call_idempotent(self._fencing.Verify, fencing_pb2.VerifyRequest(ticket=asked))
        return Verification(reply.held, reply.current_token)

    async def watch_tokens(self, *locks: str) -> AsyncGenerator[CurrentToken]:
        """Yields what 1 to 100 locks are held with: each as soon as it is known, and again after every change. Of one lock no smaller token
        comes after a larger one, until it ends: with a SidekeeperError, also when the sidecar is away. What it yielded is stale then."""
        for lock in locks:
            check(name=lock)
        async for message in _transport.messages(self._fencing.Watch, fencing_pb2.WatchRequest(locks=locks)):
            for of in message.tokens:
                yield CurrentToken(of.lock, of.fencing_token, of.stale)

    async def revoke(self, name: str, *, reason: str = "", grace: float | None = None) -> int:
        """Asks every holder of the lock to release it, and returns how many were asked. With a grace in seconds, their holds are ended
        by force when it has passed: for operators."""
        check(name=name, reason=reason, grace=grace)
        request = lock_pb2.RevokeRequest(name=name, reason=reason, grace=duration(grace))
        reply = await _transport.call_idempotent(self._locks.Revoke, request)
        return int(reply.asked)

    async def acquire_permits(self, semaphore: str, **options: Unpack[PermitsOptions]) -> Permits:
        """Waits for permits of a semaphore, and returns when they are granted and valid.

        Raises SemaphoreFullError, TooManyPermitsError, WaitTimeoutError, SemaphoreNotFoundError, EnsembleUnreachableError and other
        SidekeeperErrors. Cancel it to give up the place in the queue. While the sidecar or the ensemble is away, it tries again as acquire
        does.
        """
        check(semaphore=semaphore)
        check_options(PermitsOptions, options)
        acquired = _permits.acquire(self._permit, self._leases, semaphore, options)
        return await _transport.answered(self._bound(options.get("wait")), acquired)

    def permits(
        self, semaphore: str, *, suspension_grace: float | None = None, **options: Unpack[PermitsOptions]
    ) -> AbstractAsyncContextManager[Permits]:
        """Holds permits in the body of `async with`, and releases them. The body is cancelled, and LostError raised, as soon as they are
        lost; with suspension_grace as in lock."""
        check(semaphore=semaphore)
        check_options(PermitsOptions, options, suspension_grace=suspension_grace)
        return WithHeld(lambda: self.acquire_permits(semaphore, **options), suspension_grace)

    async def create_semaphore(self, name: str, limit: int) -> None:
        """Makes a semaphore with so many permits, 1 to 10,000. Making it again does nothing. Raises SemaphoreExistsError if it has another
        limit."""
        check(name=name, limit=limit)
        request = semaphore_pb2.CreateRequest(name=name, limit=limit)
        await _transport.call_idempotent(self._semaphores.Create, request)

    async def resize_semaphore(self, name: str, limit: int, *, reason: str = "", grace: float | None = None) -> int:
        """Sets how many permits there are, and returns of how many too many the holders were asked: those with a number beyond it
        first, then those granted last. With a grace in seconds, their holds are ended by force when it has passed: for operators."""
        check(name=name, limit=limit, reason=reason, grace=grace)
        request = semaphore_pb2.ResizeRequest(name=name, limit=limit, reason=reason, grace=duration(grace))
        reply = await _transport.call_idempotent(self._semaphores.Resize, request)
        return int(reply.asked)

    async def get_semaphore(self, name: str) -> SemaphoreView:
        """Returns the limit, the holders, the waiters and the numbers in quarantine. Raises SemaphoreNotFoundError."""
        check(name=name)
        reply = await _transport.call_idempotent(self._semaphores.Get, semaphore_pb2.GetRequest(name=name))
        return SemaphoreView._of(reply.view)

    def watch_semaphore(self, name: str) -> AsyncGenerator[SemaphoreView]:
        """Yields what get_semaphore returns, at once and after every change, also across restarts of the sidecar. Stale as in
        watch_lock."""
        check(name=name)
        return _transport.views(self._semaphores.Watch, semaphore_pb2.WatchRequest(name=name), SemaphoreView._of)

    async def set_barrier(self, name: str) -> None:
        """Sets a barrier, at which await_barrier waits until it is removed. Setting it again does nothing."""
        check(name=name)
        await _transport.call_idempotent(self._barriers.Set, barrier_pb2.SetRequest(name=name))

    async def remove_barrier(self, name: str) -> None:
        """Removes a barrier: the callers that wait at it go on. Removing one that is not set does nothing."""
        check(name=name)
        await _transport.call_non_idempotent(self._barriers.Remove, barrier_pb2.RemoveRequest(name=name))

    async def await_barrier(self, name: str, *, wait: float | None = None, on_waiting: Callable[[], object] | None = None) -> None:
        """Returns when the barrier is not set, or was not at a moment since the call. While the sidecar or the ensemble is away, it waits
        anew.

        wait: the seconds to wait; None, without a limit; 0 only looks, once. on_waiting is called when it is known that the barrier is
        set, and must not block. Raises WaitTimeoutError. Cancel it to wait no longer.
        """
        check(name=name, wait=wait, on_waiting=on_waiting)
        await _barrier.pass_barrier(self._barriers, name, self._bound(wait), on_waiting)

    async def enter_barrier(self, name: str, size: int, **options: Unpack[BarrierOptions]) -> BarrierEntry:
        """Waits until as many callers as size, 1 to 1,000, stand at the double barrier, and enters it with them. Used as a context manager,
        the entry is left at its end, together with the others; or at once if the body fails.

        Raises WaitTimeoutError, AlreadyContendingError, EnsembleUnreachableError and other SidekeeperErrors. Cancel it to go away from the
        barrier. While the sidecar or the ensemble is away, it tries again as acquire does.
        """
        check(name=name, size=size)
        check_options(BarrierOptions, options)
        entered = _barrier.enter(self._entry, self._leases, self._barriers, name, size, options)
        return await _transport.answered(self._bound(options.get("wait")), entered)

    async def campaign(self, election: str, candidate: str, **options: Unpack[CampaignOptions]) -> Leadership:
        """Waits for its turn to lead an election, and returns when the caller leads, for some time to come. The candidate's name is 1 to
        128 bytes, another one for each.

        Raises LockHeldError, WaitTimeoutError, LockKindMismatchError, EnsembleUnreachableError and other SidekeeperErrors. Cancel it to
        give up the candidacy. While the sidecar or the ensemble is away, it tries again as acquire does.
        """
        check(election=election, candidate=candidate)
        check_options(CampaignOptions, options)
        campaigned = _election.campaign(self._leadership, self._leases, self._elections, election, candidate, options)
        return await _transport.answered(self._bound(options.get("wait")), campaigned)

    def leadership(
        self, election: str, candidate: str, *, suspension_grace: float | None = None, **options: Unpack[CampaignOptions]
    ) -> AbstractAsyncContextManager[Leadership]:
        """Leads in the body of `async with`, and resigns. The body is cancelled, and LostError raised, as soon as leadership is lost; with
        suspension_grace as in lock. What the body writes with this client is guarded by the term."""
        check(election=election, candidate=candidate)
        check_options(CampaignOptions, options, suspension_grace=suspension_grace)
        return WithHeld(lambda: self.campaign(election, candidate, **options), suspension_grace)

    async def get_election(self, name: str) -> ElectionView:
        """Returns who leads and who the other candidates are, in order."""
        check(name=name)
        return ElectionView._of(await _transport.call_idempotent(self._elections.Get, election_pb2.GetRequest(name=name)))

    async def observe(self, name: str) -> AsyncGenerator[Observation]:
        """Yields who leads an election, at once and whenever that or the leader's value has changed, also across restarts of the sidecar:
        until it is back, what was yielded is stale. After a term, it never yields an earlier one."""
        check(name=name)
        observer = Observer()
        async for message in _transport.reopened(self._elections.Watch, election_pb2.WatchRequest(name=name)):
            if (observed := observer.learn(None if isinstance(message, _transport.Away) else message)) is not None:
                yield observed

    async def transfer_leadership(self, name: str, to: str, *, reason: str = "", grace: float | None = None) -> None:
        """Asks the leader to yield to a candidate, after the candidates ahead of that one have stepped back. With a grace in seconds, its
        term is ended by force when it has passed: for operators. Raises CandidateNotFoundError, ForeignCandidateError."""
        check(name=name, to=to, reason=reason, grace=grace)
        request = election_pb2.TransferRequest(name=name, to=to, reason=reason, grace=duration(grace))
        await _transport.call_idempotent(self._elections.Transfer, request)

    def sequence(self, name: str) -> Sequence:
        """Returns the sequence of that name, which need not exist."""
        check(name=name)
        return Sequence(self._channel, self._streams, name)

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
        """Makes the caller a member of a group, and returns when other callers can see it.

        lease: the lease of the membership; None, one of its own that ends with it. wait: the seconds to wait for a sidecar or an
        ensemble that is away and, with WAIT and REPLACE, for the name; None, 10 seconds each time for what is away, and without a limit
        for the name; 0 tries once. In the body of `lock` it joins only while the lock is held, and stays a member after that (see
        `Lock.guard`). Raises MemberExistsError, WaitTimeoutError, GuardLostError, EnsembleUnreachableError.
        """
        check(group=group, member=member, lease=lease, owner=owner, metadata=metadata, on_conflict=on_conflict, wait=wait)
        waits = on_conflict is not OnConflict.REJECT

        async def attempt(this: _held.Attempt) -> Membership:
            async def begin(on: Lease) -> Membership:
                request = membership_pb2.JoinRequest(
                    group=group,
                    member=member,
                    metadata=metadata,
                    owner=owner,
                    lease_id=on.id,
                    on_conflict=membership_pb2.OnConflict.Name(on_conflict),
                    wait_timeout=duration(this.wait) if waits else None,
                    guards=guards(self._streams),
                )
                return await Membership(self._member, self._groups, group, member, on, owns_lease=lease is None)._open(request, this)

            return await (begin(lease) if lease is not None else on_own(self._leases, this, owner, None, begin))

        return await _transport.answered(self._bound(wait), through_absence(self._streams, wait, lease, attempt))

    async def stay_joined(
        self,
        group: str,
        member: str,
        *,
        owner: str = "",
        metadata: Mapping[str, str] | None = None,
        on_joined: Callable[[Membership], object] | None = None,
    ) -> None:
        """Stays a member of the group until cancelled, and joins again after its lease was lost. It waits for a previous member of its
        name to go. Raises LostError if it was replaced or removed."""
        check(on_joined=on_joined)
        backoff = _transport.Backoff()
        while True:
            try:
                membership = await self.join(group, member, owner=owner, metadata=metadata, on_conflict=OnConflict.WAIT)
                async with membership:
                    backoff.reset()
                    notify(on_joined, membership)
                    await membership.wait_ended()
            except (LostError, SidekeeperError) as error:
                if not joins_again(error, self._streams.closed):
                    raise
            await asyncio.sleep(backoff.next())

    async def get_group(self, group: str) -> GroupView:
        """Returns the members of the group."""
        check(group=group)
        reply = await _transport.call_idempotent(self._groups.Get, membership_pb2.GetRequest(group=group))
        return GroupView._of(reply.view)

    def watch_group(self, group: str) -> AsyncGenerator[GroupView]:
        """Yields what get_group returns, at once and after every change, also across restarts of the sidecar. Stale as in watch_lock."""
        check(group=group)
        return _transport.views(self._groups.Watch, membership_pb2.WatchRequest(group=group), GroupView._of)
