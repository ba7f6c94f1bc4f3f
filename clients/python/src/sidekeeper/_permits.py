"""Permits of semaphores."""

from __future__ import annotations

from typing import Any

from sidekeeper import _transport, _types
from sidekeeper._claim import notify
from sidekeeper._held import GIVE_UP_TIMEOUT, Attempt, Kind, Single, Streams
from sidekeeper._lease import Lease, Leases
from sidekeeper._onlease import OnLease, on_lease
from sidekeeper._types import CommonPermitsOptions, Revocation, duration, seconds
from sidekeeper.semaphore.v1 import semaphore_pb2


class PermitsOptions(CommonPermitsOptions, total=False):
    """How to acquire permits. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to hold the permits with, of the same client; None, one of their own that ends with them."""


class Permits(OnLease):
    """What the caller holds of a semaphore. Release it, even after it was lost."""

    def __init__(self, kind: Kind, semaphore: str, options: PermitsOptions, own: Lease | None) -> None:
        super().__init__(kind, "acquire_permits", f"permits of {semaphore}", options.get("lease"), own)
        self.semaphore = semaphore
        self.token = 0
        """Tells these permits from all others of the semaphore. It is no fencing token: others hold permits at the same time."""
        self.number: int | None = None
        """The number that the permit bears, from 0 to the semaphore's limit - 1; None without `numbered`. No other caller has it while the
        permit is valid: ask `valid` before each use. Do not keep it after the loss."""
        self.revocation: Revocation | None = None
        """The latest request to release the permits; None if there was none."""
        self._options = options

    async def _acquire(self, attempt: Attempt) -> Permits:
        request = semaphore_pb2.AcquireRequest(
            name=self.semaphore,
            permits=self._options.get("permits", 1),
            wait_timeout=duration(attempt.wait),
            owner=self._options.get("owner", ""),
            metadata=self._options.get("metadata"),
            numbered=self._options.get("numbered", False),
            quarantine=duration(self._options.get("quarantine")),
        )
        return await self._open(request, attempt)

    def _grant(self, granted: semaphore_pb2.Granted) -> str:
        self.token, self.number = granted.token, _types.number_of(granted)
        return granted.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "queued":
                notify(self._options.get("on_queued"), event.position)
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))
            case "revocation_requested":
                self.revocation = Revocation._of(event)
                notify(self._options.get("on_revocation"), self.revocation)

    async def release(self) -> None:
        """Releases all of the permits. For the caller they end at once; when this returns, others can be granted them. Errors as of
        Lock.release."""
        await self._give_up()


async def acquire(kind: Kind, leases: Leases, semaphore: str, options: PermitsOptions) -> Permits:
    """Acquires permits, also from a sidecar that is away for a time."""

    async def take(own: Lease | None, attempt: Attempt) -> Permits:
        return await Permits(kind, semaphore, options, own)._acquire(attempt)

    return await on_lease(kind, leases, options, options.get("owner", ""), take)


def kind(streams: Streams, stub: Any) -> Kind:
    async def release(hold_id: str) -> None:
        await _transport.call(stub.Release, semaphore_pb2.ReleaseRequest(hold_id=hold_id), GIVE_UP_TIMEOUT)

    return Kind(streams, lambda request: Single(stub.Acquire, request), "granted", give_up=release, acknowledged=True)
