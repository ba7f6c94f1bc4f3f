"""One kept object of `client.lock(…)` and its like, entered by several threads or tasks: each leaves what it has entered."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import sidekeeper
from sidekeeper import Mode, aio

from conftest import PATIENT

READ = {"mode": Mode.READ}


class Other(threading.Thread):
    """A thread whose body is inside until it is told to leave."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept, self.inside, self.leave = kept, threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self.held: Any = None
        self.start()
        assert self.inside.wait(PATIENT)

    def run(self) -> None:
        try:
            with self.kept as self.held:
                self.inside.set()
                self.leave.wait(PATIENT)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.leave.set()
        self.join(PATIENT)


@pytest.mark.parametrize("of", ["lock", "locks"])
def test_a_thread_leaves_what_it_has_entered(of: str, threaded: sidekeeper.Client) -> None:
    wanted = "orders" if of == "lock" else sidekeeper.WantedLock("orders", Mode.READ)
    kept = getattr(threaded, of)(wanted, **(READ if of == "lock" else {}))
    first, second = Other(kept), Other(kept)
    with kept as mine:
        first.end()
        assert (first.error, first.held.valid, second.held.valid, mine.valid) == (None, False, True, True)
    assert (second.held.valid, mine.valid) == (True, False)
    second.end()
    assert (second.error, second.held.valid) == (None, False)


def test_a_thread_may_enter_twice(threaded: sidekeeper.Client) -> None:
    kept = threaded.lock("orders", mode=Mode.READ)
    with kept as outer:
        with kept as inner:
            assert inner is not outer
        assert (inner.valid, outer.valid) == (False, True)
    assert not outer.valid


def test_a_thread_that_has_not_entered_leaves_nothing_of_others(threaded: sidekeeper.Client) -> None:
    kept = threaded.lock("orders", mode=Mode.READ)
    with pytest.raises(RuntimeError, match="leave where you have entered"):
        kept.__exit__(None, None, None)
    others = Other(kept), Other(kept)
    with pytest.raises(RuntimeError, match="leave where you have entered"):
        kept.__exit__(None, None, None)
    assert all(other.held.valid for other in others)
    for other in others:
        other.end()
        assert other.error is None


def test_a_generator_is_closed_by_another_thread(threaded: sidekeeper.Client) -> None:
    def items() -> Generator[sidekeeper.Lock]:
        with threaded.lock("orders") as lock:
            yield lock

    generator = items()
    lock = contextvars.copy_context().run(next, generator)  # whose guard stays
    closing = threading.Thread(target=generator.close)
    closing.start()
    closing.join(PATIENT)
    assert not lock.valid


Keep = Callable[[aio.Client], AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize(
    "keep", [lambda client: client.lock("orders", mode=Mode.READ), lambda client: client.permits("seats")], ids=["lock", "permits"]
)
async def test_a_task_leaves_what_it_has_entered(keep: Keep, client: aio.Client) -> None:
    await client.create_semaphore("seats", 3)
    kept = keep(client)

    async def other(inside: asyncio.Future[Any], leave: asyncio.Event) -> None:
        async with kept as held:
            inside.set_result(held)
            await leave.wait()

    leave_first, leave_second = asyncio.Event(), asyncio.Event()
    in_first, in_second = (asyncio.get_running_loop().create_future() for _ in range(2))
    first, second = asyncio.create_task(other(in_first, leave_first)), asyncio.create_task(other(in_second, leave_second))
    held_first, held_second = await in_first, await in_second
    with pytest.raises(RuntimeError, match="leave where you have entered"):
        await kept.__aexit__(None, None, None)
    leave_first.set()
    await first
    assert (held_first.valid, held_second.valid) == (False, True)
    leave_second.set()
    await second
    assert not held_second.valid


async def test_a_generator_is_closed_by_another_task(client: aio.Client) -> None:
    async def items() -> AsyncIterator[aio.Lock]:
        async with client.lock("orders") as lock:
            yield lock

    generator: Any = items()
    lock = await anext(generator)
    await asyncio.create_task(generator.aclose())
    assert not lock.valid
