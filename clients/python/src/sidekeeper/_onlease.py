"""What the stream of a lease carries, which may be a lease of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sidekeeper._errors import LostError, SidekeeperError, named
from sidekeeper._held import Attempt, HeldStream, Kind, through_absence
from sidekeeper._lease import Lease, Leases, carried
from sidekeeper.lease.v1 import lease_pb2


class OnLease(HeldStream):
    """A hold on a lease, which ends with the hold if it is the hold's own."""

    def __init__(self, kind: Kind, recipe: str, what: str, lease: Lease, own: bool) -> None:
        super().__init__(carried(kind, recipe, lease), what, lease)
        self._own_lease = lease if own else None

    async def _give_up_once(self) -> None:
        try:
            await super()._give_up_once()
        except (LostError, SidekeeperError):
            if self._own_lease is not None:
                await self._own_lease._abandon()
            raise
        if self._own_lease is not None:
            await self._own_lease.close()

    def check(self) -> None:
        """Raises LostError if what is held is not proven to be the caller's at this moment."""
        if (lost := self._claim.lost()) is not None:
            raise lost
        if not self.valid:
            raise LostError(self._claim.what, named("LEASE_LOST", "it was given up"))


H = TypeVar("H", bound=OnLease)


async def on_lease(
    kind: Kind, leases: Leases, given: Lease | None, owner: str, wait: float | None, take: Callable[[Lease, Attempt], Awaitable[H]]
) -> H:
    """Takes a hold on the lease given, or on one of its own, also from a sidecar that is away for a time."""
    if given is not None and given._kind.streams is not kind.streams:
        raise ValueError("the lease is another client's")

    async def attempt(this: Attempt) -> H:
        lease = given or await Lease(leases)._open(lease_pb2.OpenRequest(owner=owner), this)
        try:
            return await take(lease, this)
        except BaseException:
            if given is None:
                await lease._abandon()
            raise

    return await through_absence(kind.streams, wait, given, attempt)
