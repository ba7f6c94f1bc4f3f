"""Locks and leases with asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper._types import LockView, SemaphoreView
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc
from sidekeeper.semaphore.v1 import semaphore_pb2

from conftest import PATIENT, Sidecar


async def test_a_lock_is_granted_in_turn_with_growing_tokens(client: aio.Client) -> None:
    queued: list[sidekeeper.Queued] = []
    first = await client.acquire("orders", owner="first")
    waiting = asyncio.create_task(client.acquire("orders", on_queued=queued.append))
    while not queued:
        await asyncio.sleep(0.01)
    assert queued[0].position == 1
    assert queued[0].holders[0].owner == "first"
    assert first.valid
    assert 0 < first.valid_for <= 4
    await first.release()
    assert not first.valid
    assert first.error is None
    second = await waiting
    assert second.fencing_token > first.fencing_token
    await second.release()
    await second.release()


async def test_a_lock_that_is_held_is_not_waited_for(client: aio.Client) -> None:
    async with client.lock("orders"):
        with pytest.raises(sidekeeper.LockHeldError):
            await client.acquire("orders", wait=0)
        with pytest.raises(sidekeeper.WaitTimeoutError):
            await client.acquire("orders", wait=0.1)
    async with client.lock("orders", wait=0):
        pass


async def test_a_sidecar_that_is_frozen_holds_nobody_up_for_longer_than_they_wait(client: aio.Client, sidecar: Sidecar) -> None:
    async with client.lock("orders"):
        pass
    sidecar.send(signal.SIGSTOP)
    with pytest.raises(sidekeeper.SidekeeperError, match="the sidecar does not answer") as caught:
        await client.acquire("orders", wait=0.001)
    sidecar.send(signal.SIGCONT)
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    async with client.lock("orders"):
        pass


async def test_whoever_is_cancelled_while_waiting_gives_up_its_place(client: aio.Client) -> None:
    async with client.lock("orders"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.acquire("orders")
        await _until_waiters(client, "orders", 0)


async def _until_waiters(client: aio.Client, name: str, count: int) -> None:
    async with asyncio.timeout(PATIENT):
        async for view in client.watch_lock(name):
            if len(view.waiters) == count:
                return


async def test_readers_hold_together(client: aio.Client) -> None:
    async with client.lock("table", mode=sidekeeper.Mode.READ), client.lock("table", mode=sidekeeper.Mode.READ):
        with pytest.raises(sidekeeper.LockHeldError):
            await client.acquire("table", mode=sidekeeper.Mode.WRITE, wait=0)
        with pytest.raises(sidekeeper.LockKindMismatchError):
            await client.acquire("table", wait=0)


def test_views_say_how_many_waiters_they_omit() -> None:
    assert LockView._of(lock_pb2.View(waiters_omitted=3)).waiters_omitted == 3
    assert SemaphoreView._of(semaphore_pb2.View(waiters_omitted=4)).waiters_omitted == 4


async def test_a_bad_name_is_told_with_its_field(client: aio.Client) -> None:
    with pytest.raises(sidekeeper.InvalidFieldError) as caught:
        await client.acquire("a//b")
    assert [each.field for each in caught.value.fields] == ["name"]
    assert isinstance(caught.value, ValueError)


async def test_the_body_is_cancelled_when_the_lease_is_lost(client: aio.Client, sidecar: Sidecar) -> None:
    cancelled = False
    with pytest.raises(sidekeeper.LostError) as caught:
        async with client.lock("orders") as lock:
            try:
                await asyncio.to_thread(sidecar.expire, "orders")
                await asyncio.sleep(PATIENT)
            except asyncio.CancelledError:
                cancelled = True
                raise
    assert cancelled
    assert caught.value is lock.error
    assert isinstance(caught.value.cause, sidekeeper.LeaseLostError)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_body_that_swallows_its_cancellation_still_raises(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError):
        async with client.lock("orders") as lock:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.to_thread(sidecar.expire, "orders")
                await lock.wait_ended()
                await asyncio.sleep(PATIENT)


async def test_a_cancelled_body_releases_its_lock(client: aio.Client) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2), client.lock("orders"):
            await asyncio.sleep(PATIENT)
    async with client.lock("orders", wait=0):
        pass


async def test_a_killed_sidecar_is_noticed_at_once(client: aio.Client, sidecar: Sidecar) -> None:
    async def killed() -> float:
        async with client.lock("orders"):
            began = time.monotonic()
            sidecar.end()
            try:
                await asyncio.sleep(PATIENT)
            except asyncio.CancelledError:
                took.append(time.monotonic() - began)
                raise
        return 0

    took: list[float] = []
    with pytest.raises(sidekeeper.LostError):
        await killed()
    print(f"the body of a lock learns of a killed sidecar after {took[0] * 1000:.1f} ms")


async def test_a_frozen_sidecar_loses_the_lock_in_time(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError) as caught:
        async with client.lock("orders") as lock:
            left = lock.valid_for
            sidecar.send(signal.SIGSTOP)
            began = time.monotonic()
            try:
                await asyncio.sleep(PATIENT)
            finally:
                took = time.monotonic() - began
                assert not lock.valid
                sidecar.send(signal.SIGCONT)
    assert isinstance(caught.value.cause, sidekeeper.LeaseLostError)
    assert left - 1 < took < 5  # a Check may have been on its way


async def test_a_suspended_lock_goes_on(client: aio.Client, sidecar: Sidecar) -> None:
    suspended, resumed = asyncio.Event(), asyncio.Event()
    async with client.lock("orders", on_suspended=lambda _: suspended.set(), on_resumed=resumed.set) as lock:
        await asyncio.to_thread(sidecar.suspend, 2)
        await asyncio.wait_for(suspended.wait(), PATIENT)
        assert lock.suspended
        await asyncio.wait_for(resumed.wait(), PATIENT)
        assert not lock.suspended
        assert lock.valid


async def test_a_body_is_cancelled_when_it_is_suspended_for_longer_than_its_grace(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.SuspendedError):
        async with client.lock("orders", suspension_grace=0.1) as lock:
            try:
                await asyncio.to_thread(sidecar.suspend, 2)
                await asyncio.sleep(PATIENT)
            finally:
                assert lock.error is None


async def test_a_revocation_is_told_and_ends_the_hold_with_its_grace(client: aio.Client) -> None:
    told: list[sidekeeper.Revocation] = []
    with pytest.raises(sidekeeper.LostError) as caught:
        async with client.lock("orders", on_revocation=told.append) as lock:
            assert await client.revoke("orders", reason="maintenance", grace=0.3) == 1
            await asyncio.sleep(PATIENT)
    assert isinstance(caught.value.cause, sidekeeper.LockRevokedError)
    assert told[0].reason == "maintenance"
    assert told[0].grace is not None
    assert lock.revocation == told[0]


async def test_what_is_held_with_a_lease_ends_with_it(client: aio.Client) -> None:
    async with await client.open_lease(ttl=4, owner="me") as lease:
        assert lease.ttl == 4
        first = await client.acquire("a", lease=lease)
        second = await client.acquire("b", lease=lease)
        with pytest.raises(sidekeeper.AlreadyContendingError):
            await client.acquire("a", lease=lease, wait=0)
        await first.release()
    assert not second.valid
    assert second.error is not None
    assert isinstance(second.error.cause, sidekeeper.LeaseClosedError)
    with pytest.raises(sidekeeper.LostError):
        await second.release()
    with pytest.raises(sidekeeper.LeaseClosedError):
        await client.acquire("c", lease=lease)


async def test_who_waits_with_a_lease_that_closes_is_told(client: aio.Client) -> None:
    lease = await client.open_lease()
    async with client.lock("orders"):
        waiting = asyncio.create_task(client.acquire("orders", lease=lease))
        await _until_waiters(client, "orders", 1)
        await lease.close()
        with pytest.raises(sidekeeper.LeaseClosedError):
            await waiting


async def test_closing_the_client_ends_what_it_holds(sidecar: Sidecar) -> None:
    client = aio.Client(sidecar.address)
    lock = await client.acquire("orders")
    await client.close()
    assert not lock.valid
    assert lock.error is not None
    for refused in (client.acquire("orders"), client.open_lease(), client.get_lock("orders"), client.join("a", "b")):
        with pytest.raises(sidekeeper.SidekeeperError, match="the client is closed"):
            await refused
    async with aio.Client(sidecar.address) as other, other.lock("orders"):
        pass


async def test_a_leader_leads_again_after_a_loss(client: aio.Client, sidecar: Sidecar) -> None:
    tokens: list[int] = []

    async def lead(lock: aio.Lock) -> str:
        tokens.append(lock.fencing_token)
        if len(tokens) == 1:
            await asyncio.to_thread(sidecar.expire, "leader")
            await asyncio.sleep(PATIENT)
        return "done"

    leaders: list[sidekeeper.Contender | None] = []

    async def observe() -> None:
        async for leader in client.watch_leader("leader"):
            leaders.append(leader)

    observing = asyncio.create_task(observe())
    async with asyncio.timeout(PATIENT):
        assert await client.run_while_leader("leader", lead, owner="me") == "done"
        while not leaders or leaders[-1] is not None:
            await asyncio.sleep(0.01)
    observing.cancel()
    assert tokens[1] > tokens[0]
    assert {leader.owner for leader in leaders if leader} == {"me"}


async def test_a_sidecar_that_is_not_there_is_told(directory: object) -> None:
    async with aio.Client(f"unix://{directory}/none.sock") as client:
        with pytest.raises(sidekeeper.SidekeeperError) as caught:
            await client.acquire("orders", wait=0)
    assert caught.value.code.name == "UNAVAILABLE"
    assert caught.value.reason == ""
    assert f"{directory}/none.sock" in caught.value.message
    assert "SIDEKEEPER_ADDRESS" in caught.value.message


async def test_a_sidecar_that_is_slow_to_take_a_connection_is_waited_for(sidecar: Sidecar, directory: Path) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while some := await reader.read(65536):
                writer.write(some)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        from_sidecar, to_sidecar = await asyncio.open_unix_connection(sidecar.address.removeprefix("unix://"))
        await asyncio.gather(pass_on(reader, to_sidecar), pass_on(from_sidecar, writer))

    slow = f"{directory}/slow.sock"
    async with await asyncio.start_unix_server(connect, slow), aio.Client(slow) as client:
        assert (await client.acquire("orders", wait=0)).valid


async def test_an_option_that_there_is_none_of_is_refused(client: aio.Client) -> None:
    wrong: Any = {"timeout": 5}
    for asked in (
        client.acquire("orders", **wrong),
        client.acquire_all("orders", **wrong),
        client.acquire_permits("reports", **wrong),
        client.enter_barrier("load-test", 1, **wrong),
        client.campaign("controller", "host-1", **wrong),
    ):
        with pytest.raises(TypeError, match="there is no option 'timeout'"):
            await asked


@pytest.mark.parametrize("address", ["nonsense", "host:", "host:port", ":", "http://localhost:7181"])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="neither unix:///path, a path nor host:port"):
        aio.Client(address)


async def test_another_machine_is_reached_with_credentials_only() -> None:
    with pytest.raises(ValueError, match="needs credentials"):
        aio.Client("example.org:7181")


async def test_a_body_is_stopped_when_its_lock_is_released_elsewhere(client: aio.Client, sidecar: Sidecar) -> None:
    """By whoever knows the id of the hold."""
    async with asyncio.timeout(PATIENT / 3):
        with pytest.raises(sidekeeper.LostError, match="released elsewhere"):
            async with client.lock("orders") as lock:
                async with grpc.aio.insecure_channel(sidecar.address, options=[("grpc.default_authority", "localhost")]) as channel:
                    await lock_pb2_grpc.LockServiceStub(channel).Release(lock_pb2.ReleaseRequest(hold_id=lock.hold_id))
                await asyncio.sleep(PATIENT)


async def test_a_body_that_releases_its_lock_goes_on(client: aio.Client) -> None:
    async with client.lock("orders") as lock:
        await lock.release()
        await asyncio.sleep(0.1)
    assert lock.error is None
