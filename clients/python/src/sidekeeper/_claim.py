"""What a caller holds while a stream lives and its validity has not run out, and the checks that keep its deadline."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from sidekeeper import _clock, _fork
from sidekeeper._errors import ForkedError, LostError, SidekeeperError, named
from sidekeeper._transport import closed

log = logging.getLogger("sidekeeper")


class Claim:
    """Ends once, with the first cause that is given to `end` or found by a reader: its validity has run out, or the process was forked.
    Any thread may read it; apart from what readers find, only the event loop of its client changes it.

    A claim that borrows the validity of another is valid for as long as that one is.
    """

    def __init__(self, what: str, borrowed: Claim | None = None) -> None:
        self.what = what
        self.ended = asyncio.Event()
        self.suspended = False
        self.asked: float | None = None
        self.until = 0.0
        self._home = _fork.here()
        self._borrowed = borrowed
        self._over = False
        self._lost: LostError | None = None
        self._found: LostError | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._listeners: list[Callable[[], object]] = []
        self._dependents: dict[Claim, None] = {}
        self._carries: Callable[[], bool] | None = None

    def over(self) -> bool:
        return self._over or self.is_inherited()

    def is_inherited(self) -> bool:
        """Whether this is a forked child's copy."""
        return _fork.here() != self._home

    def valid_for(self) -> float:
        """For how many seconds it is proven to be the caller's; 0 if it is not. Then it is lost.

        Exception: a lease on which nothing stands is not lost, and may be valid again. Before something is started on a lease, the lease is
        seen to be valid: so the clock is read last here.
        """
        if self._over or self._found:
            return 0.0
        if self.is_inherited():
            self._found = LostError(self.what, ForkedError(_fork.INHERITED))
        elif self._borrowed is not None:
            left = self._borrowed.valid_for()
            if (lost := self._borrowed.lost()) is not None:
                self._found = LostError(self.what, lost.cause)
            return left
        else:
            counted = self._carries is None or self._carries() or bool(self._dependents)
            if (left := self.until - _clock.now()) > 0:
                return left
            if counted and self.asked is not None:
                self._found = LostError(self.what, _expired())
        return 0.0

    def lost(self) -> LostError | None:
        """Why it was lost; None as long as it is not, and if it was given up."""
        self.valid_for()
        return self._lost if self._over else self._found

    def was_given_up(self) -> bool:
        return self._over and self._lost is None

    def cause(self) -> SidekeeperError:
        """Why what depends on it has ended too."""
        lost = self.lost()
        return lost.cause if lost else named("LEASE_CLOSED", "the lease is closed")

    def extend(self, asked: float, valid_for: float) -> None:
        """Applies an answer to a question sent at `asked`. A slow answer may prove less than an earlier one; both are true. One that
        arrives after the end changes nothing."""
        self.valid_for()
        if not self._found:
            self.asked, self.until = max(asked, asked if self.asked is None else self.asked), max(self.until, asked + valid_for)

    def carries(self, anything: Callable[[], bool]) -> None:
        """Says that it is a lease, and whether anything is on its stream, or that is broken."""
        self._carries = anything

    def next_check(self) -> float:
        """When to ask for its validity again."""
        return NEVER if self.asked is None else self.asked + _check_interval(self.until - self.asked)

    def cancels(self, cancel: Callable[[], object]) -> None:
        """Sets how to cancel its stream."""
        self._cancel = cancel

    def on_end(self, listener: Callable[[], object]) -> None:
        """Calls listener when it ends, before the sidecar learns of it; at once if it has ended."""
        if self._over:
            listener()
        else:
            self._listeners.append(listener)

    def depends_on(self, other: Claim) -> None:
        """Ends it as soon as the other claim ends, before the other one's stream does."""
        other._dependents[self] = None
        self.on_end(lambda: other._dependents.pop(self, None))
        if other.over():
            self.lose(other.cause())

    def lose(self, cause: SidekeeperError) -> None:
        self.abandon(LostError(self.what, cause))

    def abandon(self, lost: LostError | None = None) -> None:
        """Ends it and its stream; a forked child's copy of the stream belongs to the parent."""
        self.end(lost)
        cancel, self._cancel = self._cancel, lambda: None  # which keeps the call, and that keeps gRPC
        if not self.is_inherited():
            cancel()

    def end(self, lost: LostError | None = None) -> None:
        """Ends it and what depends on it before it returns: when its stream ends, the sidecar grants all of that to others."""
        if not self._over:
            self.valid_for()
            self._lost = self._found or lost  # before _over, for other threads that read
            self._over = True
            dependents, self._dependents = self._dependents, {}
            listeners, self._listeners = self._listeners, []
            for dependent in dependents:
                dependent.lose(self.cause())
            for listener in listeners:
                notify(listener)
            self.ended.set()


def quiet(task: asyncio.Task[None]) -> None:
    """Keeps asyncio from complaining that the task has not ended when a program ends without closing its client: it has nothing to do."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]


def notify(listener: Callable[..., object] | None, *news: object) -> None:
    """Calls a listener, if there is one. It logs whatever the listener raises, even SystemExit: a listener must not end what it listens to,
    nor the event loop. A CancelledError is the listener's own: asyncio cancels no task while the task calls a listener."""
    try:
        if listener is not None:
            listener(*news)
    except BaseException:
        log.exception("a callback failed")


@dataclass(frozen=True)
class Answer:
    """What the sidecar says about one claim."""

    valid_for: float
    end: SidekeeperError | None = None
    given_up: bool = False


Ask = Callable[[list[str], float], Awaitable[Mapping[str, Answer]]]
"""Asks about the claims of some ids, within a timeout in seconds."""

NEVER = math.inf
PAUSE_AFTER_FAILURE = 0.25
SHORTEST_TIMEOUT = 0.1
SHORTEST_PAUSE = 0.05
FIRST_TIMEOUT = 5.0


class Checker:
    """Asks the sidecar regularly how long claims are valid, and ends those that it does not confirm in time."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._claims: dict[str, Claim] = {}
        self._closed = False
        self._not_before = 0.0
        self._changed = (asyncio.Event(), asyncio.Event())
        self._tasks = [
            asyncio.create_task(self._loop(self._changed[0], self._end_expired), name="sidekeeper: expire"),
            asyncio.create_task(self._loop(self._changed[1], self._check_due), name="sidekeeper: check"),
        ]
        for task in self._tasks:
            quiet(task)

    async def begin(self, key: str, claim: Claim) -> None:
        """Asks for the first validity, and keeps the deadline from then on. Raises the cause of the claim's end, or the error of the
        question."""
        sent = _clock.before()
        self._apply({key: claim}, sent, await self._ask([key], FIRST_TIMEOUT))
        if claim.valid_for() == 0:
            claim.lose(_expired())
        elif self._closed:
            claim.lose(closed())
        else:
            self._claims[key] = claim
            claim.on_end(lambda: self._claims.pop(key, None))
            for changed in self._changed:
                changed.set()
        if (lost := claim.lost()) is not None:
            raise lost.cause

    def end_all(self) -> None:
        """Ends all claims, and those that begin later."""
        self._closed = True
        for claim in list(self._claims.values()):
            claim.lose(closed())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _loop(self, changed: asyncio.Event, step: Callable[[], Awaitable[float]]) -> None:
        home = _fork.here()
        while _fork.here() == home:
            due = await step()
            pause = None if due == NEVER else max(0.0, min(due - _clock.before(), _clock.LONGEST_NAP))
            try:
                await asyncio.wait_for(changed.wait(), pause)
            except TimeoutError:
                continue
            changed.clear()

    async def _end_expired(self) -> float:
        for claim in list(self._claims.values()):
            if (lost := claim.lost()) is not None:
                claim.abandon(lost)
        now = _clock.before()
        return min((claim.until if claim.until > now else now + _clock.LONGEST_NAP for claim in self._claims.values()), default=NEVER)

    async def _check_due(self) -> float:
        if self._claims and self._due() <= _clock.before():
            await self._check()
        return self._due()

    def _due(self) -> float:
        return max(min((claim.next_check() for claim in self._claims.values()), default=NEVER), self._not_before)

    async def _check(self) -> None:
        """Asks about all claims at once. The timeout is half of the shortest validity, or of a second if nothing is valid: after that a new
        question proves more."""
        claims = dict(self._claims)
        shortest = min((left for claim in claims.values() if (left := claim.valid_for()) > 0), default=1.0)
        sent = _clock.before()
        try:
            answers = await self._ask(sorted(claims), max(shortest / 2, SHORTEST_TIMEOUT))
        except SidekeeperError as error:
            log.debug("check: %s", error)
            self._not_before = _clock.before() + PAUSE_AFTER_FAILURE
            return
        self._apply(claims, sent, answers)
        self._changed[0].set()  # for a lease that is valid again

    def _apply(self, claims: Mapping[str, Claim], sent: float, answers: Mapping[str, Answer]) -> None:
        for key, answer in answers.items():
            claim = claims.get(key)
            if claim is None:
                continue
            if answer.given_up:
                claim.abandon()
            elif answer.end is not None:
                claim.lose(answer.end)
            else:
                claim.extend(sent, answer.valid_for)


def _check_interval(validity: float) -> float:
    """A quarter of the validity in seconds, or one second if that leaves at least half of it. A lease whose validity has run out is asked
    about all the same."""
    return max(validity / 4, min(1.0, validity / 2), SHORTEST_PAUSE) if validity > 0 else PAUSE_AFTER_FAILURE


def _expired() -> SidekeeperError:
    unreadable = "the clock on which its validity is counted cannot be read"
    expired = "the sidecar has not confirmed it in time and its validity has run out"
    return named("LEASE_LOST", unreadable if _clock.now() == NEVER else expired)
