"""Work shared out: the caller works on its part of the items of a set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import grpc

from sidekeeper import _transport
from sidekeeper._claim import log, notify
from sidekeeper._errors import AssignmentNotFoundError, ForkedError, GuardLostError, InvalidFieldError, LostError, SidekeeperError, named
from sidekeeper._held import Attempt, HeldStream, Kind, leave_body, through_absence
from sidekeeper._lease import Lease, carried
from sidekeeper._lock import Lock, LockOptions
from sidekeeper._types import Assignment, CommonShareOptions
from sidekeeper.assignment.v1 import assignment_pb2

DRAIN_TIMEOUT = 30.0
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class ShareOptions(CommonShareOptions, total=False):
    """How to share. The callbacks are called one at a time in the event loop: they must not block."""

    lease: Lease | None
    """The lease for the membership and the locks, of the same client; None, one of its own, and after its loss another one."""


class Item(Lock):
    """An item that its handler works on, and the hold of its lock. The lock is released when the handler has ended."""

    def __init__(self, kind: Kind, name: str, item: str, options: LockOptions) -> None:
        super().__init__(kind, f"{name}/{item}", options, None)
        self.set, self.item = name, item


@dataclass(frozen=True)
class Work:
    """What a caller of `share` does."""

    client: Any
    """Opens leases."""
    kind: Kind
    locks: Kind
    stub: Any
    name: str
    member: str
    handler: Callable[[Item], Awaitable[object]]
    options: ShareOptions

    async def run(self) -> NoReturn:
        """Works until it is cancelled, also across losses of its own lease."""
        pauses, given = Pauses(), self.options.get("lease")
        if given is not None and given._kind.streams is not self.kind.streams:
            raise ValueError("the lease is another client's")
        owner, metadata = self.options.get("owner", ""), self.options.get("metadata")
        while True:
            began = time.monotonic()
            try:
                if given is not None:
                    await self._take_part(given)
                async with await self.client.open_lease(owner=owner, metadata=metadata) as lease:
                    await self._take_part(lease)
            except (LostError, SidekeeperError) as error:
                if given is not None or not shares_again(error, self.kind.streams.closed):
                    raise
                self.tell_failure("", error)
            await asyncio.sleep(pauses.after(time.monotonic() - began))

    async def _take_part(self, lease: Lease) -> NoReturn:
        """Is a member until the task is cancelled or the membership is lost. All handlers have ended by then."""
        member = await through_absence(self.kind.streams, None, lease, lambda attempt: Member(self, lease).join(attempt))
        try:
            await member.wait_ended()
        except asyncio.CancelledError:
            await _patiently(member.leave(self.options.get("drain", False)), member.give_all_up)
            raise
        await _patiently(member.leave(drain=False), member.give_all_up)
        lost = member.error or LostError(member._claim.what, named("", "the sidecar ended the stream without a reason"))
        raise lost.cause if isinstance(lost.cause, AssignmentNotFoundError) else lost

    def tell_failure(self, item: str, error: BaseException) -> None:
        if (on_error := self.options.get("on_error")) is not None:
            notify(on_error, item, error)
        else:
            log.error("share %s: it begins again: %s", self.name, item or "the membership", exc_info=error)


class Member(HeldStream):
    """The caller as a member of the set. It has a worker for each of its items, until that worker has ended."""

    def __init__(self, work: Work, lease: Lease) -> None:
        super().__init__(carried(work.kind, "share", lease), f"member {work.name}/{work.member}", lease)
        self.work, self.lease = work, lease
        self._items: tuple[str, ...] = ()
        self._workers: dict[str, Worker] = {}
        self._leaves = False
        self._changed = asyncio.Event()
        self._claim.on_end(self.give_all_up)

    async def join(self, attempt: Attempt) -> Member:
        options = self.work.options
        about: dict[str, Any] = {key: options.get(key) for key in ("capacity", "owner", "metadata")}
        try:
            return await self._open(assignment_pb2.JoinRequest(set=self.work.name, member=self.work.member, **about), attempt)
        except InvalidFieldError as error:
            if "member" not in options and any(wrong.field == "member" for wrong in error.fields):
                raise ValueError(f"give a member: by default the host's name is it, and that cannot be: {error.message}") from error
            raise

    def _grant(self, joined: assignment_pb2.Joined) -> str:
        return str(joined.incarnation)

    def _notice(self, kind: str | None, event: Any) -> None:
        if kind == "assigned" and not self._leaves:
            self._assign(event.items)
            told = Assignment(event.epoch, tuple(event.items), event.members, event.total, event.unassigned)
            notify(self.work.options.get("on_assigned"), told)

    def _assign(self, items: Iterable[str]) -> None:
        """Stops the workers of all items but these, and begins one for each that has none. An item whose worker has not ended waits."""
        self._items = tuple(items)
        for item in self._workers.keys() - self._items:
            self._workers[item].stop()
        for item in self._items:
            if item not in self._workers:
                self._workers[item] = worker = Worker(self, item)
                worker.task.add_done_callback(partial(self._ended, item))
        self._changed.set()

    def _ended(self, item: str, _: object) -> None:
        del self._workers[item]
        self._assign(self._items)

    def give_all_up(self) -> None:
        """Tells all handlers to stop, for good."""
        self._leaves = True
        self._assign(())

    async def leave(self, drain: bool) -> None:
        """Leaves the set when all handlers have ended. To drain has all items move first, each as its handler ends."""
        if drain:
            request = assignment_pb2.SetCapacityRequest(set=self.work.name, member=self.work.member, capacity=0)
            try:
                async with asyncio.timeout(self.work.options.get("drain_timeout", DRAIN_TIMEOUT)):
                    await _transport.call_idempotent(self.work.stub.SetCapacity, request)
                    await self._until_idle()
            except (SidekeeperError, TimeoutError) as error:
                log.warning("%s: not all items have moved in time: %s", self._claim.what, error)
        self.give_all_up()
        await self._until_idle()
        await self._abandon()

    async def _until_idle(self) -> None:
        while self._items or self._workers:
            self._changed.clear()
            await self._changed.wait()


class Worker:
    """Takes an item's lock and runs the handler, again and again, until it is told to stop. It ends when the handler has ended."""

    def __init__(self, member: Member, item: str) -> None:
        self._work, self._lease, self._member, self._item = member.work, member.lease, member.work.member, item
        self._stops = False
        self._run: asyncio.Task[None] | None = None
        self.task = asyncio.create_task(self._work_on(), name=f"sidekeeper: item {self._work.name}/{item}")

    def stop(self) -> None:
        """Tells the handler to stop; what it has not begun yet is given up."""
        if not self._stops:
            self._stops = True
            (self._run or self.task).cancel()

    def _interrupt(self, *_: object) -> None:
        if self._run is not None:
            self._run.cancel()

    async def _work_on(self) -> None:
        pauses = Pauses()
        while not self._stops:
            lasted = 0.0
            try:
                item = await through_absence(self._work.kind.streams, None, self._lease, self._acquire)
                lasted = await self._handle(item)
            except SidekeeperError as error:
                if not self._lease._claim.over():
                    self._work.tell_failure(self._item, error)
            if not self._stops:
                await asyncio.sleep(pauses.after(lasted))

    async def _acquire(self, attempt: Attempt) -> Item:
        metadata = {**(self._work.options.get("metadata") or {}), "member": self._member}
        owner = self._work.options.get("owner", "")
        options: LockOptions = {"lease": self._lease, "owner": owner, "metadata": metadata, "on_revocation": self._interrupt}
        item = Item(self._work.locks, self._work.name, self._item, options)
        await item._acquire(attempt)
        return item

    async def _guarded(self, item: Item) -> None:
        with item.guard():
            await self._work.handler(item)

    async def _handle(self, item: Item) -> float:
        """Runs the handler while the lock is held, and returns for how many seconds. It ends before the lock is released."""
        began = time.monotonic()
        self._run = run = asyncio.create_task(self._guarded(item), name=f"sidekeeper: handler of {item.name}")
        item._claim.on_end(self._interrupt)
        if item.revocation is not None:
            self._interrupt()
        await asyncio.wait([run])
        lasted = time.monotonic() - began
        await leave_body(item.release, strictly=False)
        self._run = None
        failed = None if run.cancelled() else run.exception()
        if failed is not None and not (item.error is not None and isinstance(failed, LostError | GuardLostError)):
            self._work.tell_failure(self._item, failed)
        return lasted


class Pauses:
    """The pauses between runs: each twice as long as the one before, and the shortest after a run as long as the longest."""

    _next = SHORTEST_PAUSE

    def after(self, lasted: float) -> float:
        pause = SHORTEST_PAUSE if lasted >= LONGEST_PAUSE else self._next
        self._next = min(2 * pause, LONGEST_PAUSE)
        return pause


async def _patiently(work: Coroutine[Any, Any, None], hurry: Callable[[], None]) -> None:
    """Waits for work to end, however often the task is cancelled meanwhile."""
    doing = asyncio.create_task(work)
    cancelled = False
    while not doing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([doing])
            break
        cancelled = True
        hurry()
    doing.result()
    if cancelled:
        raise asyncio.CancelledError


def shares_again(error: LostError | SidekeeperError, closed: bool) -> bool:
    """Whether a caller should join anew, with another lease, after an error."""
    if isinstance(error, LostError):
        return not closed and not isinstance(error.cause, ForkedError)
    exhausted = error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    return not closed and (exhausted or _transport.is_transient(error) or _transport.was_lost(error))
