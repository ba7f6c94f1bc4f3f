"""Elections."""

from __future__ import annotations

from typing import Any

from sidekeeper import _guard, _transport
from sidekeeper._claim import notify
from sidekeeper._held import GIVE_UP_TIMEOUT, Attempt, Kind, Single, Streams
from sidekeeper._lease import Lease, Leases
from sidekeeper._onlease import OnLease, on_lease
from sidekeeper._options import check
from sidekeeper._types import CommonCampaignOptions, Leader, Observation, Token, YieldRequest, duration, seconds
from sidekeeper.election.v1 import election_pb2
from sidekeeper.hold.v1 import hold_pb2


class CampaignOptions(CommonCampaignOptions, total=False):
    """How to campaign. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to campaign with, of the same client; None, one of its own that ends with the term."""


class Leadership(OnLease):
    """A term: the time for which the caller leads an election. Resign, even after it was lost."""

    def __init__(self, kind: Kind, stub: Any, election: str, candidate: str, options: CampaignOptions, own: Lease | None) -> None:
        super().__init__(kind, "campaign", f"leadership of {election}", options.get("lease"), own)
        self.election = election
        self.candidate = candidate
        self.term = _guard.Ticket(election, 0)
        """Names the term for others, who guard with it what they write for the leader. Its fencing token is larger than that of every
        earlier term."""
        self.yield_request: YieldRequest | None = None
        """The latest request to resign; None if there was none."""
        self._stub = stub
        self._hold_id = ""
        self._options = options

    @property
    def fencing_token(self) -> Token:
        """The number of the term."""
        return Token(self.term.fencing_token)

    async def _campaign(self, attempt: Attempt) -> Leadership:
        request = election_pb2.CampaignRequest(
            name=self.election,
            candidate=self.candidate,
            value=self._options.get("value", ""),
            wait_timeout=duration(attempt.wait),
            metadata=self._options.get("metadata"),
        )
        return await self._open(request, attempt)

    def _grant(self, elected: election_pb2.Elected) -> str:
        self.term, self._hold_id = _guard.Ticket(elected.ticket.lock, elected.ticket.fencing_token), elected.hold_id
        return elected.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "candidate":
                leader = Leader._of(event.leader) if event.HasField("leader") else None
                notify(self._options.get("on_candidate"), event.position, leader)
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))
            case "yield_requested":
                grace = seconds(event.grace) if event.HasField("grace") else None
                self.yield_request = YieldRequest(event.to, event.requested_by, event.reason, grace)
                notify(self._options.get("on_yield_requested"), self.yield_request)

    def _own_guard(self) -> _guard.Guard:
        return _guard.of_hold(self._hold_id, self._kind.streams, self.term)

    async def proclaim(self, value: str) -> None:
        """Changes the value that the leader shows. Raises GuardLostError if it does not lead any more."""
        check(value=value)
        ticket = hold_pb2.Ticket(lock=self.term.lock, fencing_token=self.term.fencing_token)
        await _transport.call_idempotent(self._stub.Proclaim, election_pb2.ProclaimRequest(ticket=ticket, value=value))

    async def resign(self) -> None:
        """Ends the term. For the caller it ends at once; when this returns, another candidate can be elected. Errors as of Lock.release."""
        await self._give_up()

    async def release(self) -> None:
        """Resigns."""
        await self.resign()


async def campaign(kind: Kind, leases: Leases, stub: Any, election: str, candidate: str, options: CampaignOptions) -> Leadership:
    """Campaigns, also with a sidecar that is away for a time."""

    async def take(own: Lease | None, attempt: Attempt) -> Leadership:
        return await Leadership(kind, stub, election, candidate, options, own)._campaign(attempt)

    return await on_lease(kind, leases, options, candidate, take)


def kind(streams: Streams, stub: Any) -> Kind:
    async def resign(hold_id: str) -> None:
        await _transport.call(stub.Resign, election_pb2.ResignRequest(hold_id=hold_id), GIVE_UP_TIMEOUT)

    return Kind(streams, lambda request: Single(stub.Campaign, request), "elected", give_up=resign, acknowledged=True)


class Observer:
    """What is known of an election, message by message."""

    def __init__(self) -> None:
        self._last: Observation | None = None
        self._newest = 0

    def learn(self, message: election_pb2.WatchResponse | None) -> Observation | None:
        """What to tell of a message, or of the end of the stream, for which it is None; None if nothing. An earlier term than one that was
        seen says nothing but that it is out of date."""
        event = message.WhichOneof("event") if message is not None else "stale"
        leader = Leader._of(message.leader) if message is not None and event == "leader" else None
        behind = leader is not None and leader.term.fencing_token < self._newest
        if event is None or (message is None and (self._last is None or self._last.stale)):
            return None
        if event == "stale" or behind:
            self._last = Observation(self._last.leader if self._last else None, stale=True)
        else:
            self._last = Observation(leader)
        if leader is not None and not behind:
            self._newest = leader.term.fencing_token
        return self._last
