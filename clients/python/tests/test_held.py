"""The mechanism by which all is held: it names no recipe, and takes one that it has never heard of."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import _claim, _held
from sidekeeper._claim import Answer
from sidekeeper._held import Attempt, HeldStream, Kind, Streams, Told

RECIPES = {
    *("lock", "locks", "group", "groups", "member", "members", "membership", "joined", "semaphore", "permit", "permits"),
    *("election", "leader", "candidate", "barrier", "entry", "sequence", "config", "queue", "queued"),
}


@pytest.mark.parametrize("module", [_held, _claim])
def test_the_mechanism_names_no_recipe(module: Any) -> None:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", Path(module.__file__).read_text())
    assert not RECIPES & {word.lower() for word in words}


class Script:
    """A stream that sends what it is given, and then ends with a reason."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Told | sidekeeper.SidekeeperError] = asyncio.Queue()
        self.did: list[str] = []

    async def next(self) -> Told:
        event = await self.events.get()
        if isinstance(event, sidekeeper.SidekeeperError):
            raise event
        return event

    def on_end(self, _: Any) -> None: ...

    def give_up(self) -> None: ...

    def cancel(self) -> bool:
        self.did.append("cancelled")
        return True


class Permit(HeldStream):
    seats = 0

    def _grant(self, granted: int) -> str:
        self.seats = granted
        return "a key"


async def test_a_recipe_that_it_has_never_heard_of_is_held() -> None:
    script, streams = Script(), Streams()

    async def give_up(key: str) -> None:
        script.did.append(f"{key} given up")

    async def check(keys: list[str], _: float) -> dict[str, Answer]:
        return dict.fromkeys(keys, Answer(3.0))

    checker = streams.checker(check)
    kind = Kind(streams, lambda _: script, "seated", give_up=give_up, checker=checker, acknowledged=True)
    for event in (("waiting", None), ("seated", 3)):
        script.events.put_nowait(event)
    permit = await Permit(kind, "permit orders")._open(None, Attempt(None))
    assert (permit.seats, permit.valid, permit.suspended) == (3, True, False)
    assert 2.9 < permit.valid_for <= 3

    suspensions: asyncio.Queue[bool] = asyncio.Queue()
    permit._on_suspension.append(suspensions.put_nowait)
    for event in (("suspended", None), ("suspended", None), ("resumed", None)):
        script.events.put_nowait(event)
    assert [await suspensions.get() for _ in range(2)] == [True, False]

    script.events.put_nowait(sidekeeper.LeaseLostError(grpc.StatusCode.ABORTED, "expired"))
    await permit.wait_ended()
    assert not permit.valid
    assert "permit orders" in str(permit.error)
    assert permit.error is not None
    assert isinstance(permit.error.cause, sidekeeper.LeaseLostError)
    with pytest.raises(sidekeeper.LostError):
        await permit._give_up()
    assert script.did == ["cancelled", "a key given up"]
    checker.end_all()
    await checker.stop()
