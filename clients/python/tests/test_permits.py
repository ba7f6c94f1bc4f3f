"""Permits of semaphores, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import time

import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar


async def test_permits_are_held_up_to_the_limit(client: aio.Client) -> None:
    await client.create_semaphore("api", 3)
    with pytest.raises(sidekeeper.SemaphoreExistsError):
        await client.create_semaphore("api", 4)
    first = await client.acquire_permits("api", permits=2, owner="first")
    assert first.valid
    second = await client.acquire_permits("api")
    assert second.token > first.token
    with pytest.raises(sidekeeper.SemaphoreFullError):
        await client.acquire_permits("api", wait=0)
    with pytest.raises(sidekeeper.TooManyPermitsError):
        await client.acquire_permits("api", permits=4)
    with pytest.raises(sidekeeper.SemaphoreNotFoundError):
        await client.acquire_permits("other")
    view = await client.get_semaphore("api")
    assert (view.limit, view.held, view.holders[0].owner, view.holders[0].permits) == (3, 3, "first", 2)
    positions: list[int] = []
    waiting = asyncio.ensure_future(client.acquire_permits("api", permits=2, on_queued=positions.append))
    async with asyncio.timeout(PATIENT):
        while not positions:
            await asyncio.sleep(0.01)
        await first.release()
        third = await waiting
    assert positions[0] == 0
    assert not first.valid
    assert first.error is None
    await third.release()
    await second.release()
    assert (await client.get_semaphore("api")).held == 0


async def test_permits_on_a_lease_end_with_it(client: aio.Client) -> None:
    await client.create_semaphore("leased", 1)
    lease = await client.open_lease()
    held = await client.acquire_permits("leased", lease=lease)
    with pytest.raises(sidekeeper.AlreadyContendingError):
        await client.acquire_permits("leased", lease=lease)
    await lease.close()
    await asyncio.wait_for(held.wait_ended(), PATIENT)
    assert isinstance(held.error, sidekeeper.LostError)
    async with await client.acquire_permits("leased", wait=PATIENT) as again:
        again.check()
    with pytest.raises(sidekeeper.LostError):
        again.check()


async def test_a_body_is_cancelled_whose_permits_are_lost(client: aio.Client, sidecar: Sidecar) -> None:
    await client.create_semaphore("body", 1)
    with pytest.raises(sidekeeper.LostError):
        async with asyncio.timeout(PATIENT), client.permits("body"):
            sidecar.expire_all()
            await asyncio.sleep(2 * PATIENT)
    async with client.permits("body"):
        pass


async def test_holders_are_asked_when_a_semaphore_shrinks(client: aio.Client) -> None:
    await client.create_semaphore("shrinks", 2)
    asked: asyncio.Queue[sidekeeper.Revocation] = asyncio.Queue()
    older = await client.acquire_permits("shrinks")
    newer = await client.acquire_permits("shrinks", on_revocation=asked.put_nowait)
    asks = await client.resize_semaphore("shrinks", 1, reason="less")
    assert asks in (0, 1)  # a holder is asked, and does not count, as long as it stands in the queue still
    assert (await asyncio.wait_for(asked.get(), PATIENT)).reason == "less"
    assert older.revocation is None
    assert newer.revocation is not None
    await newer.release()
    await older.release()
    async for view in client.watch_semaphore("shrinks"):
        assert view.limit == 1
        break


async def test_a_permit_bears_a_number_if_it_is_asked_for(client: aio.Client) -> None:
    await client.create_semaphore("ids", 3)
    first = await client.acquire_permits("ids", numbered=True)
    second = await client.acquire_permits("ids", numbered=True)
    plain = await client.acquire_permits("ids")
    assert (first.number, second.number, plain.number) == (0, 1, None)
    view = await client.get_semaphore("ids")
    assert [holder.number for holder in view.holders] == [0, 1, None]
    assert view.quarantines == ()
    await first.release()
    async with client.permits("ids", numbered=True, wait=0) as third:
        assert third.number == 0
    with pytest.raises(sidekeeper.InvalidFieldError):
        await client.acquire_permits("ids", quarantine=60)


async def test_a_number_that_was_lost_rests(client: aio.Client, sidecar: Sidecar) -> None:
    await client.create_semaphore("ids", 3)
    lost = await client.acquire_permits("ids", numbered=True, quarantine=3600)
    await asyncio.to_thread(sidecar.expire_all)
    await asyncio.wait_for(lost.wait_ended(), PATIENT)
    assert isinstance(lost.error, sidekeeper.LostError)
    assert (lost.number, lost.valid) == (0, False)
    view = await client.get_semaphore("ids")
    assert view.quarantines == (sidekeeper.Quarantine(0, None),)
    async with client.permits("ids", numbered=True, quarantine=0) as other:
        assert other.number == 1
    (rests,) = (await client.get_semaphore("ids")).quarantines
    assert rests.number == 0
    assert rests.until is not None
    assert 3500 < rests.until.timestamp() - time.time() < 3700


def test_permits_are_held_by_threads(threaded: sidekeeper.Client) -> None:
    threaded.create_semaphore("threads", 1)
    with threaded.acquire_permits("threads") as held:
        assert held.valid
        assert held.token > 0
        with pytest.raises(sidekeeper.SemaphoreFullError):
            threaded.acquire_permits("threads", wait=0)
    assert not held.valid
    assert threaded.get_semaphore("threads").held == 0
    assert threaded.resize_semaphore("threads", 2) == 0
    assert next(iter(threaded.watch_semaphore("threads"))).limit == 2
    with threaded.acquire_permits("threads") as plain, threaded.acquire_permits("threads", numbered=True, quarantine=0) as numbered:
        assert (plain.number, numbered.number) == (None, 0)
