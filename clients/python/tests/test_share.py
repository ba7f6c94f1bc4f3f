"""Work that is shared out among the members of a set, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import sidekeeper
from sidekeeper import _share, aio

from conftest import PATIENT, Sidecar


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENT):
        while not happened():
            await asyncio.sleep(0.005)


class Floor:
    """Where handlers work, each until it is told to stop. No item is worked on by two at once."""

    def __init__(self) -> None:
        self.working: dict[str, str] = {}
        self.runs: dict[str, int] = {}
        self.assigned: list[sidekeeper.Assignment] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    def begin(self, member: str, item: str) -> None:
        assert item not in self.working, f"{member} and {self.working[item]} work on {item}"
        self.working[item] = member
        self.runs[item] = self.runs.get(item, 0) + 1

    def items_of(self, member: str) -> set[str]:
        return {item for item, by in self.working.items() if by == member}

    async def work(self, member: str, item: aio.Item) -> None:
        self.begin(member, item.item)
        try:
            await asyncio.sleep(PATIENT * 2)
        finally:
            while not self.may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await self.may_end.wait()
            del self.working[item.item]


@pytest.fixture
def floor() -> Floor:
    return Floor()


@asynccontextmanager
async def sharing(client: aio.Client, member: str, handler: Callable[[aio.Item], Any], **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Shares while its body runs."""
    task: asyncio.Task[None] = asyncio.ensure_future(client.share("orders", handler, member=member, **options))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENT)


async def test_items_move_to_another_member_and_back_when_their_handlers_have_ended(
    client: aio.Client, sidecar: Sidecar, floor: Floor
) -> None:
    sidecar.define("orders", "a", "b", "c", "d")
    async with aio.Client(sidecar.address) as other, sharing(client, "one", lambda item: floor.work("one", item)) as one:
        await until(lambda: len(floor.items_of("one")) == 4)
        floor.may_end.clear()
        async with sharing(other, "two", lambda item: floor.work("two", item), on_assigned=floor.assigned.append):
            await until(lambda: bool(floor.assigned) and len(floor.assigned[-1].items) == 2)
            last = floor.assigned[-1]
            assert (last.members, last.total, last.unassigned) == (2, 4, 0)
            async for view in other.watch_lock(f"orders/{last.items[0]}"):
                if view.waiters:
                    break
            assert (view.holders[0].metadata["member"], view.waiters[0].metadata["member"]) == ("one", "two")
            assert len(floor.items_of("one")) == 4  # those that move have been told to stop, and have not ended
            floor.may_end.set()
            await until(lambda: floor.items_of("two") == set(last.items))
            assert len(floor.items_of("one")) == 2
            one.cancel()
            await until(lambda: len(floor.items_of("two")) == 4)
            assert one.cancelled()
    assert set(floor.runs.values()) == {2}


async def test_a_member_that_drains_has_its_items_move_first(client: aio.Client, sidecar: Sidecar, floor: Floor) -> None:
    sidecar.define("orders", "a", "b")
    async with aio.Client(sidecar.address) as other:
        first = sharing(client, "one", lambda item: floor.work("one", item), drain=True, drain_timeout=PATIENT)
        async with sharing(other, "two", lambda item: floor.work("two", item)), first as one:
            await until(lambda: len(floor.items_of("one")) == 1 and len(floor.items_of("two")) == 1)
            one.cancel()
            await until(lambda: floor.items_of("two") == {"a", "b"})
            await until(one.done)
            assert one.cancelled()
            assert sum(floor.runs.values()) == 3


async def test_a_member_that_is_told_to_stop_twice_does_not_drain(client: aio.Client, sidecar: Sidecar, floor: Floor) -> None:
    sidecar.define("orders", "a")
    async with sharing(client, "one", lambda item: floor.work("one", item), drain=True, drain_timeout=PATIENT * 9) as one:
        await until(lambda: floor.runs == {"a": 1})
        floor.may_end.clear()
        for _ in range(3):
            one.cancel()
            await asyncio.sleep(0)
        assert not one.done()
        floor.may_end.set()
        await until(one.done)
        assert one.cancelled()
    assert not floor.working


async def test_a_handler_that_fails_or_returns_is_run_again(
    client: aio.Client, sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_share.Pauses, "_next", 0.02)
    sidecar.define("orders", "a", "b")
    failed: list[tuple[str, str]] = []
    runs = {"a": 0, "b": 0}
    tokens: list[int] = []

    async def handler(item: aio.Item) -> None:
        runs[item.item] += 1
        if item.item == "a":
            raise ValueError("no disk")
        assert (item.set, item.name, item.valid) == ("orders", "orders/b", True)
        assert sidekeeper.tickets() == (item.ticket(),)
        tokens.append(item.fencing_token)
        await client.config.put("made", "x")

    async with sharing(client, "one", handler, on_error=lambda item, error: failed.append((item, repr(error)))):
        await until(lambda: runs["a"] > 2 and runs["b"] > 2)
    assert set(failed) == {("a", "ValueError('no disk')")}
    assert tokens == sorted(set(tokens))
    async with sharing(client, "one", handler):
        await until(lambda: "share orders: it begins again: a" in caplog.text)
    assert "no disk" in caplog.text


async def test_what_has_its_lock_broken_or_revoked_is_told_to_stop(
    client: aio.Client, sidecar: Sidecar, floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_share.Pauses, "_next", 0.02)
    sidecar.define("orders", "a")
    async with sharing(client, "one", lambda item: floor.work("one", item)):
        await until(lambda: floor.runs == {"a": 1})
        await asyncio.to_thread(sidecar.break_lock, "orders/a", PATIENT)
        await until(lambda: floor.runs == {"a": 2})
        assert await client.revoke("orders/a") == 1
        await until(lambda: floor.runs == {"a": 3})
    assert not floor.working


async def test_a_lost_lease_begins_anew(client: aio.Client, sidecar: Sidecar, floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_share.Pauses, "_next", 0.02)
    sidecar.define("orders", "a")
    async with sharing(client, "one", lambda item: floor.work("one", item)) as one:
        await until(lambda: floor.runs == {"a": 1})
        floor.may_end.clear()
        sidecar.expire("orders/a")
        async with client.lock("orders/a", wait=PATIENT):  # it is lost, though its handler goes on
            assert floor.working == {"a": "one"}
        floor.may_end.set()
        await until(lambda: floor.runs == {"a": 2})
        sidecar.end()
        await until(lambda: not floor.working)
        sidecar.start()  # with an ensemble that has no such set
        await until(one.done)
    assert isinstance(one.exception(), sidekeeper.AssignmentNotFoundError)


async def test_what_ends_a_share_is_raised(client: aio.Client, sidecar: Sidecar, floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sidekeeper.AssignmentNotFoundError):
        await client.share("orders", print)  # type: ignore[arg-type]
    sidecar.define("orders", "a")
    monkeypatch.setattr(socket, "gethostname", lambda: "a/b")
    with pytest.raises(ValueError, match="give a member: by default the host's name is it, and that cannot be"):
        await client.share("orders", print)  # type: ignore[arg-type]
    with pytest.raises(sidekeeper.InvalidFieldError):
        await client.share("orders", print, member="a/b")  # type: ignore[arg-type]
    with pytest.raises(sidekeeper.InvalidFieldError):
        await client.share("orders", print, member="one", capacity=3_000)  # type: ignore[arg-type]
    lease = await client.open_lease()
    async with sharing(client, "one", lambda item: floor.work("one", item), lease=lease) as one:
        await until(lambda: floor.runs == {"a": 1})
        sidecar.expire("orders/a")
        await until(one.done)
    error = one.exception()
    assert isinstance(error, sidekeeper.LostError)
    assert isinstance(error.cause, sidekeeper.LeaseLostError)
    assert not floor.working
    async with aio.Client(sidecar.address) as other:
        with pytest.raises(ValueError, match="another client's"):
            await other.share("orders", print, lease=lease)  # type: ignore[arg-type]


async def test_an_item_that_leaves_the_set_is_given_up(client: aio.Client, sidecar: Sidecar, floor: Floor) -> None:
    sidecar.define("orders", "a")
    async with sharing(client, "one", lambda item: floor.work("one", item)):
        await until(lambda: floor.runs == {"a": 1})
        sidecar.define("orders", "b", drop=True)
        await until(lambda: floor.items_of("one") == {"b"})


def test_threads_share_until_they_are_told_to_stop(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    sidecar.define("orders", "a", "b")
    stop, began, told = threading.Event(), threading.Barrier(3), threading.Event()
    seen: list[str] = []
    failed: list[str] = []

    def handler(item: sidekeeper.Item) -> None:
        assert not item.should_stop()
        item.check()
        assert sidekeeper.tickets() == (item.ticket(),)
        threaded.config.put(item.item, "x")
        began.wait(PATIENT)
        assert item.wait_should_stop(PATIENT)
        item.check()  # it may end its work
        assert told.wait(PATIENT)
        seen.append(f"{item.set} {item.item} {item.valid}")
        if item.item == "b":
            raise SystemExit(1)

    def on_error(item: str, error: BaseException) -> None:
        failed.append(f"{item} {error}")

    options: sidekeeper.ShareOptions = {"member": "one", "on_error": on_error}
    sharing = threading.Thread(target=lambda: threaded.share("orders", handler, stop=stop, **options))
    sharing.start()
    began.wait(PATIENT)
    stop.set()
    told.set()
    sharing.join(PATIENT)
    assert not sharing.is_alive()
    assert sorted(seen) == ["orders a True", "orders b True"]
    assert failed == ["b the handler has raised SystemExit(1)"]
    assert not threaded.get_lock("orders/a").holders


def test_an_interruption_ends_a_share_when_its_handlers_have_ended(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    sidecar.define("orders", "a")
    ended: list[str] = []

    def handler(item: sidekeeper.Item) -> None:
        signal.raise_signal(signal.SIGINT)
        assert item.wait_should_stop(PATIENT)
        ended.append(item.item)

    with pytest.raises(KeyboardInterrupt):
        threaded.share("orders", handler, member="one")
    assert ended == ["a"]
    with pytest.raises(sidekeeper.AssignmentNotFoundError):
        threaded.share("others", handler)


def test_a_pause_is_twice_as_long_as_the_one_before() -> None:
    pauses = _share.Pauses()
    assert [pauses.after(0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [pauses.after(lasted) for lasted in (60, 59, 61, 0)] == [1, 2, 1, 2]


async def test_what_share_is_given_is_checked_before_anything_is_sent(client: aio.Client, threaded: sidekeeper.Client) -> None:
    with pytest.raises(TypeError, match="there is no option 'timeout'"):
        await client.share("orders", print, timeout=1)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="handler is None"):
        threaded.share("orders", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="stop is 5"):
        threaded.share("orders", print, stop=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity is -1"):
        threaded.share("orders", print, capacity=-1)
