"""Watches whose sidecar falls silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sidekeeper
from sidekeeper import _sync, _transport
from sidekeeper._config import ConfigView, _events
from sidekeeper._types import LockView
from sidekeeper.config.v1 import config_pb2
from sidekeeper.hold.v1 import hold_pb2
from sidekeeper.lock.v1 import lock_pb2

from conftest import PATIENT

SHORT = 0.2
KEPT = hold_pb2.Keepalive()


class Stream:
    """A stream on which nothing comes after its messages."""

    def __init__(self, *messages: Any) -> None:
        self.messages = list(messages)
        self.cancelled = False

    async def read(self) -> Any:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    def cancel(self) -> bool:
        self.cancelled = True
        return True


class Method:
    """A watch that is opened again and again, with the same messages each time."""

    def __init__(self, *messages: Any) -> None:
        self.messages = messages
        self.opened: list[Stream] = []
        self.asked: list[int] = []

    def __call__(self, request: Any) -> Stream:
        self.asked.append(request.keepalive.ToMilliseconds())
        self.opened.append(Stream(*self.messages))
        return self.opened[-1]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transport, "SILENCE_TIMEOUT", SHORT)


async def first(items: Any, number: int, of: Callable[[Any], object]) -> list[object]:
    async with asyncio.timeout(PATIENT):
        seen = [of(await anext(items)) for _ in range(number)]
        await items.aclose()
    return seen


async def test_the_last_view_is_stale_while_the_sidecar_is_silent() -> None:
    view = lock_pb2.WatchResponse(view=lock_pb2.View(name="orders"))
    watch = Method(lock_pb2.WatchResponse(keepalive=KEPT), view)
    views = _transport.views(watch, lock_pb2.WatchRequest(name="orders"), LockView._of)
    assert await first(views, 4, lambda shown: (shown.name, shown.stale)) == 2 * [("orders", False), ("orders", True)]
    assert watch.asked == 2 * [40]
    assert watch.opened[0].cancelled


async def test_a_view_that_the_sidecar_calls_stale_is_not_yielded_again_as_such() -> None:
    view = lock_pb2.WatchResponse(view=lock_pb2.View(name="orders"), stale=True)
    watch = Method(lock_pb2.WatchResponse(keepalive=KEPT), view)
    views = _transport.views(watch, lock_pb2.WatchRequest(name="orders"), LockView._of)
    await first(views, 2, lambda shown: shown.stale)
    assert len(watch.opened) == 2


def test_a_sidecar_is_timed_from_its_first_keepalive_on() -> None:
    heard = _transport.Heard()
    heard.note(lock_pb2.WatchResponse(view=lock_pb2.View(name="orders")))
    assert (heard.timeout(), heard.ago()) == (None, 0.0)
    heard.note(lock_pb2.WatchResponse(keepalive=KEPT))
    heard.note(lock_pb2.WatchResponse(view=lock_pb2.View(name="orders")))
    assert heard.timeout() == SHORT
    assert 0 <= heard.ago() < PATIENT


async def test_the_age_of_a_configuration_counts_from_when_the_sidecar_was_last_heard() -> None:
    synced = config_pb2.WatchResponse(synced=config_pb2.Synced())
    watch = Method(config_pb2.WatchResponse(keepalive=KEPT), synced)
    view = ConfigView()
    ages: list[float] = []

    def take(event: sidekeeper.ConfigEvent) -> str:
        view._take(event)
        ages.append(view.age())
        return event.kind.value

    stub = type("Stub", (), {"Watch": staticmethod(watch)})
    assert await first(_events(stub, config_pb2.WatchRequest()), 3, take) == ["state", "stale", "state"]
    assert (ages[0], ages[2]) == (0, 0)
    assert SHORT * 0.9 <= ages[1] < PATIENT


@pytest.mark.parametrize("kind", [sidekeeper.ConfigEventKind.STATE, sidekeeper.ConfigEventKind.CHANGED])
async def test_a_view_shows_one_moment_while_it_is_replaced(kind: sidekeeper.ConfigEventKind) -> None:
    stored, other = sidekeeper.Entry("flags/a"), sidekeeper.Entry("flags/b")
    changes = (sidekeeper.ConfigChange(stored), sidekeeper.ConfigChange(other))
    view = ConfigView()
    view._take(sidekeeper.ConfigEvent(sidekeeper.ConfigEventKind.STATE, changes))
    items, keys, values, threads = iter(view.items()), iter(view), iter(view.values()), iter(_sync.ConfigView(view).items())

    def removed() -> Iterator[sidekeeper.ConfigChange]:
        if kind is sidekeeper.ConfigEventKind.STATE:
            yield sidekeeper.ConfigChange(stored)
        yield sidekeeper.ConfigChange(other, deleted=True)
        assert dict(view) == {"flags/a": stored, "flags/b": other}  # until all has been taken in

    view._take(sidekeeper.ConfigEvent(kind, removed()))  # type: ignore[arg-type]
    assert dict(view) == {"flags/a": stored}
    assert list(items) == list(threads) == [("flags/a", stored), ("flags/b", other)]
    assert (list(keys), list(values)) == (["flags/a", "flags/b"], [stored, other])
