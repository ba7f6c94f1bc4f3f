"""Work at the ticks of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sidekeeper import _held
from sidekeeper._lease import Lease, Leases
from sidekeeper._once import Recorded
from sidekeeper._onlease import on_lease
from sidekeeper._types import CommonWorkOptions, duration
from sidekeeper.schedule.v1 import schedule_pb2


class WorkOptions(CommonWorkOptions, total=False):
    """How to work for a schedule. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with, of the same client; None, one of its own that ends with the attempt."""


class Tick(Recorded):
    """The caller's attempt at a tick of a schedule, or at a run. Finish it, or release it: then it counts as lost."""

    _finish_request = schedule_pb2.FinishRequest

    def __init__(self, kind: _held.Kind, stub: Any, name: str, options: WorkOptions, own: Lease | None) -> None:
        super().__init__(kind, "work", f"schedule {name}", stub, name, options, own)
        self.name = name
        """Of the schedule."""
        self.at = datetime.fromtimestamp(0, UTC)
        """When the tick was due, in UTC: the same for all attempts. Of a run, when it was asked for."""
        self.run_id = ""
        """Of a run, its id. Empty for a tick."""

    async def _begin(self, attempt: _held.Attempt) -> Tick:
        options = self._options
        request = schedule_pb2.WorkRequest(
            name=self.name, wait_timeout=duration(attempt.wait), owner=options.get("owner", ""), metadata=options.get("metadata")
        )
        return await self._open(request, attempt)

    def _grant(self, begun: schedule_pb2.Fire) -> str:
        self.at, self.run_id = begun.tick.ToDatetime(UTC), begun.run_id
        return super()._grant(begun)


async def work(kind: _held.Kind, leases: Leases, stub: Any, name: str, options: WorkOptions) -> Tick:
    """Waits for a tick, also with a sidecar that is away for a time."""

    async def take(own: Lease | None, attempt: _held.Attempt) -> Tick:
        return await Tick(kind, stub, name, options, own)._begin(attempt)

    return await on_lease(kind, leases, options, options.get("owner", ""), take)
