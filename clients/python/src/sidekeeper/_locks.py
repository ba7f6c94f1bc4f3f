"""Several locks at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sidekeeper import _guard
from sidekeeper._claim import notify
from sidekeeper._held import Attempt, Kind, Single
from sidekeeper._lease import Lease, Leases
from sidekeeper._onlease import OnLease, on_lease
from sidekeeper._options import check, check_options
from sidekeeper._types import CommonAllOptions, Mode, Revocation, Token, WantedLock, duration, seconds
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lock.v1 import lock_pb2


class AllOptions(CommonAllOptions, total=False):
    """How to acquire several locks. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to hold the locks with, of the same client; None, one of their own that ends with them."""


class Locks(OnLease):
    """Several locks that are held as one hold: what ends one ends all. Release them, even after they were lost."""

    def __init__(self, kind: Kind, wanted: tuple[WantedLock, ...], options: AllOptions, own: Lease | None) -> None:
        self.names = tuple(lock.name for lock in wanted)
        """The names of the locks, as they were asked for."""
        super().__init__(kind, "acquire_all", f"locks {', '.join(self.names)}", options.get("lease"), own)
        self.hold_id = ""
        """Names the one hold in calls made without this package: 32 hexadecimal digits. It is a secret."""
        self.fencing_tokens: Mapping[str, Token] = {}
        """Of each lock, by its name; see Lock.fencing_token."""
        self.revocation: Revocation | None = None
        """The latest request to release any of the locks, which asks for all; None if there was none."""
        self._wanted = wanted
        self._options = options

    @property
    def fencing_token(self) -> Token:
        """That of the first lock, which tells this hold from others."""
        return self.fencing_tokens[self.names[0]]

    async def _acquire(self, attempt: Attempt) -> Locks:
        lease = self._options.get("lease")
        request = lock_pb2.AcquireAllRequest(
            locks=[lock_pb2.WantedLock(name=lock.name, mode=hold_pb2.Mode.Name(lock.mode)) for lock in self._wanted],
            lease_id=lease.id if lease else "",
            wait_timeout=duration(attempt.wait),
            owner=self._options.get("owner", ""),
            metadata=self._options.get("metadata"),
        )
        return await self._open(request, attempt)

    def _grant(self, granted: lock_pb2.AllGranted) -> str:
        self.hold_id = granted.hold_id
        self.fencing_tokens = {lock.name: Token(lock.fencing_token) for lock in granted.locks}
        return self.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "queued":
                notify(self._options.get("on_queued"), {lock.name: lock.position for lock in event.locks})
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))
            case "revocation_requested":
                self.revocation = Revocation._of(event)
                notify(self._options.get("on_revocation"), self.revocation)

    async def release(self) -> None:
        """Releases all of the locks. For the caller they end at once; when this returns, the next waiters can be granted them. Errors as of
        Lock.release."""
        await self._give_up()

    def tickets(self) -> tuple[_guard.Ticket, ...]:
        """What the holder hands on to others, who guard with them what they write; in the order of the names."""
        return tuple(_guard.Ticket(name, self.fencing_tokens[name]) for name in self.names)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guards with all of the locks what its client writes in the body of `with`; see Lock.guard."""
        with _guard.entered(self._own_guard()):
            yield

    def _own_guard(self) -> _guard.Guard:
        shared = {lock.name for lock in self._wanted if lock.mode == Mode.READ}
        return _guard.of_hold(self.hold_id, self._kind.streams, *(ticket for ticket in self.tickets() if ticket.lock not in shared))


def check_wanted(locks: tuple[object, ...], options: AllOptions, **more: object) -> None:
    """Checks what several locks are asked for with."""
    for lock in locks:
        check(lock=lock)
        if isinstance(lock, WantedLock):
            check(name=lock.name, mode=lock.mode)
    check_options(AllOptions, options, **more)


async def acquire(kind: Kind, leases: Leases | None, locks: tuple[str | WantedLock, ...], options: AllOptions) -> Locks:
    """Acquires several locks at once, as `_lock.acquire` does one."""
    wanted = tuple(WantedLock(lock) if isinstance(lock, str) else lock for lock in locks)

    async def take(own: Lease | None, attempt: Attempt) -> Locks:
        return await Locks(kind, wanted, options, own)._acquire(attempt)

    return await on_lease(kind, leases, options, options.get("owner", ""), take)


def kind(one: Kind, stub: Any) -> Kind:
    """How several locks are held: as one is, whose calls know the one hold of all."""
    return replace(one, open=lambda request: Single(stub.AcquireAll, request))
