"""Functions whose work is done once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

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


def test_work_that_runs_after_its_call_is_refused(threaded: sidekeeper.Client) -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    async def both() -> AsyncIterator[int]:
        yield 1

    for function in (coroutine, generator, both):
        with pytest.raises(TypeError):
            sidekeeper.done_once(threaded, "a", "b")(function)
    with pytest.raises(TypeError, match=r"use sidekeeper\.done_once"):
        aio.done_once(lambda: pytest.fail("it is not called"), "a", "b")(print)  # type: ignore[arg-type]
