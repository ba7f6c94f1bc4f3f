"""Work that is done once."""

from __future__ import annotations

import asyncio
import inspect
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from sidekeeper import _guard, _held, _transport
from sidekeeper._claim import notify
from sidekeeper._errors import GuardLostError, LostError, OutcomeUnknownError
from sidekeeper._lease import Lease, Leases
from sidekeeper._onlease import OnLease, on_lease
from sidekeeper._options import check
from sidekeeper._types import CommonOnceOptions, Contender, Outcome, Queued, Revocation, Token, duration, seconds
from sidekeeper.lock.v1 import lock_pb2
from sidekeeper.once.v1 import once_pb2

T = TypeVar("T")

LONGEST_NOTE = 256
"""Bytes."""


class OnceOptions(CommonOnceOptions, total=False):
    """How to do work once. The callbacks are called one at a time by the task that reads the stream: they must not block."""

    lease: Lease | None
    """The lease to hold the lock with, of the same client; None, one of its own that ends with the attempt."""


class Recorded(OnLease):
    """The caller's attempt at work, whose outcome is recorded. Finish it, or release it: then it counts as lost."""

    _finish_request: Callable[..., Any]
    """Makes the request of Finish."""

    def __init__(
        self, kind: _held.Kind, recipe: str, what: str, stub: Any, lock: str, options: Mapping[str, Any], own: Lease | None
    ) -> None:
        super().__init__(kind, recipe, what, options.get("lease"), own)
        self.hold_id = ""
        """Names this attempt in calls made without this package: 32 hexadecimal digits. It is a secret."""
        self.fencing_token = Token(0)
        """Larger than that of every earlier attempt at this work."""
        self.number = 0
        """1 for the first attempt at this work."""
        self.revocation: Revocation | None = None
        """The latest request to finish soon; None if there was none."""
        self._stub = stub
        self._lock = lock
        self._options = options
        self._recorded: Outcome | None = None

    def _grant(self, begun: Any) -> str:
        self.hold_id, self.fencing_token, self.number = begun.hold_id, Token(begun.fencing_token), begun.attempt
        return self.hold_id

    def _notice(self, kind: str | None, event: Any) -> None:
        match kind:
            case "queued":
                notify(self._options.get("on_queued"), Queued(event.position, tuple(map(Contender._of, event.holders))))
            case "suspended":
                notify(self._options.get("on_suspended"), seconds(event.remaining))
            case "resumed":
                notify(self._options.get("on_resumed"))
            case "revocation_requested":
                self.revocation = Revocation._of(event)
                notify(self._options.get("on_revocation"), self.revocation)

    def ticket(self) -> _guard.Ticket:
        """What the caller hands on to others, who guard with it what they write for the attempt."""
        return _guard.Ticket(self._lock, self.fencing_token)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guards with the attempt what its client writes in the body of `with`; see Lock.guard."""
        with _guard.entered(self._own_guard()):
            yield

    def _own_guard(self) -> _guard.Guard:
        return _guard.of_hold(self.hold_id, self._kind.streams, self.ticket())

    async def finish(self, outcome: Outcome, note: str = "") -> None:
        """Says how the attempt has ended, and gives up its lock; for the caller it is over at once. The note is for people: at most 256
        bytes of UTF-8.

        When it returns, this outcome is recorded, even if the lock was lost or released before. With SupersededError it is not, and never
        will be: the lock was lost, and another attempt has begun since. With AlreadyDoneError another outcome is recorded. After any other
        SidekeeperError it may be recorded or not, and finish may be called again; it asks again by itself for 10 seconds. The sidecar knows
        an attempt for ten minutes after its end: later, finish fails.
        """
        check(outcome=outcome, note=note)
        self._refuse_if_forked()
        self._giving_up = asyncio.create_task(self._finish(outcome, note))
        await asyncio.shield(self._giving_up)

    async def _finish(self, outcome: Outcome, note: str) -> None:
        recorded = False
        self._claim.end()
        try:
            request = self._finish_request(hold_id=self.hold_id, outcome=once_pb2.Outcome.Name(outcome), note=note)
            await _transport.call_idempotent(self._stub.Finish, request, also=(OutcomeUnknownError,))
            recorded, self._recorded = True, outcome
        finally:
            await self._abandon()
            if self._own is not None:
                await self._own._close_used(recorded)

    def _raise_unless_recorded(self, outcome: Outcome) -> None:
        """Does what finish would, without the loop of a client that is closed."""
        if self._recorded is not outcome:
            self._raise_outcome()
            raise self._not_confirmed(_transport.closed())

    async def release(self) -> None:
        """Gives up the attempt, which counts as lost. Errors as of Lock.release. After finish it does nothing, and has its outcome."""
        await self._give_up()

    async def _leave(self, error: BaseException | None) -> None:
        """Ends the attempt as its body has ended: with an error, or without one. An error changes nothing after the body has ended the
        attempt itself."""
        if error is None:
            await self.finish(Outcome.SUCCEEDED)
        elif self._giving_up is not None:
            await self._give_up()
        elif not self.valid or _tells_of_loss(error):
            await self.release()  # nothing says how far the body has come
        else:
            await self.finish(Outcome.FAILED, note_of(error))


class Attempt(Recorded):
    """The caller's at work that is done once. Finish it, or release it: then it counts as lost."""

    _finish_request = once_pb2.FinishRequest

    def __init__(self, kind: _held.Kind, stub: Any, name: str, key: str, options: OnceOptions, own: Lease | None) -> None:
        lock = name if options.get("per_name") else f"{name}/{key}"
        super().__init__(kind, "begin", f"work {name} {key}", stub, lock, options, own)
        self.name = name
        self.key = key

    async def _begin(self, attempt: _held.Attempt) -> Attempt:
        options = self._options
        request = once_pb2.BeginRequest(
            name=self.name,
            key=self.key,
            per=once_pb2.PER_NAME if options.get("per_name") else once_pb2.PER_KEY,
            keep=duration(options.get("keep")),
            on_loss=_policy(options.get("skip_lost")),
            on_failure=_policy(options.get("skip_failed")),
            attempts=options.get("max_attempts"),
            wait_timeout=duration(attempt.wait),
            owner=options.get("owner", ""),
            metadata=options.get("metadata"),
        )
        return await self._open(request, attempt)


async def begin(kind: _held.Kind, leases: Leases, stub: Any, name: str, key: str, options: OnceOptions) -> Attempt:
    """Begins an attempt, also with a sidecar that is away for a time."""

    async def take(own: Lease | None, attempt: _held.Attempt) -> Attempt:
        return await Attempt(kind, stub, name, key, options, own)._begin(attempt)

    return await on_lease(kind, leases, options, options.get("owner", ""), take)


def kind(streams: _held.Streams, locks: Any, method: Callable[..., Any], granted: str) -> _held.Kind:
    """How an attempt holds its lock: by a method whose stream has an event that begins it."""

    async def release(hold_id: str) -> None:
        await _transport.call(locks.Release, lock_pb2.ReleaseRequest(hold_id=hold_id), _held.GIVE_UP_TIMEOUT)

    return _held.Kind(streams, lambda request: _held.Single(method, request), granted, give_up=release, acknowledged=True)


def _policy(skip: bool | None) -> once_pb2.Policy:
    return once_pb2.POLICY_SKIP if skip else once_pb2.POLICY_RETRY


def _tells_of_loss(error: BaseException | None) -> bool:
    """Whether an error is a lost hold or guard, or has one as its cause or in its group. An error that was only handled before does not
    count."""
    pending, seen = [error], set[int]()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        if isinstance(one, LostError | GuardLostError):
            return True
        seen.add(id(one))
        pending.append(one.__cause__)
        pending += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
    return False


def ran(result: T) -> T:
    """What work has returned. Raises TypeError for a coroutine or a generator, whose work has not run."""
    if not (inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return result
    if inspect.iscoroutine(result):
        result.close()  # Python warns of one that nothing awaits
    raise TypeError(f"the work has not run: its call has returned {result!r}")


def note_of(error: BaseException) -> str:
    """An error as a note may have it."""
    text = " ".join(traceback.format_exception_only(error)).strip()
    clean = "".join(" " if unicodedata.category(each) == "Cc" else each for each in text)
    return clean.encode(errors="replace")[:LONGEST_NOTE].decode(errors="ignore")
