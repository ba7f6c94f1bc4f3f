"""What a caller has for as long as a stream lives and its validity runs, and who keeps the deadlines."""

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
    """A hold, a lease or a membership. It ends once, with the first cause given to end, or found by who looks: its validity has run
    out, or the process was forked. Any thread may look; but for what is found, only the event loop of its client changes it.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.ended = asyncio.Event()
        self.suspended_since: float | None = None
        self.asked: float | None = None
        self.until = 0.0
        self._home = _fork.here()
        self._over = False
        self._lost: LostError | None = None
        self._found: LostError | None = None
        self._cut: Callable[[], object] = lambda: None
        self._listeners: list[Callable[[], object]] = []
        self._falls: dict[Claim, Callable[[], None]] = {}

    def over(self) -> bool:
        return self._over or self.is_inherited()

    def is_inherited(self) -> bool:
        """Whether this is the copy that a forked child has."""
        return _fork.here() != self._home

    def valid_for(self) -> float:
        """For how many seconds it is certainly the caller's; 0 if it is not, and from then on."""
        if self._over or self._found:
            return 0.0
        left = self.until - _clock.now()
        if left > 0 and not self.is_inherited():
            return left
        self._find()
        return 0.0

    def lost(self) -> LostError | None:
        """Why it was lost; None as long as it is not, and if it was given up."""
        self.valid_for()
        return self._lost if self._over else self._found

    def _find(self) -> None:
        """Finds what has ended it without anybody's word, if it was ever valid."""
        if self.is_inherited():
            self._found = LostError(self.what, ForkedError(_fork.INHERITED))
        elif self.asked is not None:
            self._found = LostError(self.what, _outlived())

    def prove(self, asked: float, valid_for: float) -> None:
        """Takes in an answer. One that came slowly may tell of an earlier end than one before; both are true. One that came too late
        changes nothing."""
        self.valid_for()
        if not self._found:
            self.asked, self.until = max(asked, asked if self.asked is None else self.asked), max(self.until, asked + valid_for)

    def due(self) -> float:
        """When to ask for it again."""
        return NEVER if self.asked is None else self.asked + _patience(self.until - self.asked)

    def streams_over(self, cut: Callable[[], object]) -> None:
        """Says how to end its stream."""
        self._cut = cut

    def when_over(self, listener: Callable[[], object]) -> None:
        """Has listener called at its end, before the sidecar learns of it; at once if it is over."""
        if self._over:
            listener()
        else:
            self._listeners.append(listener)

    def stand_on(self, ground: Claim, fall: Callable[[], None]) -> None:
        """Has fall called as soon as another claim ends, before that one's stream does."""
        ground._falls[self] = fall
        self.when_over(lambda: ground._falls.pop(self, None))
        if ground.over():
            fall()

    def lose(self, cause: SidekeeperError) -> None:
        self.abandon(LostError(self.what, cause))

    def abandon(self, lost: LostError | None) -> None:
        """Ends it and its stream; a forked child's copy of the stream is the parent's."""
        self.end(lost)
        cut, self._cut = self._cut, lambda: None  # which keeps the call, and that keeps gRPC
        if not self.is_inherited():
            cut()

    def end(self, lost: LostError | None) -> None:
        """Ends it and what stands on it, before it returns: whoever ends the stream next tells the sidecar, which gives all of it to
        others."""
        if not self._over:
            self.valid_for()
            self._lost = self._found or lost  # first, for who looks meanwhile
            self._over = True
            falls, self._falls = list(self._falls.values()), {}
            listeners, self._listeners = self._listeners, []
            for call in (*falls, *listeners):
                try:
                    call()
                except Exception:
                    log.exception("a listener of %s failed", self.what)
            self.ended.set()


@dataclass(frozen=True)
class Answer:
    """What the sidecar says about one claim."""

    valid_for: float
    end: SidekeeperError | None = None
    given_up: bool = False


Ask = Callable[[list[str], float], Awaitable[Mapping[str, Answer]]]

NEVER = math.inf
UNREADABLE = "the clock on which its validity is counted cannot be read"
PAUSE_AFTER_FAILURE = 0.25
SHORTEST_PATIENCE = 0.1
FIRST_PATIENCE = 5.0


class Keeper:
    """Asks the sidecar regularly for how long claims are valid, and ends those that were not confirmed in time."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._claims: dict[str, Claim] = {}
        self._closed = False
        self._resting = 0.0
        self._news = (asyncio.Event(), asyncio.Event())
        self._tasks = [
            asyncio.create_task(self._loop(self._news[0], self._end_expired), name="sidekeeper: end what has run out"),
            asyncio.create_task(self._loop(self._news[1], self._ask_regularly), name="sidekeeper: check"),
        ]

    async def begin(self, key: str, claim: Claim) -> None:
        """Asks for the first validity, and keeps the deadline from then on. Raises the cause of the claim's end, or the want of an
        answer."""
        sent = _clock.before()
        self._take({key: claim}, sent, await self._ask([key], FIRST_PATIENCE))
        if claim.valid_for() == 0:
            claim.lose(_outlived())
        elif self._closed:
            claim.lose(closed())
        else:
            self._claims[key] = claim
            claim.when_over(lambda: self._forget(key))
            self._tell()
        if (lost := claim.lost()) is not None:
            raise lost.cause

    def end_all(self) -> None:
        """Ends all claims, and those that begin."""
        self._closed = True
        for claim in list(self._claims.values()):
            claim.lose(closed())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _forget(self, key: str) -> None:
        self._claims.pop(key, None)

    def _tell(self) -> None:
        for news in self._news:
            news.set()

    async def _loop(self, news: asyncio.Event, step: Callable[[], Awaitable[float]]) -> None:
        home = _fork.here()
        while _fork.here() == home:
            due = await step()
            pause = None if due == NEVER else max(0.0, min(due - _clock.before(), _clock.LONGEST_NAP))
            try:
                await asyncio.wait_for(news.wait(), pause)
            except TimeoutError:
                continue
            news.clear()

    async def _end_expired(self) -> float:
        for claim in list(self._claims.values()):
            if claim.valid_for() == 0:
                claim.lose(_outlived())
        return min((claim.until for claim in self._claims.values()), default=NEVER)

    async def _ask_regularly(self) -> float:
        if self._claims and self._due() <= _clock.before():
            await self._question()
        return self._due()

    def _due(self) -> float:
        return max(min((c.due() for c in self._claims.values()), default=NEVER), self._resting)

    async def _question(self) -> None:
        """Asks for all claims at once. An answer is waited for while half of the shortest validity passes: then a new question is
        worth more."""
        claims = dict(self._claims)
        shortest = min(claim.valid_for() for claim in claims.values())
        sent = _clock.before()
        try:
            answers = await self._ask(sorted(claims), max(shortest / 2, SHORTEST_PATIENCE))
        except SidekeeperError as error:
            log.debug("check: %s", error)
            self._resting = _clock.before() + PAUSE_AFTER_FAILURE
            return
        self._take(claims, sent, answers)

    def _take(self, claims: Mapping[str, Claim], sent: float, answers: Mapping[str, Answer]) -> None:
        for key, answer in answers.items():
            claim = claims.get(key)
            if claim is None:
                continue
            if answer.given_up:
                claim.abandon(None)
            elif answer.end is not None:
                claim.lose(answer.end)
            else:
                claim.prove(sent, answer.valid_for)


def _patience(validity: float) -> float:
    """How long to let pass between two questions: a quarter of the validity told, and a second at least where that leaves half
    of it."""
    return max(validity / 4, min(1.0, validity / 2))


def _outlived() -> SidekeeperError:
    return named(
        "LEASE_LOST", UNREADABLE if _clock.now() == NEVER else "the sidecar has not confirmed it in time and its validity has run out"
    )
