"""Functions whose work is done once."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar, record, state


def test_a_function_does_its_work_once_for_its_arguments(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    @sidekeeper.done_once(lambda: threaded, "payments", key=lambda order, **_: f"order-{order}", owner="billing")
    def pay(order: int, *, cents: int) -> int:
        assert sidekeeper.current_attempt().key == f"order-{order}"
        if cents < 0:
            raise ValueError(cents)
        return cents

    assert (pay(7, cents=5), pay(7, cents=5), pay(8, cents=6)) == (5, None, 6)
    with pytest.raises(ValueError, match="-1"):
        pay(9, cents=-1)
    assert pay(9, cents=1) == 1
    assert record(sidecar, "payments", "order-9").attempt == 2
    assert pay.__name__ == "pay"
    with pytest.raises(LookupError):
        sidekeeper.current_attempt()


async def test_a_coroutine_does_its_work_once_for_its_arguments(client: aio.Client, sidecar: Sidecar) -> None:
    @aio.done_once(client, lambda shop, _: shop, lambda _, order: order)
    async def pay(shop: str, order: str) -> str:
        attempt = aio.current_attempt()
        if order == "lost" and attempt.number == 1:
            sidecar.expire(f"{shop}/{order}")
            await asyncio.sleep(PATIENT)
        return attempt.ticket().lock

    assert [await pay("books", "7"), await pay("books", "7"), await pay("books", "8")] == ["books/7", None, "books/8"]
    with pytest.raises(sidekeeper.LostError):
        await pay("books", "lost")
    assert await pay("books", "lost") == "books/lost"


def test_a_function_whose_own_work_is_done_is_not_skipped(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    threaded.once("inner", "k", lambda _: None)

    @sidekeeper.done_once(threaded, "outer", "k")
    def call() -> None:
        threaded.begin("inner", "k")

    with pytest.raises(sidekeeper.AlreadyDoneError):
        call()
    assert state(sidecar, "outer", "k") == "FAILED"


async def coroutine(*_: object) -> None: ...


def generator(*_: object) -> Iterator[int]:
    yield 1


async def both(*_: object) -> AsyncIterator[int]:
    yield 1


class Callee:
    async def __call__(self, *_: object) -> None: ...


HIDDEN: list[Callable[..., object]] = [lambda *_: coroutine(), lambda *_: generator(), lambda *_: both(), Callee()]
"""Functions whose work runs after their calls, which they do not show."""


def test_work_that_runs_after_its_call_is_refused(threaded: sidekeeper.Client) -> None:
    for function in (coroutine, generator, both):
        with pytest.raises(TypeError):
            sidekeeper.done_once(threaded, "a", "b")(function)
    with pytest.raises(TypeError, match=r"use sidekeeper\.done_once"):
        aio.done_once(lambda: pytest.fail("it is not called"), "a", "b")(print)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_work_that_has_not_run_when_its_call_returns_has_failed(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    for number, function in enumerate([*HIDDEN, coroutine, generator, both]):
        with pytest.raises(TypeError, match="has not run"):
            threaded.once("once", str(number), function)
        assert state(sidecar, "once", str(number)) == "FAILED"
    for number, function in enumerate(HIDDEN):
        with pytest.raises(TypeError, match="has not run"):
            sidekeeper.done_once(threaded, "done", str(number))(function)()
        assert state(sidecar, "done", str(number)) == "FAILED"


async def test_with_asyncio_work_may_be_any_function_that_runs(client: aio.Client, sidecar: Sidecar) -> None:
    ran: list[str] = []

    async def note(attempt: aio.Attempt) -> None:
        ran.append(attempt.key)

    works: dict[str, Callable[[aio.Attempt], object]] = {
        "coroutine": note,
        "plain": lambda attempt: ran.append(attempt.key),
        "partial": functools.partial(note),
        "task": lambda attempt: asyncio.ensure_future(note(attempt)),
    }
    for key, work in works.items():
        assert await client.once("mail", key, work)
        assert state(sidecar, "mail", key) == "SUCCEEDED"
    assert ran == list(works)
    for key, unrun in {"generator": generator, "both": both}.items():
        with pytest.raises(TypeError, match="has not run"):
            await client.once("mail", key, unrun)
        assert state(sidecar, "mail", key) == "FAILED"
