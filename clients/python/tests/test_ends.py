"""What a client tells and does when what it has ends, seen from the sidecar's side: by a server of the tests' own that is asked."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import _clock, aio
from sidekeeper._claim import Claim
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc

from conftest import PATIENT, Sidecar

SHORT = 0.6
"""Seconds that a hold is said to be valid."""


class Scripted(lock_pb2_grpc.LockServiceServicer):  # type: ignore[misc]
    """Grants a lock, says once for how long it is valid, and ends it when it is told to."""

    def __init__(self) -> None:
        self.checks = 0
        self.end = threading.Event()
        self.ended = self.cancelled = self.released = 0.0
        self.acknowledged = threading.Event()

    def Acquire(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        context.add_callback(self.over)
        yield lock_pb2.AcquireResponse(granted=lock_pb2.Granted(hold_id="0" * 32, fencing_token=1))
        while context.is_active() and not self.end.wait(0.01):
            pass
        self.ended = time.monotonic()
        context.abort(grpc.StatusCode.ABORTED, "SIDECAR_STOPPING: the sidecar is going down")

    def over(self) -> None:
        self.cancelled = time.monotonic()

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.checks += 1
        if self.checks > 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        held = lock_pb2.CheckedHold(hold_id=request.hold_ids[0], fencing_token=1)
        held.valid_for.FromMilliseconds(int(SHORT * 1000))
        return lock_pb2.CheckResponse(holds=[held])

    def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        assert request.hold_id == "0" * 32
        self.released = time.monotonic()
        self.acknowledged.set()
        context.abort(grpc.StatusCode.ABORTED, "SIDECAR_STOPPING: it had ended before")


@pytest.fixture
def scripted() -> Iterator[tuple[Scripted, str]]:
    script = Scripted()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    lock_pb2_grpc.add_LockServiceServicer_to_server(script, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"  # where a lock without a lease is one call
    server.start()
    yield script, address
    script.end.set()
    server.stop(None).wait()


async def test_the_end_of_a_hold_is_acknowledged_at_once(scripted: tuple[Scripted, str]) -> None:
    script, address = scripted
    async with aio.Client(address) as client:
        lock = await client.acquire("orders")
        script.end.set()
        await lock.wait_ended()
        assert isinstance(lock.error and lock.error.cause, sidekeeper.SidecarStoppingError)
        assert await asyncio.to_thread(script.acknowledged.wait, PATIENT)
        print(f"asyncio acknowledges the end after {(script.released - script.ended) * 1000:.1f} ms")
        assert script.released - script.ended < 0.2


def test_the_end_of_a_hold_is_acknowledged_at_once_whatever_the_body_does(scripted: tuple[Scripted, str]) -> None:
    script, address = scripted
    with sidekeeper.Client(address) as client, pytest.raises(sidekeeper.LostError), client.lock("orders"):
        script.end.set()
        assert script.acknowledged.wait(PATIENT)  # while the body goes on
        print(f"threads acknowledge the end after {(script.released - script.ended) * 1000:.1f} ms")
        assert script.released - script.ended < 0.2


async def test_a_client_that_is_closed_when_its_hold_has_ended_acknowledges_it_first(scripted: tuple[Scripted, str]) -> None:
    script, address = scripted
    with pytest.raises(sidekeeper.LostError):
        async with aio.Client(address) as client, client.lock("orders"):
            script.end.set()
            await asyncio.sleep(PATIENT)
    assert script.acknowledged.is_set()


async def test_a_hold_whose_validity_runs_out_is_given_up_and_acknowledged(scripted: tuple[Scripted, str]) -> None:
    script, address = scripted
    async with aio.Client(address) as client:
        began = time.monotonic()
        lock = await client.acquire("orders")
        await lock.wait_ended()
        assert time.monotonic() - began < SHORT + 0.5
        assert await asyncio.to_thread(script.acknowledged.wait, PATIENT)
        assert script.cancelled > began


async def test_what_the_caller_gives_up_is_released_once_and_not_acknowledged(scripted: tuple[Scripted, str]) -> None:
    script, address = scripted
    client = aio.Client(address)
    lock = await client.acquire("orders")
    await client.close()
    assert isinstance(lock.error, sidekeeper.LostError)
    assert not await asyncio.to_thread(script.acknowledged.wait, 0.2)


async def test_what_is_not_valid_any_more_says_why_at_once_and_for_good(client: aio.Client, sidecar: Sidecar) -> None:
    lease = await client.open_lease()
    held = [lease, await client.acquire("orders", lease=lease), await client.join("workers", "a", lease=lease)]
    sidecar.send(signal.SIGSTOP)
    while all(one.valid for one in held):
        time.sleep(0.001)  # noqa: ASYNC251 (the loop is blocked: nobody else notices)
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        assert all(one.valid or isinstance(one.error and one.error.cause, sidekeeper.LeaseLostError) for one in held)
    sidecar.send(signal.SIGCONT)
    await held[1].wait_ended()
    assert not held[1].valid
    assert isinstance(held[1].error and held[1].error.cause, sidekeeper.LeaseLostError)


async def test_what_is_lost_before_it_was_the_callers_is_refused(client: aio.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = await client.open_lease()
    async with client.lock("orders"), await client.join("workers", "a"):
        waiting = asyncio.create_task(client.acquire("orders", lease=lease))
        joining = asyncio.create_task(client.join("workers", "a", lease=lease, on_conflict=sidekeeper.OnConflict.WAIT))
        while not (await client.get_lock("orders")).waiters:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await lease.close()
        for work in (waiting, joining):
            with pytest.raises(sidekeeper.LeaseClosedError):
                await work
    monkeypatch.setattr(_clock, "_read", _blind)
    for refused in (client.acquire("orders"), client.open_lease(), client.join("workers", "b")):
        with pytest.raises(sidekeeper.LeaseLostError, match=r"clock .* cannot be read"):
            await refused


async def test_a_leader_whose_term_is_lost_before_it_begins_leads_after_the_next_grant(
    client: aio.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_clock, "_read", _blind)
    asyncio.get_running_loop().call_later(0.3, monkeypatch.undo)

    async def lead(lock: aio.Lock) -> int:
        return lock.fencing_token

    assert await asyncio.wait_for(client.run_while_leader("orders", lead), PATIENT) > 0


def _blind() -> float:
    raise OSError("blind")


@pytest.mark.parametrize("coarse", [1e-9, 0.015625, 1.0])
def test_nothing_is_valid_for_longer_than_was_told_however_coarse_the_clock_is(coarse: float, monkeypatch: pytest.MonkeyPatch) -> None:
    true = 1000.0
    monkeypatch.setattr(_clock, "_read", lambda: math.floor(true / coarse + 1e-6) * coarse)
    monkeypatch.setattr(_clock, "_coarse", coarse)
    for asked in range(20):
        true = 1000 + asked * 0.07
        claim = Claim("lock orders")
        claim.extend(_clock.before(), 3.02)
        true += 3.02
        assert claim.valid_for() == 0
        assert isinstance(claim.lost(), sidekeeper.LostError)


def test_nothing_is_valid_while_the_clock_cannot_be_read_nor_what_was_asked_for_then(monkeypatch: pytest.MonkeyPatch) -> None:
    claim, late = Claim("lock orders"), Claim("lock orders")
    claim.extend(_clock.before(), 3)
    assert claim.valid_for() > 0
    with monkeypatch.context() as blind:
        blind.setattr(_clock, "_read", _blind)
        assert claim.valid_for() == 0
        asked = _clock.before()
    assert claim.valid_for() == 0
    late.extend(asked, 3)
    assert late.valid_for() == 0
    with contextlib.suppress(AttributeError):
        assert time.clock_gettime(time.CLOCK_BOOTTIME) <= _clock.now()
