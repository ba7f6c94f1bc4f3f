"""What a caller who waits does when its stream is cut without a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar
from proxy import Proxy


async def acquire(client: aio.Client, on_queued: Callable[[sidekeeper.Queued], object]) -> aio.Lock | aio.Tick:
    return await client.acquire("reports", on_queued=on_queued)


async def work(client: aio.Client, on_queued: Callable[[sidekeeper.Queued], object]) -> aio.Lock | aio.Tick:
    return await client.work("reports", on_queued=on_queued)


@pytest.mark.parametrize("wait", [acquire, work])
async def test_a_caller_that_waits_asks_again_after_its_stream_was_cut(
    wait: Callable[[aio.Client, Callable[[sidekeeper.Queued], object]], Awaitable[aio.Lock | aio.Tick]],
    client: aio.Client,
    sidecar: Sidecar,
) -> None:
    sidecar.put_schedule("reports")
    sidecar.run_schedule("reports", "now")
    holder = await client.acquire("reports")
    told: list[int] = []

    async def until_told(before: int) -> None:
        async with asyncio.timeout(PATIENT):
            while len(told) == before:
                await asyncio.sleep(0.01)

    async with Proxy(sidecar.address.removeprefix("unix://")) as proxy, aio.Client(proxy.address) as away:
        waiting = asyncio.ensure_future(wait(away, lambda queued: told.append(queued.position)))
        await until_told(0)
        for cut in (proxy.close_connections, proxy.reset_streams, proxy.close_connections):
            before = len(told)
            cut()
            await until_told(before)
            assert not waiting.done()
        await holder.release()
        async with asyncio.timeout(PATIENT):
            held = await waiting
        assert held.valid
        await held.release()
