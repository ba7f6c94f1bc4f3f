"""Leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from sidekeeper import _transport
from sidekeeper._claim import Answer
from sidekeeper._errors import SidekeeperError
from sidekeeper._held import GIVE_UP_TIMEOUT, HeldStream, Kind, Streams
from sidekeeper._types import seconds
from sidekeeper.lease.v1 import lease_pb2


class Lease(HeldStream):
    """Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost."""

    id: str = ""
    """Names the lease in calls made without this package: 32 hexadecimal digits. It is a secret."""
    ttl: float = 0.0
    """The session timeout in seconds that the ensemble granted."""

    def _grant(self, granted: lease_pb2.Opened) -> str:
        self.id, self.ttl = granted.lease_id, seconds(granted.ttl)
        return self.id

    async def close(self) -> None:
        """Ends the lease; for the caller, it and everything acquired with it end at once. When this returns, all of that is gone from the
        ensemble. Raises LostError if the lease was lost before. Calling it again has the same outcome."""
        await self._give_up()


def kind(streams: Streams, stub: Any) -> Kind:
    async def close(lease_id: str) -> None:
        await _transport.call(stub.Close, lease_pb2.CloseRequest(lease_id=lease_id), GIVE_UP_TIMEOUT)

    async def check(ids: list[str], timeout: float) -> Mapping[str, Answer]:
        return {lease_id: await _check(stub, lease_id, timeout) for lease_id in ids}

    return Kind(streams, stub.Open, "opened", give_up=close, checker=streams.checker(check))


async def _check(stub: Any, lease_id: str, timeout: float) -> Answer:
    try:
        reply = await _transport.call(stub.Check, lease_pb2.CheckRequest(lease_id=lease_id), timeout)
    except SidekeeperError as error:
        if error.code not in (grpc.StatusCode.ABORTED, grpc.StatusCode.NOT_FOUND):
            raise
        return Answer(0, error)
    return Answer(seconds(reply.valid_for))
