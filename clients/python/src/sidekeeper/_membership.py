"""Memberships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidekeeper import _transport
from sidekeeper._errors import ForkedError, LostError, MemberRemovedError, MemberReplacedError, SidekeeperError
from sidekeeper._guard import guards
from sidekeeper._held import HeldStream, Kind
from sidekeeper._lease import Lease, carried
from sidekeeper._options import check
from sidekeeper.membership.v1 import membership_pb2


class Membership(HeldStream):
    """The caller as a member of a group, valid for as long as its lease is. Leave the group, even after the membership was lost."""

    _lease: Lease

    def __init__(self, kind: Kind, stub: Any, group: str, member: str, lease: Lease, owns_lease: bool) -> None:
        super().__init__(carried(kind, "join", lease), f"member {group}/{member}", lease)
        self.group, self.member = group, member
        self.incarnation = 0
        """Distinguishes this member from all that have or had its name."""
        self._stub, self._owns_lease = stub, owns_lease

    def _grant(self, granted: membership_pb2.Joined) -> str:
        self.incarnation = granted.incarnation
        return str(self.incarnation)

    async def update(self, metadata: Mapping[str, str]) -> None:
        """Replaces the metadata that others see, at most 1 KiB in all; in the body of `Client.lock` only while the lock is held (see
        `Lock.guard`). Raises MemberNotFoundError, GuardLostError and other SidekeeperErrors."""
        check(metadata=metadata)
        request = membership_pb2.UpdateRequest(
            group=self.group,
            member=self.member,
            lease_id=self._lease.id,
            metadata=metadata,
            guards=guards(self._kind.streams),
        )
        await _transport.call_idempotent(self._stub.Update, request)

    async def leave(self) -> None:
        """Leaves the group. If the membership has a lease of its own, that is closed, which the sidecar confirms. Raises LostError if the
        membership was lost before. Calling it again has the same outcome."""
        await self._give_up()

    async def _give_up_once(self) -> None:
        lost = self.error
        await self._abandon()
        if self._owns_lease:
            try:
                await self._lease.close()
            except LostError:
                if lost is None:
                    raise
        if lost is not None:
            raise lost


def joins_again(error: Exception, closed: bool) -> bool:
    """Whether a member that is to stay joined should join again after an error."""
    if isinstance(error, LostError):
        return not closed and not isinstance(error.cause, MemberReplacedError | MemberRemovedError | ForkedError)
    return isinstance(error, SidekeeperError) and (_transport.is_transient(error) or _transport.was_lost(error))
