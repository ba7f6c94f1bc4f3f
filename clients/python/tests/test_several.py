"""Several locks at once, with asyncio and with threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import grpc
import pytest
import pytest_asyncio

import sidekeeper
from sidekeeper import aio

from conftest import PATIENT, Sidecar

ACCOUNTS = ("accounts/7", aio.WantedLock("accounts/9", sidekeeper.Mode.READ))


@pytest_asyncio.fixture
async def distant(sidecar: Sidecar) -> AsyncIterator[aio.Client]:
    """A client over TCP."""
    files = [(sidecar.certificates / f"{name}.pem").read_bytes() for name in ("ca", "client-key", "client")]
    async with aio.Client(sidecar.secure_address, credentials=grpc.ssl_channel_credentials(*files)) as made:
        yield made


async def test_several_locks_are_one_hold(client: aio.Client) -> None:
    held = await client.acquire_all(*ACCOUNTS, owner="transfer")
    assert held.names == ("accounts/7", "accounts/9")
    assert held.valid
    assert held.tickets() == tuple(aio.Ticket(name, held.fencing_tokens[name]) for name in held.names)
    view = await client.get_lock("accounts/9")
    assert [(holder.mode, holder.owner) for holder in view.holders] == [(sidekeeper.Mode.READ, "transfer")]
    with pytest.raises(sidekeeper.LockHeldError):
        await client.acquire("accounts/7", wait=0)
    with pytest.raises(sidekeeper.LockHeldError):
        await client.acquire_all("accounts/8", "accounts/7", wait=0)
    with pytest.raises(sidekeeper.WaitTimeoutError):
        await client.acquire_all("accounts/8", "accounts/7", wait=0.1)
    with pytest.raises(sidekeeper.InvalidFieldError) as caught:
        await client.acquire_all("accounts/8", "accounts/8")
    assert [field.field for field in caught.value.fields] == ["locks[1].name"]
    reader = await client.acquire("accounts/9", mode=sidekeeper.Mode.READ, wait=0)
    await held.release()
    await held.release()
    assert held.error is None
    assert not held.valid
    again = await client.acquire_all("accounts/8", "accounts/7", wait=0)
    assert again.fencing_tokens["accounts/7"] > held.fencing_tokens["accounts/7"]
    await reader.release()


async def test_who_waits_for_several_locks_is_told_for_which_and_leaves_all_queues(client: aio.Client) -> None:
    first = await client.acquire("accounts/9", mode=sidekeeper.Mode.WRITE)
    told: asyncio.Queue[Mapping[str, int]] = asyncio.Queue()
    waiting = asyncio.create_task(client.acquire_all(*ACCOUNTS, on_queued=told.put_nowait))
    assert await asyncio.wait_for(told.get(), PATIENT) == {"accounts/9": 1}
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(PATIENT):
        async for view in client.watch_lock("accounts/7"):
            if not view.holders and not view.waiters:
                break
    waiting = asyncio.create_task(client.acquire_all(*ACCOUNTS))
    await first.release()
    await (await asyncio.wait_for(waiting, PATIENT)).release()


async def test_who_asks_for_one_of_several_locks_asks_for_all(client: aio.Client) -> None:
    asked: asyncio.Queue[sidekeeper.Revocation] = asyncio.Queue()
    held = await client.acquire_all(*ACCOUNTS, on_revocation=asked.put_nowait)
    assert await client.revoke("accounts/9", reason="audit") == 1
    assert (await asyncio.wait_for(asked.get(), PATIENT)).reason == "audit"
    assert held.revocation is not None
    (holder,) = (await client.get_lock("accounts/9")).holders
    assert holder.revocation_requested
    await held.release()


async def test_several_locks_on_a_lease_end_with_it(client: aio.Client, sidecar: Sidecar) -> None:
    lease = await client.open_lease()
    held = await client.acquire_all(*ACCOUNTS, lease=lease)
    with pytest.raises(sidekeeper.AlreadyContendingError):
        await client.acquire("accounts/7", lease=lease)
    await asyncio.to_thread(sidecar.break_lock, "accounts/9", PATIENT)
    await asyncio.wait_for(held.wait_ended(), PATIENT)
    assert isinstance(held.error and held.error.cause, sidekeeper.LockBrokenError)
    assert lease.valid
    held = await client.acquire_all(*ACCOUNTS, lease=lease, wait=PATIENT)
    await lease.close()
    with pytest.raises(sidekeeper.LostError):
        held.check()
    async with aio.Client(sidecar.address) as other:
        with pytest.raises(ValueError, match="another client's"):
            await other.acquire_all("accounts/7", lease=lease)


async def test_over_tcp_several_locks_are_one_call(distant: aio.Client, sidecar: Sidecar) -> None:
    held = await distant.acquire_all(*ACCOUNTS)
    assert held.valid
    assert not distant._leases.open
    await asyncio.to_thread(sidecar.break_lock, "accounts/7", PATIENT)
    await asyncio.wait_for(held.wait_ended(), PATIENT)
    assert isinstance(held.error and held.error.cause, sidekeeper.LockBrokenError)
    async with distant.locks(*ACCOUNTS, wait=PATIENT) as again:
        again.check()
    assert not (await distant.get_lock("accounts/7")).holders


async def test_a_body_is_guarded_by_all_its_locks_and_is_cancelled_when_they_are_lost(client: aio.Client, sidecar: Sidecar) -> None:
    async with client.locks(*ACCOUNTS) as held:
        await client.config.put("balance", "held")
        assert aio.tickets() == held.tickets()[:1]  # readers do not exclude each other
    with held.guard(), pytest.raises(sidekeeper.GuardLostError) as caught:
        await client.config.put("balance", "late")
    with pytest.raises(sidekeeper.LostError):
        async with asyncio.timeout(PATIENT), client.locks(*ACCOUNTS):
            sidecar.expire("accounts/9")
            await asyncio.sleep(2 * PATIENT)
    with pytest.raises(sidekeeper.LostError) as lost:
        async with client.locks(*ACCOUNTS) as held:
            caught.value.metadata["fencing_token"] = str(held.fencing_token)
            raise caught.value  # as a write ends that is answered before the stream
    assert lost.value.what == "locks accounts/7, accounts/9"
    assert (await client.config.get("balance")).text == "held"


def test_several_locks_are_held_by_threads(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with threaded.open_lease() as lease, threaded.acquire_all(*ACCOUNTS, lease=lease) as held:
        assert held.names == ("accounts/7", "accounts/9")
        assert held.hold_id
        assert held.revocation is None
        assert held.tickets()[0].fencing_token == held.fencing_tokens["accounts/7"]
        with held.guard():
            threaded.config.put("balance", "held")
    assert not held.valid
    with pytest.raises(sidekeeper.LostError), threaded.locks(*ACCOUNTS, suspension_grace=PATIENT) as held:
        threaded.config.put("balance", "locked")
        held.check()
        assert not held.should_stop()
        sidecar.expire("accounts/9")
        assert held.wait_should_stop(PATIENT)
        with pytest.raises(sidekeeper.GuardLostError):
            threaded.config.put("balance", "late")
    assert threaded.config.get("balance").text == "locked"
