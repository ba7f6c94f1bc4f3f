"""Functions each of whose calls holds a lock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar


def test_a_call_holds_the_lock_that_its_arguments_name(threaded: sidekeeper.Client) -> None:
    @sidekeeper.locked(threaded, lambda account, **_: f"accounts/{account}", owner="billing")
    def bill(account: int, *, cents: int) -> int:
        holder = threaded.get_lock(f"accounts/{account}").holders[0]
        assert (holder.owner, holder.fencing_token) == ("billing", sidekeeper.current_lock().fencing_token)
        return cents

    assert bill(7, cents=5) + bill(8, cents=6) == 11
    assert bill.__name__ == "bill"
    assert not threaded.get_lock("accounts/7").holders
    with pytest.raises(LookupError):
        sidekeeper.current_lock()


def test_a_call_whose_lock_is_taken_raises_or_is_skipped(threaded: sidekeeper.Client) -> None:
    calls: list[str] = []
    strict = sidekeeper.locked(lambda: threaded, "orders", wait=0)(calls.append)
    lenient = sidekeeper.locked(lambda: threaded, "orders", skip=True)(calls.append)
    patient = sidekeeper.locked(lambda: threaded, "orders", skip=True, wait=0.1)(calls.append)
    with threaded.lock("orders"):
        with pytest.raises(sidekeeper.LockHeldError):
            strict("strict")
        lenient("lenient")
        patient("patient")
    assert calls == []
    until = time.monotonic() + PATIENT
    while not calls and time.monotonic() < until:  # what has failed leaves its place a moment later
        lenient("lenient")
    assert calls == ["lenient"]


def test_a_function_whose_own_lock_is_taken_is_not_skipped(threaded: sidekeeper.Client) -> None:
    @sidekeeper.locked(threaded, "outer", skip=True)
    def call() -> None:
        threaded.acquire("outer", wait=0)

    with pytest.raises(sidekeeper.LockHeldError):
        call()


def test_a_function_asks_whether_it_has_lost_its_lock(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    @sidekeeper.locked(threaded, "orders")
    def work() -> None:
        sidecar.expire("orders")
        assert sidekeeper.current_lock().wait_should_stop(PATIENT)

    with pytest.raises(sidekeeper.LostError):
        work()


def test_what_runs_after_its_call_is_refused(threaded: sidekeeper.Client, client: aio.Client) -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    async def both() -> AsyncIterator[int]:
        yield 1

    for function in (coroutine, generator, both):
        with pytest.raises(TypeError):
            sidekeeper.locked(threaded, "orders")(function)
    for wrong in (generator, both, print):
        with pytest.raises(TypeError):
            aio.locked(client, "orders")(wrong)  # type: ignore[arg-type]


async def test_a_coroutine_is_cancelled_when_its_lock_is_lost(client: aio.Client, sidecar: Sidecar) -> None:
    ended: list[str] = []

    @aio.locked(client, lambda name: name)
    async def work(name: str) -> None:
        assert aio.current_lock().valid
        sidecar.expire(name)
        try:
            await asyncio.sleep(PATIENT)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(sidekeeper.LostError):
        await work("orders")
    assert ended == ["cancelled"]


async def test_a_coroutine_whose_lock_is_taken_raises_or_is_skipped(client: aio.Client) -> None:
    async def work() -> int:
        return 1

    async with client.lock("orders"):
        assert await aio.locked(client, "orders", skip=True)(work)() is None
        with pytest.raises(sidekeeper.WaitTimeoutError):
            await aio.locked(lambda: client, "orders", wait=0.1)(work)()
    assert await aio.locked(client, "orders", skip=True)(work)() == 1
