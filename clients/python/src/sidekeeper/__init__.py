"""The Python client of a Sidekeeper sidecar: distributed locks, semaphores, barriers, elections, sequences, membership and configuration.

A lock is a stream: while the stream is open you hold the lock, and a running sidecar ends the stream before anyone else is granted
the lock. A frozen sidecar cannot end a stream, so the client keeps the deadline itself: it asks the sidecar regularly for how long
the lock is proven to be valid, counts that from when the question was sent, on a clock that includes the time of suspension, and treats
as lost what is not confirmed in time.

No client can protect a program that is paused between checking the lock and acting on it. Pass the fencing token to whatever the lock
protects, and have that refuse smaller ones.

`Client` is for programs with threads, `sidekeeper.aio.Client` for asyncio. Nothing is global; logs go to the logger `sidekeeper`.
"""

from sidekeeper import _errors
from sidekeeper._config import Commit, Precondition, if_exists, if_missing, if_version
from sidekeeper._errors import *  # noqa: F403 (each error, as __all__ says)
from sidekeeper._guard import CurrentToken, Ticket, Verification, tickets, unguarded
from sidekeeper._locked import current_attempt, current_lock, done_once, locked
from sidekeeper._names import name_of, segment_of
from sidekeeper._sync import (
    AllOptions,
    Attempt,
    BarrierEntry,
    BarrierOptions,
    CampaignOptions,
    Claim,
    Client,
    Config,
    ConfigView,
    Item,
    Leadership,
    Lease,
    Lock,
    LockOptions,
    Locks,
    Membership,
    OnceOptions,
    Permits,
    PermitsOptions,
    Sequence,
    ShareOptions,
    Tick,
    WorkOptions,
)
from sidekeeper._transport import ADDRESS_VARIABLE, DEFAULT_ADDRESS
from sidekeeper._types import (
    Assignment,
    Candidate,
    ConfigChange,
    ConfigEvent,
    ConfigEventKind,
    Contender,
    ElectionView,
    Entry,
    GroupMember,
    GroupView,
    Leader,
    LockView,
    Mode,
    Numbers,
    Observation,
    OnConflict,
    Outcome,
    PermitContender,
    Quarantine,
    Queued,
    Reservation,
    Revocation,
    SemaphoreView,
    SequenceState,
    Token,
    WantedLock,
    YieldRequest,
)

__version__ = "0.1.0"

__all__ = [
    "ADDRESS_VARIABLE",
    "DEFAULT_ADDRESS",
    "AllOptions",
    "Assignment",
    "Attempt",
    "BarrierEntry",
    "BarrierOptions",
    "CampaignOptions",
    "Candidate",
    "Claim",
    "Client",
    "Commit",
    "Config",
    "ConfigChange",
    "ConfigEvent",
    "ConfigEventKind",
    "ConfigView",
    "Contender",
    "CurrentToken",
    "ElectionView",
    "Entry",
    "GroupMember",
    "GroupView",
    "Item",
    "Leader",
    "Leadership",
    "Lease",
    "Lock",
    "LockOptions",
    "LockView",
    "Locks",
    "Membership",
    "Mode",
    "Numbers",
    "Observation",
    "OnConflict",
    "OnceOptions",
    "Outcome",
    "PermitContender",
    "Permits",
    "PermitsOptions",
    "Precondition",
    "Quarantine",
    "Queued",
    "Reservation",
    "Revocation",
    "SemaphoreView",
    "Sequence",
    "SequenceState",
    "ShareOptions",
    "Tick",
    "Ticket",
    "Token",
    "Verification",
    "WantedLock",
    "WorkOptions",
    "YieldRequest",
    "current_attempt",
    "current_lock",
    "done_once",
    "if_exists",
    "if_missing",
    "if_version",
    "locked",
    "name_of",
    "segment_of",
    "tickets",
    "unguarded",
]
__all__ += _errors.__all__
