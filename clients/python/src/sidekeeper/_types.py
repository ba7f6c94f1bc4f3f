"""What calls take and give."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NewType, TypedDict

from google.protobuf.duration_pb2 import Duration

from sidekeeper._guard import Ticket
from sidekeeper.config.v1 import config_pb2
from sidekeeper.election.v1 import election_pb2
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lock.v1 import lock_pb2
from sidekeeper.membership.v1 import membership_pb2
from sidekeeper.once.v1 import once_pb2
from sidekeeper.semaphore.v1 import semaphore_pb2

Token = NewType("Token", int)
"""A fencing token: larger than that of every earlier grant that this one excludes. Opaque except for its order."""


class Mode(enum.IntEnum):
    """How a lock is held. A name is used either with EXCLUSIVE or with READ and WRITE."""

    EXCLUSIVE = hold_pb2.MODE_EXCLUSIVE
    READ = hold_pb2.MODE_READ
    WRITE = hold_pb2.MODE_WRITE


class OnConflict(enum.IntEnum):
    """What to do when a group already has a member of the name."""

    REJECT = membership_pb2.ON_CONFLICT_REJECT
    WAIT = membership_pb2.ON_CONFLICT_WAIT
    """Wait until that member is gone: for a program that restarts before its previous lease has expired."""
    REPLACE = membership_pb2.ON_CONFLICT_REPLACE
    """End that member's membership."""


class Outcome(enum.IntEnum):
    """How an attempt at work that is done once has ended."""

    SUCCEEDED = once_pb2.OUTCOME_SUCCEEDED
    """The work is done."""
    FAILED = once_pb2.OUTCOME_FAILED
    """The work is not done, and its caller knows that."""


@dataclass(frozen=True)
class Reservation:
    """What a claim says of itself, for people."""

    reason: str
    until: datetime | None
    """By the clock of the sidecar that has granted or extended it; None while it waits."""

    @staticmethod
    def _of(wire: hold_pb2.Reservation) -> Reservation:
        return Reservation(wire.reason, wire.until.ToDatetime(UTC) if wire.HasField("until") else None)


@dataclass(frozen=True)
class Contender:
    """A holder or waiter of a lock."""

    mode: Mode
    owner: str
    metadata: Mapping[str, str]
    fencing_token: Token
    age: float
    """Seconds since it entered the queue, by the ensemble's clock."""
    foreign: bool
    """Whether it was made by another client of the ensemble, not by Sidekeeper."""
    identity: str = ""
    """Of its caller, as the sidecar that made it verified it; empty where callers are not told apart."""
    claim: Reservation | None = None
    """Of a claim, which has no process; None of others."""
    revocation_requested: bool = False
    """Whether another caller has asked it to release the lock."""

    @staticmethod
    def _of(wire: hold_pb2.Contender) -> Contender:
        mode = Mode(wire.mode or Mode.EXCLUSIVE)
        token, age = Token(wire.token), seconds(wire.age)
        claim = Reservation._of(wire.claim) if wire.HasField("claim") else None
        asked = wire.revocation_requested
        return Contender(mode, wire.owner, dict(wire.metadata), token, age, wire.foreign, wire.identity, claim, asked)


@dataclass(frozen=True)
class Queued:
    """The caller's place in the queue of a lock."""

    position: int
    """How many contenders are ahead, at least 1."""
    holders: tuple[Contender, ...]


@dataclass(frozen=True)
class Revocation:
    """A request that the holder release the lock soon."""

    requested_by: str
    reason: str
    grace: float | None
    """Seconds until the hold is ended by force; None if it is not ended."""

    @staticmethod
    def _of(wire: hold_pb2.RevocationRequested) -> Revocation:
        return Revocation(wire.requested_by, wire.reason, seconds(wire.grace) if wire.HasField("grace") else None)


class CommonLockOptions(TypedDict, total=False):
    """What asyncio's LockOptions and those for threads have in common."""

    mode: Mode
    """By default EXCLUSIVE."""
    wait: float | None
    """Seconds to wait for the grant, and for a sidecar or an ensemble that is away: 0 tries once; None waits for the grant without a
    limit, and for a sidecar or an ensemble that is away 10 seconds each time."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    lock_delay: float
    """For how many seconds no caller is granted the lock after this hold, unless it is released: at most 60, and not with READ. In this
    time what the holder has sent before arrives, for resources that cannot compare fencing tokens. By default none."""
    detect_deadlock: bool
    """Whether to raise DeadlockError if `lease` waits in a circle: for a lock whose holder waits for another one, and so on, until one
    waits for a lock of `lease`. Of those that ask, the one that began to wait last is told, within three seconds. Set it where nothing else
    goes on with the lease meanwhile: it counts as one caller. Without a lease it does nothing."""
    on_queued: Callable[[Queued], object]
    """Called when the caller has to wait, and whenever its position changes."""
    on_suspended: Callable[[float], object]
    """Called about once a second while contact with the ensemble is lost and the lock is not, with the seconds for which it remains
    valid."""
    on_resumed: Callable[[], object]
    """Called when contact is back and the lock was not lost."""
    on_revocation: Callable[[Revocation], object]
    """Called with each request to release the lock."""


@dataclass(frozen=True)
class WantedLock:
    """One of several locks that are acquired at once."""

    name: str
    mode: Mode = Mode.EXCLUSIVE


class CommonAllOptions(TypedDict, total=False):
    """What asyncio's AllOptions and those for threads have in common."""

    wait: float | None
    """As in LockOptions, for all of the locks."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_queued: Callable[[Mapping[str, int]], object]
    """Called when the caller has to wait, and whenever that changes, with how many are ahead: at least 1, by the names of the locks that
    are still waited for."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""
    on_revocation: Callable[[Revocation], object]
    """Called with each request to release any of the locks, which asks for all."""


class CommonPermitsOptions(TypedDict, total=False):
    """What asyncio's PermitsOptions and those for threads have in common."""

    permits: int
    """How many, all at once: 1 to 64; by default 1."""
    numbered: bool
    """Whether the permit bears a number: see Permits.number. It goes with one permit."""
    quarantine: float | None
    """For how many seconds the number rests if it is lost: up to 24 hours; by default 1 minute. A number that its holder releases is free
    at once."""
    wait: float | None
    """As in LockOptions."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_queued: Callable[[int], object]
    """Called with how many wait ahead, 0 for the first, who waits for free permits; and whenever that changes."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""
    on_revocation: Callable[[Revocation], object]
    """Called with each request to release the permits."""


class CommonOnceOptions(TypedDict, total=False):
    """What asyncio's OnceOptions and those for threads have in common. Without any, work that was lost or has failed is repeated, up to
    three attempts in all."""

    per_name: bool
    """Whether the work of different keys does not overlap: its lock is that of the name. By default each key has a lock of its own."""
    keep: float | None
    """For how many seconds the record stands after `finish`: from 1 to 366 days; None, a week."""
    skip_lost: bool
    """Whether no other attempt follows one that was lost."""
    skip_failed: bool
    """Whether no other attempt follows one that has failed."""
    max_attempts: int
    """How many attempts the key has at most: 1 to 1,000; by default 3."""
    wait: float | None
    """As in LockOptions, for the lock of the work."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_queued: Callable[[Queued], object]
    """As in LockOptions."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""
    on_revocation: Callable[[Revocation], object]
    """Called with each request to finish soon."""


class CommonWorkOptions(TypedDict, total=False):
    """What asyncio's WorkOptions and those for threads have in common."""

    wait: float | None
    """Seconds to wait for a tick, and for a sidecar or an ensemble that is away: 0 tries once; None waits for a tick without a limit, and
    for a sidecar or an ensemble that is away 10 seconds each time."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_queued: Callable[[Queued], object]
    """As in LockOptions."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""
    on_revocation: Callable[[Revocation], object]
    """Called with each request to finish soon."""


@dataclass(frozen=True)
class Assignment:
    """Which items the caller shall work on."""

    epoch: int
    """Larger for each later plan of the set; 0 before the first."""
    items: tuple[str, ...]
    """All of them, in the order of the set."""
    members: int
    """How many members the set has."""
    total: int
    """How many items the set has."""
    unassigned: int
    """How many items no member works on: the members' capacities are too small, or the next plan is not made yet."""


class CommonShareOptions(TypedDict, total=False):
    """What asyncio's ShareOptions and those for threads have in common."""

    member: str
    """The caller's name in the set, one segment. A worker that is started again under its name keeps its items. By default the host's name;
    in Kubernetes that is the pod's."""
    capacity: int | None
    """How many items the caller takes at most, 0 to 2,000, in proportion to that of the other members; by default 2,000."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all. The keys `member` and `capacity` are taken."""
    drain: bool
    """Whether the items move to other members first when the caller is told to stop, so that none has to wait for the others."""
    drain_timeout: float
    """For how many seconds they may do so; by default 30."""
    on_assigned: Callable[[Assignment], object]
    """Called with the items whenever they have changed."""
    on_error: Callable[[str, BaseException], object]
    """Called with an item's name and what its handler has raised, or why its lock cannot be had; with an empty name, why the membership was
    lost. By default that is logged. It begins again."""


class CommonBarrierOptions(TypedDict, total=False):
    """What asyncio's BarrierOptions and those for threads have in common."""

    wait: float | None
    """The seconds to wait for the others, more than 0; None waits without a limit, and 10 seconds each time for what is away."""
    owner: str
    """Who the caller is, for people: at most 128 bytes of UTF-8."""
    metadata: Mapping[str, str]
    """More about the caller, for people: at most 1 KiB in all."""
    on_waiting: Callable[[int], object]
    """Called with how many stand at the barrier, the caller among them."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""


@dataclass(frozen=True)
class Leader:
    """The leader of an election."""

    candidate: str
    value: str
    """As given to campaign, or to the latest proclaim."""
    term: Ticket
    """Its fencing token numbers the term."""
    metadata: Mapping[str, str]
    foreign: bool
    """Whether it was made by another client of the ensemble, not by Sidekeeper."""
    identity: str = ""
    """Of its caller, as the sidecar that made it verified it; empty where callers are not told apart."""
    yield_requested: bool = False
    """Whether it was asked to yield."""

    @staticmethod
    def _of(w: election_pb2.Leader) -> Leader:
        term = Ticket(w.ticket.lock, w.ticket.fencing_token)
        return Leader(w.candidate, w.value, term, dict(w.metadata), w.foreign, w.identity, w.yield_requested)


@dataclass(frozen=True)
class Candidate:
    """A candidate that waits to lead. Its fields are as a leader's."""

    candidate: str
    value: str
    metadata: Mapping[str, str]
    age: float
    """Seconds for which it has waited, by the ensemble's clock."""
    foreign: bool
    identity: str = ""

    @staticmethod
    def _of(w: election_pb2.Candidate) -> Candidate:
        return Candidate(w.candidate, w.value, dict(w.metadata), seconds(w.age), w.foreign, w.identity)


@dataclass(frozen=True)
class ElectionView:
    """The leader of an election, and its candidates."""

    leader: Leader | None
    candidates: tuple[Candidate, ...]
    """In the order of their turn."""

    @staticmethod
    def _of(w: election_pb2.GetResponse) -> ElectionView:
        leader = Leader._of(w.leader) if w.HasField("leader") else None
        return ElectionView(leader, tuple(map(Candidate._of, w.candidates)))


@dataclass(frozen=True)
class Observation:
    """What is known of an election."""

    leader: Leader | None
    """None if the election has no leader."""
    stale: bool = False
    """Whether another candidate may lead: contact with the ensemble, or with the sidecar, is lost."""


@dataclass(frozen=True)
class YieldRequest:
    """A request that the leader resign soon."""

    to: str
    """The candidate that shall lead next; empty if the request names none."""
    requested_by: str
    reason: str
    grace: float | None
    """Seconds until the term is ended by force; None if it is not ended."""


class CommonCampaignOptions(TypedDict, total=False):
    """What asyncio's CampaignOptions and those for threads have in common."""

    value: str
    """What the leader shows, such as its address: at most 1 KiB of UTF-8."""
    wait: float | None
    """As in LockOptions."""
    metadata: Mapping[str, str]
    """More about the candidate, for people: at most 1 KiB in all."""
    on_candidate: Callable[[int, Leader | None], object]
    """Called with how many are ahead, and who leads, as it was first seen; and whenever that changes."""
    on_suspended: Callable[[float], object]
    """As in LockOptions."""
    on_resumed: Callable[[], object]
    """As in LockOptions."""
    on_yield_requested: Callable[[YieldRequest], object]
    """Called with each request to resign."""


@dataclass(frozen=True)
class PermitContender:
    """A holder of permits, or a waiter for some."""

    permits: int
    """That it holds; 0 if it waits."""
    owner: str
    metadata: Mapping[str, str]
    token: int
    """Of its permits; 0 if it waits."""
    age: float
    """Seconds for which it has held its permits, or waits, by the ensemble's clock."""
    foreign: bool
    """Whether it was made by another client of the ensemble, not by Sidekeeper."""
    identity: str = ""
    """Of its caller, as the sidecar that made it verified it; empty where callers are not told apart."""
    number: int | None = None
    """That its permit bears; None of one without a number, and while it waits."""
    revocation_requested: bool = False
    """Whether another caller has asked it to release its permits."""

    @staticmethod
    def _of(c: hold_pb2.Contender) -> PermitContender:
        labels, number, asked = dict(c.metadata), number_of(c), c.revocation_requested
        return PermitContender(c.permits, c.owner, labels, c.token, seconds(c.age), c.foreign, c.identity, number, asked)


def number_of(wire: hold_pb2.Contender | semaphore_pb2.Granted) -> int | None:
    """The number that a permit bears, which may be 0; None if it bears none."""
    return wire.number if wire.HasField("number") else None


@dataclass(frozen=True)
class Quarantine:
    """A number that was lost, and that no caller gets for a while."""

    number: int
    until: datetime | None = None
    """When it ends; None if it begins only when the next caller wants a number."""

    @staticmethod
    def _of(wire: semaphore_pb2.Quarantine) -> Quarantine:
        return Quarantine(wire.number, wire.until.ToDatetime(UTC) if wire.HasField("until") else None)


@dataclass(frozen=True)
class SemaphoreView:
    """The holders and waiters of a semaphore, in order."""

    name: str
    limit: int
    """How many permits there are."""
    held: int
    """How many of them are held; more than limit after it has shrunk."""
    holders: tuple[PermitContender, ...]
    waiters: tuple[PermitContender, ...]
    stale: bool = False
    """From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date."""
    quarantines: tuple[Quarantine, ...] = ()
    """The numbers that no permit bears and that rest, in order."""
    waiters_omitted: int = 0
    """How many more wait that are not shown, because there are too many for one message."""

    @staticmethod
    def _of(wire: semaphore_pb2.View, stale: bool = False) -> SemaphoreView:
        holders, waiters = tuple(map(PermitContender._of, wire.holders)), tuple(map(PermitContender._of, wire.waiters))
        resting = tuple(map(Quarantine._of, wire.quarantines))
        return SemaphoreView(wire.name, wire.limit, wire.held, holders, waiters, stale, resting, wire.waiters_omitted)


@dataclass(frozen=True)
class LockView:
    """The holders and waiters of a lock, in the order of its queue. The first holder is the leader of an election."""

    name: str
    holders: tuple[Contender, ...]
    waiters: tuple[Contender, ...]
    stale: bool = False
    """From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date."""
    waiters_omitted: int = 0
    """How many more wait that are not shown, because there are too many for one message."""

    @staticmethod
    def _of(wire: lock_pb2.View, stale: bool = False) -> LockView:
        holders, waiters = tuple(map(Contender._of, wire.holders)), tuple(map(Contender._of, wire.waiters))
        return LockView(wire.name, holders, waiters, stale, wire.waiters_omitted)


@dataclass(frozen=True)
class Numbers:
    """All numbers from first to last, both included."""

    first: int
    last: int
    incarnation: int
    """The incarnation of the sequence, within which numbers are unique."""

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))


@dataclass(frozen=True)
class SequenceState:
    """How far one incarnation of a sequence has come."""

    last_issued: int
    """The last number that was handed out or reserved."""
    incarnation: int
    """Differs if the sequence was deleted and created again."""


@dataclass(frozen=True)
class GroupMember:
    """A member of a group."""

    member: str
    incarnation: int
    """Distinguishes it from all members that have or had its name."""
    owner: str
    metadata: Mapping[str, str]
    age: float
    """Seconds since it joined, by the ensemble's clock."""
    foreign: bool
    """Whether it was made by another client of the ensemble, not by Sidekeeper."""
    text: str
    """With foreign: what the other client wrote, if it is UTF-8; otherwise empty."""
    identity: str = ""
    """Of its caller, as the sidecar that made it verified it; empty where callers are not told apart."""

    @staticmethod
    def _of(m: membership_pb2.Member) -> GroupMember:
        age = seconds(m.age)
        return GroupMember(m.member, m.incarnation, m.owner, dict(m.metadata), age, m.foreign, m.text, m.identity)


@dataclass(frozen=True)
class GroupView:
    """The members of a group."""

    group: str
    members: Mapping[str, GroupMember]
    stale: bool = False
    """From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date."""

    def pick(self, key: str) -> GroupMember | None:
        """The member that a key belongs to, by rendezvous hashing (Thaler and Ravishankar, 1998).

        Everyone who sees the same members picks the same one, in every language, and when a member comes or goes, only keys of its own
        change hands. It is the member for whom SHA-256 of its name, a zero byte and the key is largest, read as a number; None if
        there is no member.
        """

        def weight(member: GroupMember) -> bytes:
            return hashlib.sha256(f"{member.member}\0{key}".encode()).digest()

        return max(self.members.values(), key=weight, default=None)

    @staticmethod
    def _of(wire: membership_pb2.View, stale: bool = False) -> GroupView:
        return GroupView(wire.group, {m.member: GroupMember._of(m) for m in wire.members}, stale)


@dataclass(frozen=True)
class Entry:
    """A key of the configuration with its value."""

    key: str
    value: bytes = field(default=b"", repr=False)
    """Not in what put and commit return."""
    version: int = 0
    """For preconditions."""
    revision: int = 0
    """Of the last write of the key; larger than that of any earlier write of any key."""
    created_revision: int = 0
    """Of the write that created the key; differs if the key was deleted and created again."""

    @property
    def text(self) -> str:
        """The value as text. Raises UnicodeDecodeError if it is none."""
        return self.value.decode()

    @staticmethod
    def _of(wire: config_pb2.Entry) -> Entry:
        return Entry(wire.key, wire.value, wire.version, wire.revision, wire.created_revision)


class ConfigEventKind(enum.Enum):
    """What a ConfigEvent reports."""

    STATE = "state"
    """The complete current state: everything reported before is out of date. Comes first, and again after the sidecar was
    unreachable."""
    CHANGED = "changed"
    """Something has changed."""
    STALE = "stale"
    """Contact with the ensemble or the sidecar is lost: what was reported may be out of date."""
    FRESH = "fresh"
    """Contact is back, and everything that happened meanwhile has been reported."""


@dataclass(frozen=True)
class ConfigChange:
    """The change of one key."""

    entry: Entry
    deleted: bool = False
    """With it, only the key of the entry is set."""
    coalesced: bool = False
    """The key had other values in between, which were skipped."""
    recreated: bool = False
    """The key was deleted and created again in between."""


@dataclass(frozen=True)
class ConfigEvent:
    """One event of a watch of the configuration."""

    kind: ConfigEventKind
    changes: tuple[ConfigChange, ...] = ()
    """With STATE and CHANGED."""
    age: float = 0.0
    """With STALE: for how many seconds the sidecar had not been heard when that was noticed; 0 if that is unknown."""


def seconds(duration: Duration) -> float:
    """A duration as a number of seconds."""
    return duration.seconds + duration.nanos / 1e9


def duration(value: float | None) -> Duration | None:
    """A number of seconds as a duration."""
    if value is None:
        return None
    nanos = round(value * 1e9)
    whole = abs(nanos) // 1_000_000_000
    rest = abs(nanos) % 1_000_000_000
    sign = 1 if nanos >= 0 else -1
    return Duration(seconds=sign * whole, nanos=sign * rest)
