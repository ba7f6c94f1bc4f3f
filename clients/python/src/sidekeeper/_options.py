"""What calls may be given: one rule for each name, which means the same in every call. What is wrong is refused before anything is sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import grpc

from sidekeeper._types import Mode, OnConflict, Outcome, WantedLock

LONGEST = 10 * 365 * 24 * 3600
"""The longest time that a sidecar waits, in seconds: ten years."""


class Rule(NamedTuple):
    """What a value must be: of a type, and if that is a number, within a range."""

    words: str
    of: Callable[[Any], bool]
    most: int | None = None
    optional: bool = False


def _is(kind: type, words: str, *, optional: bool = False) -> Rule:
    return Rule(words + ", or None" * optional, lambda value: isinstance(value, kind), optional=optional)


def _is_number(value: object, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _whole(most: int) -> Rule:
    return Rule(f"an int from 0 to {most}", lambda value: _is_number(value, Integral), most)


def _is_lease(value: object) -> bool:
    from sidekeeper._lease import Lease  # which knows this module's callers

    return isinstance(value, Lease)


_text = _is(str, "a str")
_label = _is(str, "a str", optional=True)
_flag = _is(bool, "a bool")
_labels = _is(Mapping, "a mapping of str to str", optional=True)
_function = Rule("a callable", callable)
_callback = Rule("a callable, or None", callable, optional=True)
_seconds = Rule(f"a number of seconds from 0 to {LONGEST}, or None", _is_number, LONGEST, optional=True)
_count = _whole(2**31 - 1)  # what can be sent: the sidecar knows the limit of each

RULES: Mapping[str, Rule] = {
    "ahead": _count,
    "body": _function,
    "candidate": _text,
    "capacity": _count._replace(words=_count.words + ", or None", optional=True),
    "claim_id": _label,
    "count": _count,
    "credentials": _is(grpc.ChannelCredentials, "grpc.ChannelCredentials", optional=True),
    "detect_deadlock": _flag,
    "drain": _flag,
    "drain_timeout": _seconds._replace(words=f"a number of seconds from 0 to {LONGEST}", optional=False),
    "election": _text,
    "first": _whole(2**63 - 1),
    "grace": _seconds,
    "group": _text,
    "handler": _function,
    "keep": _seconds,
    "key": _text,
    "lease": Rule("a Lease of the same client, or None", _is_lease, optional=True),
    "limit": _count,
    "linearizable": _flag,
    "lock": Rule("a str or a WantedLock", lambda value: isinstance(value, str | WantedLock)),
    "lock_delay": _seconds,
    "max_attempts": _count,
    "member": _text,
    "metadata": _labels,
    "mode": _is(Mode, "Mode.EXCLUSIVE, Mode.READ or Mode.WRITE"),
    "name": _text,
    "note": _text,
    "numbered": _flag,
    "on_assigned": _callback,
    "on_candidate": _callback,
    "on_conflict": _is(OnConflict, "OnConflict.REJECT, OnConflict.WAIT or OnConflict.REPLACE"),
    "on_error": _callback,
    "on_joined": _callback,
    "on_queued": _callback,
    "on_resumed": _callback,
    "on_revocation": _callback,
    "on_suspended": _callback,
    "on_waiting": _callback,
    "on_yield_requested": _callback,
    "outcome": _is(Outcome, "Outcome.SUCCEEDED or Outcome.FAILED"),
    "owner": _label,
    "per_name": _flag,
    "permits": _count,
    "prefix": _text,
    "quarantine": _seconds,
    "reason": _label,
    "relaxed": _flag,
    "reserve_for": _seconds._replace(words=f"a number of seconds from 0 to {LONGEST}", optional=False),
    "semaphore": _text,
    "size": _count,
    "skip_failed": _flag,
    "skip_lost": _flag,
    "stop": _is(threading.Event, "a threading.Event", optional=True),
    "suspension_grace": _seconds,
    "target": _label,
    "text": _text,
    "to": _text,
    "ttl": _seconds,
    "value": _label,
    "version": _count,
    "wait": _seconds,
    "work": _function,
}


def check(**given: object) -> None:
    """Raises TypeError for a value of another type than its name's, and ValueError for a number that is out of range."""
    for name, value in given.items():
        check_by(RULES[name], name, value)
        if name == "metadata" and isinstance(value, Mapping):
            for key, label in value.items():
                check_by(_text, "a key of metadata", key)
                check_by(_text, f"metadata[{key!r}]", label)


def check_by(rule: Rule, name: str, value: object) -> None:
    """Checks one value by a rule."""
    if value is None and rule.optional:
        return
    if not rule.of(value):
        raise TypeError(f"{name} is {value!r:.80}: {rule.words}")
    if rule.most is not None and not 0 <= value <= rule.most:  # type: ignore[operator]
        raise ValueError(f"{name} is {value!r:.80}: {rule.words}")


def check_options(known: Any, options: Mapping[str, object], **more: object) -> None:
    """Raises TypeError for an option that there is none of, such as timeout: a caller that means wait would wait without a limit. Checks
    the others, and what is named here."""
    if unknown := sorted(options.keys() - known.__optional_keys__):
        names = sorted({*known.__optional_keys__, *more})
        raise TypeError(f"there is no option {unknown[0]!r}; the options are {', '.join(names)}")
    check(**options, **more)
