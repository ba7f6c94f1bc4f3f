"""Sequences."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from sidekeeper import _transport
from sidekeeper._guard import guards
from sidekeeper._options import check
from sidekeeper._types import Numbers, SequenceState
from sidekeeper.sequence.v1 import sequence_pb2, sequence_pb2_grpc


class Sequence:
    """Hands out numbers, each once. Creating this object makes no call."""

    def __init__(self, channel: _transport.Channel, client: object, name: str) -> None:
        self._client = client
        self.name = name
        self._stub: Any = sequence_pb2_grpc.SequenceServiceStub(channel)

    async def next(self, *, relaxed: bool = False) -> int:
        """Hands out a number.

        It is larger than every number handed out, through any sidecar, before this call; with relaxed it is only unique,
        and faster. Raises SequenceNotFoundError, SequenceExhaustedError, SequenceMalformedError. Calling it
        again after an error is safe: at worst it skips numbers.

        In the body of `Client.lock` a number is handed out only while the lock is held (see `Lock.guard`); otherwise it is GuardLostError.
        Those of relaxed calls are not guarded.
        """
        return (await self.next_range(1, relaxed=relaxed)).first

    async def next_range(self, count: int, *, relaxed: bool = False) -> Numbers:
        """Hands out count numbers at once, 1 to 1,000,000. Errors are those of next."""
        check(count=count, relaxed=relaxed)
        ordering = sequence_pb2.ORDERING_RELAXED if relaxed else sequence_pb2.ORDERING_STRICT
        guarding = [] if relaxed else guards(self._client)
        request = sequence_pb2.NextRequest(name=self.name, count=count, ordering=ordering, guards=guarding)
        reply = await _transport.call_idempotent(self._stub.Next, request)
        return Numbers(reply.first, reply.last, reply.incarnation)

    async def numbers(self, *, ahead: int = 100) -> AsyncGenerator[int]:
        """An endless stream of numbers, unique and in no particular order, reserved `ahead` at a time. Those reserved and not used are
        never handed out again."""
        check(ahead=ahead)
        while True:
            for number in await self.next_range(ahead, relaxed=True):
                yield number

    async def create(self, first: int) -> int:
        """Creates the sequence, whose first number will be first, and returns its incarnation. Raises SequenceExistsError; with
        OutcomeUnknownError it may have been created."""
        check(first=first)
        reply = await _transport.call_non_idempotent(self._stub.Create, sequence_pb2.CreateRequest(name=self.name, first=first))
        return int(reply.incarnation)

    async def get(self) -> SequenceState:
        """Returns how far the sequence has come. Raises SequenceNotFoundError, SequenceMalformedError."""
        reply = await _transport.call_idempotent(self._stub.Get, sequence_pb2.GetRequest(name=self.name))
        return SequenceState(reply.last_issued, reply.incarnation)

    async def delete(self) -> None:
        """Removes the sequence. Raises SequenceNotFoundError; after OutcomeUnknownError it may be gone."""
        await _transport.call_non_idempotent(self._stub.Delete, sequence_pb2.DeleteRequest(name=self.name))
