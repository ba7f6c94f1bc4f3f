"""What the stream of a lease carries, which may be a lease of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from sidekeeper._errors import LostError, named
from sidekeeper._held import Attempt, Kind, through_absence
from sidekeeper._lease import Lease, Leased, Leases, on_own


class OnLease(Leased):
    """A hold on a lease of the same client, or on one of its own."""

    def check(self) -> None:
        """Raises LostError if what is held is not proven to be the caller's at this moment."""
        if (lost := self._claim.lost()) is not None:
            raise lost
        if not self.valid:
            raise LostError(self._claim.what, named("LEASE_LOST", "it was given up"))


H = TypeVar("H", bound=OnLease)


async def on_lease(
    kind: Kind, leases: Leases | None, options: Mapping[str, Any], owner: str, take: Callable[[Lease | None, Attempt], Awaitable[H]]
) -> H:
    """Takes a hold on the lease of the options, or on one of its own, also from a sidecar that is away for a time. Without leases a hold
    that is given none has a call of its own."""
    given: Lease | None = options.get("lease")
    if given is not None and given._kind.streams is not kind.streams:
        raise ValueError("the lease is another client's")

    async def attempt(this: Attempt) -> H:
        async def begin(own: Lease | None) -> H:
            return await take(own, this)

        if given is not None or leases is None:
            return await begin(None)
        return await on_own(leases, this, owner, options.get("metadata"), begin)

    return await through_absence(kind.streams, options.get("wait"), given, attempt)
