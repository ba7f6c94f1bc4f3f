"""Writes that are carried out only while a lock is held."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext

import grpc
import pytest

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar


async def test_what_is_written_after_the_loss_is_refused(client: aio.Client, sidecar: Sidecar) -> None:
    ids = client.sequence("ids")
    await ids.create(1)
    await client.config.put("old", "1")
    lock = await client.acquire("orders")
    with lock.guard():
        assert (await client.config.put("state", "held")).version == 1
        member = await client.join("web", "web-1")
        await member.update({"port": "80"})
        assert await ids.next() == 1
        sidecar.expire("orders")
        async with asyncio.timeout(PATIENT):
            await lock.wait_ended()
        commit = aio.Commit()
        commit.put("state", "late")
        for write in (
            client.config.put("state", "late"),
            client.config.commit(commit),
            client.config.delete("old"),
            ids.next(),
            client.join("web", "web-2"),
            member.update({"port": "81"}),
        ):
            with pytest.raises(sidekeeper.GuardLostError) as caught:
                await write
            assert caught.value.metadata["fencing_token"] == str(lock.fencing_token)
        assert await ids.next(relaxed=True) == 2
        with sidekeeper.unguarded():
            await client.config.put("other", "unguarded")
            await member.update({"port": "82"})
        await member.leave()
        with pytest.raises(sidekeeper.GuardLostError):
            await client.config.put("state", "late")
    assert (await client.config.get("state")).text == "held"
    await client.config.put("state", "after")


async def test_a_lost_lock_is_kept_from_others_for_its_delay(client: aio.Client, sidecar: Sidecar) -> None:
    await (await client.acquire("orders", lock_delay=60)).release()
    lost = await client.acquire("orders", lock_delay=0.5)
    sidecar.expire("orders")
    async with asyncio.timeout(PATIENT):
        await lost.wait_ended()
    positions: list[int] = []
    began = asyncio.get_running_loop().time()
    lock = await client.acquire("orders", on_queued=lambda queued: positions.append(queued.position))
    assert asyncio.get_running_loop().time() - began >= 0.4
    assert positions == [0]
    await lock.release()


async def test_the_body_of_a_lock_is_guarded_by_it_and_by_all_around_it(client: aio.Client) -> None:
    released = asyncio.Event()
    async with client.lock("outer"):
        async with client.lock("inner"):
            await client.config.put("state", "both")
        await client.config.put("state", "outer")
        lost = asyncio.create_task(_written_after(client, released))
        assert (await client.config.get("state")).text == "outer"
    released.set()
    assert await lost == "GuardLostError"
    await client.config.put("state", "neither")


async def _written_after(client: aio.Client, released: asyncio.Event) -> str:
    await released.wait()
    try:
        await client.config.put("state", "late")
    except sidekeeper.SidekeeperError as error:
        return type(error).__name__
    return "written"


async def test_a_ticket_guards_what_others_write_for_the_holder(client: aio.Client, sidecar: Sidecar) -> None:
    async with aio.Client(sidecar.address) as other:
        async with client.lock("orders") as lock:
            ticket = lock.ticket()
            assert ticket == sidekeeper.Ticket("orders", lock.fencing_token)
            with ticket.guard():
                await other.config.put("state", "for the holder")
            await lock.release()
            await other.config.put("state", "of its own")  # a hold is no guard of another client's
        with ticket.guard(), pytest.raises(sidekeeper.GuardLostError) as caught:
            await other.config.put("state", "late")
        assert caught.value.metadata["lock"] == "orders"
        with sidekeeper.Ticket("orders", 0).guard(), pytest.raises(sidekeeper.InvalidFieldError, match="fencing_token"):
            await other.config.put("state", "late")


async def test_a_leader_whose_write_meets_the_loss_first_leads_again(client: aio.Client) -> None:
    tokens: list[int] = []

    async def lead(lock: aio.Lock) -> str:
        tokens.append(lock.fencing_token)
        if len(tokens) == 1:  # as a write ends that is answered before the stream
            metadata = {"fencing_token": str(lock.fencing_token)}
            raise sidekeeper.GuardLostError(grpc.StatusCode.FAILED_PRECONDITION, "lost", metadata=metadata)
        await client.config.put("leader", str(lock.fencing_token))
        return "led"

    assert await client.run_while_leader("scheduler", lead) == "led"
    assert len(tokens) == 2
    assert (await client.config.get("leader")).text == str(tokens[1])


async def test_a_body_that_writes_after_it_has_released_its_lock_meets_the_refusal(client: aio.Client) -> None:
    async def lead(lock: aio.Lock) -> None:
        await lock.release()
        await client.config.put("leader", "none")

    with pytest.raises(sidekeeper.GuardLostError):
        await client.run_while_leader("scheduler", lead)


async def test_a_generator_that_is_closed_elsewhere_leaves_no_guard(client: aio.Client) -> None:
    async def steps() -> AsyncIterator[None]:
        async with client.lock("orders"):
            await client.config.put("state", "step")
            yield

    going = steps()
    await asyncio.create_task(anext(going))  # type: ignore[arg-type]
    await going.aclose()  # type: ignore[attr-defined]
    await client.config.put("state", "after")


def test_threads_guard_what_they_write_by_themselves(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    ids = threaded.sequence("ids")
    ids.create(1)
    seen: list[str] = []

    def write(guarded: AbstractContextManager[None]) -> None:
        try:
            with guarded:
                threaded.config.put("thread", "written")
            seen.append("written")
        except sidekeeper.GuardLostError:
            seen.append("refused")

    with pytest.raises(sidekeeper.LostError), threaded.lock("orders") as lock:
        threaded.config.put("state", "held")
        assert ids.next() == 1
        sidecar.expire("orders")
        assert lock.wait_should_stop(PATIENT)
        for late in (lambda: threaded.config.put("state", "late"), ids.next, lambda: threaded.config.delete("state")):
            with pytest.raises(sidekeeper.GuardLostError):
                late()
        with sidekeeper.unguarded():
            threaded.config.put("other", "unguarded")
        assert threaded.config.get("state").text == "held"
        for guarded in (nullcontext(), lock.guard()):
            thread = threading.Thread(target=write, args=(guarded,))
            thread.start()
            thread.join()
    assert seen == ["written", "refused"]
    threaded.config.put("state", "after")


def test_a_leader_with_threads_whose_write_meets_the_loss_first_leads_again(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    tokens: list[int] = []

    def lead(lock: sidekeeper.Lock) -> str:
        tokens.append(lock.fencing_token)
        if len(tokens) == 1:
            sidecar.expire("scheduler")
        threaded.config.put("leader", str(lock.fencing_token))
        return "led"

    assert threaded.run_while_leader("scheduler", lead) == "led"
    assert len(tokens) == 2


def test_the_late_write_of_an_earlier_holder_is_refused(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    first = threaded.acquire("orders")
    with first.guard():
        threaded.config.put("state", "first")
    sidecar.break_lock("orders", PATIENT)
    with sidekeeper.Client(sidecar.address) as other, other.lock("orders") as second:
        other.config.put("state", "second")
        for guarded in (first.guard(), first.ticket().guard()):
            with guarded, pytest.raises(sidekeeper.GuardLostError) as caught:
                threaded.config.put("state", "late")
            assert caught.value.metadata["fencing_token"] == str(first.fencing_token)
        assert caught.value.metadata["current_token"] == str(second.fencing_token)
        assert threaded.config.get("state").text == "second"
        threaded.config.put("state", "unguarded")


async def test_a_ticket_is_verified(client: aio.Client) -> None:
    lock = await client.acquire("orders")
    ticket = aio.Ticket("orders", lock.fencing_token)
    assert await client.verify(ticket) == aio.Verification(held=True, current_token=lock.fencing_token)
    other = aio.Ticket("orders", lock.fencing_token + 1)
    assert await client.verify(other) == aio.Verification(held=False, current_token=lock.fencing_token)
    await lock.release()
    assert await client.verify(ticket) == aio.Verification(held=False, current_token=0)


async def test_current_tokens_are_watched(client: aio.Client) -> None:
    lock = await client.acquire("orders")
    tokens = client.watch_tokens("orders")
    async with asyncio.timeout(PATIENT):
        assert await anext(tokens) == aio.CurrentToken("orders", lock.fencing_token, stale=False)
        await lock.release()
        assert await anext(tokens) == aio.CurrentToken("orders", 0, stale=False)
    await tokens.aclose()


def test_current_tokens_are_verified_and_watched_without_asyncio(sidecar: Sidecar) -> None:
    with sidekeeper.Client(sidecar.address) as client:
        with client.lock("orders") as lock:
            held = aio.Ticket("orders", lock.fencing_token)
            assert client.verify(held).held
            assert next(iter(client.watch_tokens("orders"))).fencing_token == lock.fencing_token
        assert not client.verify(held).held
