"""Barriers and double barriers, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper._errors import named

from conftest import PATIENT, Sidecar


async def enter_two(client: aio.Client, name: str) -> tuple[aio.BarrierEntry, aio.BarrierEntry]:
    one, other = await asyncio.gather(client.enter_barrier(name, 2), client.enter_barrier(name, 2))
    return one, other


async def test_a_wait_at_a_barrier_lasts_no_longer_than_it_may(client: aio.Client) -> None:
    await client.set_barrier("migration")
    for wait in (0, 0.2):
        with pytest.raises(sidekeeper.WaitTimeoutError):
            await asyncio.wait_for(client.await_barrier("migration", wait=wait), PATIENT)
    await client.remove_barrier("migration")
    for wait in (0, PATIENT):
        await client.await_barrier("migration", wait=wait)


async def test_who_does_not_wait_for_the_others_any_more_has_left(client: aio.Client) -> None:
    one, other = await enter_two(client, "load")
    with pytest.raises(sidekeeper.WaitTimeoutError):
        await one.leave(wait=0.2)
    assert not one.valid
    assert one.error is None
    assert other.valid
    with pytest.raises(sidekeeper.WaitTimeoutError):
        await one.leave()
    await asyncio.wait_for(other.leave(), PATIENT)


async def test_who_is_cancelled_while_the_others_are_inside_has_left(client: aio.Client) -> None:
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
    unheard, other = await enter_two(client, "load")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(unheard.leave(), 0.2)
    await asyncio.wait_for(other.leave(), PATIENT)
    del unheard
    gc.collect()
    assert complaints == []
    one, other = await enter_two(client, "load")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(one.leave(), 0.2)
    with pytest.raises(sidekeeper.SidekeeperError, match="others may be inside"):
        await asyncio.wait_for(one.leave(), PATIENT)
    await asyncio.wait_for(other.leave(), PATIENT)


class Away:
    """The service of barriers, which fails so many times before it does what it is asked, or after."""

    def __init__(self, stub: Any, error: sidekeeper.SidekeeperError, times: int, done: bool = False) -> None:
        self.stub, self.error, self.times, self.done = stub, error, times, done

    async def Leave(self, request: Any, timeout: float | None) -> Any:  # noqa: N802
        self.times -= 1
        if self.done or self.times < 0:
            await self.stub.Leave(request, timeout=timeout)
        if self.times >= 0:
            raise self.error


UNKNOWN = named("HOLD_NOT_FOUND", "not yet", grpc.StatusCode.NOT_FOUND)
UNREACHABLE = named("ENSEMBLE_UNREACHABLE", "not yet", grpc.StatusCode.UNAVAILABLE)


@pytest.mark.parametrize("error", [UNKNOWN, UNREACHABLE])
async def test_a_sidecar_is_asked_to_leave_until_it_can(client: aio.Client, error: sidekeeper.SidekeeperError) -> None:
    entry = await client.enter_barrier("load", 1)
    entry._stub = Away(entry._stub, error, 2)
    await asyncio.wait_for(entry.leave(), PATIENT)


async def test_a_sidecar_is_not_asked_for_ever_about_an_entry_that_is_over(client: aio.Client) -> None:
    entry = await client.enter_barrier("load", 1)
    entry._stub = Away(entry._stub, UNKNOWN, 1000, done=True)
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError):
        await asyncio.wait_for(entry.leave(), PATIENT)


async def test_a_body_waits_for_the_others_unless_it_fails(client: aio.Client) -> None:
    one, other = await enter_two(client, "load")
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(PATIENT), one:
            one.check()
            raise ZeroDivisionError
    async with other:
        assert other.round == one.round
        assert other.token != one.token
    one, other = await enter_two(client, "load")
    ended: list[str] = []

    async def body() -> None:
        async with one:
            ended.append("body")
        ended.append("left")

    running = asyncio.ensure_future(body())
    await asyncio.sleep(0.2)
    assert ended == ["body"]
    await other.release()
    await asyncio.wait_for(running, PATIENT)


async def test_an_entry_is_lost_whose_sidecar_is_frozen_while_it_is_left(client: aio.Client, sidecar: Sidecar) -> None:
    entry = await client.enter_barrier("load", 1)
    sidecar.send(signal.SIGSTOP)
    with pytest.raises(sidekeeper.LostError):
        await asyncio.wait_for(entry.leave(), PATIENT)


def test_threads_begin_and_end_together(threaded: sidekeeper.Client) -> None:
    threaded.set_barrier("gate")
    waits, rounds = threading.Event(), []

    def run() -> None:
        threaded.await_barrier("gate", on_waiting=waits.set)
        with threaded.enter_barrier("load", 2) as entry:
            rounds.append(entry.round)

    other = threading.Thread(target=run)
    other.start()
    assert waits.wait(PATIENT)
    threaded.remove_barrier("gate")
    entry = threaded.enter_barrier("load", 2, wait=PATIENT)
    with pytest.raises(sidekeeper.WaitTimeoutError):
        threaded.enter_barrier("other", 2, wait=0.1)
    entry.check()
    entry.leave(wait=PATIENT)
    other.join()
    assert rounds == [entry.round]
    assert not entry.valid
    entry.release()
