"""The Python client of a Sidekeeper sidecar: locks that end in time, sequences, membership and configuration.

A lock is a stream: while the stream is open the lock is yours, and while its sidecar runs it ends before anybody else can be granted
the lock. A frozen sidecar cannot end a stream, so the client keeps the deadline itself: it asks the sidecar regularly for how long
what it holds is certainly still its own, counts the answer from when the question was sent, on a clock that goes on while the
machine is suspended, and takes for lost what was not confirmed in time.

What nobody can help is a program that stops between its look at the lock and its act. Hand the fencing token to whatever the lock
protects, and let that refuse smaller ones.

`Client` is for programs with threads, `sidekeeper.aio.Client` for asyncio. Nothing is global; logs go to the logger `sidekeeper`.
"""

from sidekeeper import _errors
from sidekeeper._config import Commit, Precondition, if_exists, if_missing, if_version
from sidekeeper._errors import *  # noqa: F403 (each error, as __all__ says)
from sidekeeper._sync import Client, Config, ConfigView, Lease, Lock, LockOptions, Membership, Sequence
from sidekeeper._transport import ADDRESS_VARIABLE, DEFAULT_ADDRESS
from sidekeeper._types import (
    ConfigChange,
    ConfigEvent,
    ConfigEventKind,
    Contender,
    Entry,
    GroupMember,
    GroupView,
    LockView,
    Mode,
    Numbers,
    OnConflict,
    Queued,
    Revocation,
    SequenceState,
    Token,
)

__all__ = [
    "ADDRESS_VARIABLE",
    "DEFAULT_ADDRESS",
    "Client",
    "Commit",
    "Config",
    "ConfigChange",
    "ConfigEvent",
    "ConfigEventKind",
    "ConfigView",
    "Contender",
    "Entry",
    "GroupMember",
    "GroupView",
    "Lease",
    "Lock",
    "LockOptions",
    "LockView",
    "Membership",
    "Mode",
    "Numbers",
    "OnConflict",
    "Precondition",
    "Queued",
    "Revocation",
    "Sequence",
    "SequenceState",
    "Token",
    "if_exists",
    "if_missing",
    "if_version",
]
__all__ += _errors.__all__
