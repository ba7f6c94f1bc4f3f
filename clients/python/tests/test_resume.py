"""Leases that outlive their sidecar: the real program, killed and started again over the ensemble of another process."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper.schedule.v1 import schedule_pb2, schedule_pb2_grpc

from conftest import PATIENT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="leases are resumed on Linux only")
TTL = 4.0


class Resuming:
    """A sidecar that keeps its state, and the ensemble that it stands on."""

    def __init__(self, program: str, directory: Path) -> None:
        self.program, self.state, self.address = program, directory / "state", f"unix://{directory}/s.sock"
        listen = ["--listen", f"unix://{directory}/dev.sock", "--log-level", "error"]
        self.ensemble = subprocess.Popen([program, "dev", *listen], stdout=subprocess.PIPE, text=True)
        assert self.ensemble.stdout is not None
        self.server = next(found[1] for line in self.ensemble.stdout if (found := re.search(r"ensemble: +(\S+),", line)))
        self.directory = directory
        self.start()

    def start(self) -> None:
        flags = [f"--zookeeper={self.server}", f"--listen={self.address}", "--operator-listen=", f"--state-dir={self.state}"]
        command = [
            self.program,
            "serve",
            *flags,
            f"--session-timeout={TTL:.0f}s",
            "--tick-time=200ms",
            "--heartbeat=250ms",
            "--log-level=error",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "listening" in self.process.stdout.readline()

    def schedules(self, method: str, request: Any) -> Any:
        """Makes a call of ScheduleService."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            return getattr(schedule_pb2_grpc.ScheduleServiceStub(channel), method)(request, timeout=PATIENT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.ensemble.kill()
        self.ensemble.wait()


@pytest.fixture
def resuming(program: str, tmp_path: Path) -> Iterator[Resuming]:
    sidecar = Resuming(program, tmp_path)
    yield sidecar
    sidecar.close()


async def until(condition: object, patience: float = 10.0) -> None:
    over = time.monotonic() + patience
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < over, "what had to happen has not happened"
        await asyncio.sleep(0.01)


async def test_what_stands_on_a_lease_and_locks_without_one_outlive_their_sidecar(resuming: Resuming) -> None:
    news: list[str] = []
    async with aio.Client(resuming.address) as client, await client.open_lease() as lease:
        lock = await client.acquire(
            "held", lease=lease, on_suspended=lambda left: news.append("suspended"), on_resumed=lambda: news.append("resumed")
        )
        alone = await client.acquire("alone")
        several = await client.acquire_all("one", "two")
        member = await client.join("group", "member", lease=lease)
        other = await client.acquire("awaited", lease=await client.open_lease())
        waiting = asyncio.create_task(client.acquire("awaited", lease=lease))
        await asyncio.sleep(0.3)
        for _ in range(2):
            resuming.kill()
            await until(lambda: lease.suspended and lock.suspended and alone.suspended and several.suspended)
            assert lock.valid
            resuming.start()
            await until(lambda: not (lease.suspended or lock.suspended or alone.suspended or several.suspended))
        assert news[0] == "suspended"
        assert news[-1] == "resumed"
        await asyncio.sleep(TTL + 1)
        assert lock.valid
        assert alone.valid
        assert several.valid
        with several.guard():
            await client.config.put("guarded", "by the hold that has kept its id")
        assert member.valid
        assert lease.valid
        assert not waiting.done()
        async with aio.Client(resuming.address) as rival:
            for name in ("held", "alone", "one", "two"):
                with pytest.raises(sidekeeper.LockHeldError):
                    await rival.acquire(name, wait=0)
            await alone.release()
            await rival.acquire("alone", wait=0)
            await several.release()
            await rival.acquire_all("two", "one", wait=0)
            await other.release()
            await (await waiting).release()
            await lock.release()
            assert (await rival.acquire("held", wait=5)).fencing_token > lock.fencing_token


async def test_an_attempt_outlives_its_sidecar_and_is_finished_while_that_is_away(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client:
        attempt = await client.begin("mail", "k")
        resuming.kill()
        await until(lambda: attempt.suspended)
        resuming.start()
        await until(lambda: not attempt.suspended)
        with attempt.guard():
            await client.config.put("guarded", "by the attempt that has kept its id")
        resuming.kill()
        finishing = asyncio.create_task(attempt.finish(aio.Outcome.SUCCEEDED))
        await asyncio.sleep(0.5)
        assert not finishing.done()
        resuming.start()
        await finishing
        with pytest.raises(sidekeeper.AlreadyDoneError):
            await client.begin("mail", "k")


async def test_a_tick_outlives_its_sidecar_and_is_finished_by_the_next(resuming: Resuming) -> None:
    resuming.schedules("Put", schedule_pb2.PutRequest(name="reports", cron="0 0 29 2 *"))
    resuming.schedules("Run", schedule_pb2.RunRequest(name="reports", id="now"))
    async with aio.Client(resuming.address) as client:
        tick = await client.work("reports")
        resuming.kill()
        await until(lambda: tick.suspended)
        resuming.start()
        await until(lambda: not tick.suspended)
        await asyncio.sleep(TTL + 1)
        assert tick.valid
        assert (tick.number, tick.run_id) == (1, "now")
        with tick.guard():
            await client.config.put("guarded", "by the attempt that has kept its id")
        await tick.finish(aio.Outcome.SUCCEEDED)
    outcomes = resuming.schedules("History", schedule_pb2.HistoryRequest(name="reports")).outcomes
    assert [(each.run_id, each.state, each.attempt) for each in outcomes] == [("now", schedule_pb2.STATE_SUCCEEDED, 1)]


async def test_a_permit_keeps_its_number_when_it_is_resumed(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client:
        await client.create_semaphore("ids", 3)
        first = await client.acquire_permits("ids", numbered=True)
        second = await client.acquire_permits("ids", numbered=True)
        await first.release()
        resuming.kill()
        await until(lambda: second.suspended)
        resuming.start()
        await until(lambda: not second.suspended)
        await asyncio.sleep(TTL + 1)
        assert (second.number, second.valid) == (1, True)
        async with client.permits("ids", numbered=True) as third:
            assert third.number == 0
            assert [holder.number for holder in (await client.get_semaphore("ids")).holders] == [1, 0]
        await second.release()


async def test_asyncio_has_nothing_to_complain_of_when_a_sidecar_is_restarted(resuming: Resuming) -> None:
    complaints: list[str] = []

    def complain(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if "PollerCompletionQueue" not in str(context):  # of gRPC, which goes on looking at loops of tests that are over
            complaints.append(str(context))

    asyncio.get_running_loop().set_exception_handler(complain)
    async with aio.Client(resuming.address) as client, await client.open_lease() as lease:
        for _ in range(2):
            resuming.kill()
            await until(lambda: lease.suspended)
            resuming.start()
            await until(lambda: not lease.suspended)
    gc.collect()
    await asyncio.sleep(0.1)
    assert complaints == []


async def test_a_lock_that_is_released_while_its_sidecar_is_away_is_free_when_that_is_confirmed(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client, await client.open_lease() as lease:
        lock = await client.acquire("held", lease=lease)
        resuming.kill()
        await until(lambda: lease.suspended)
        releasing = asyncio.create_task(lock.release())
        await asyncio.sleep(0.1)
        resuming.start()
        await releasing
        async with aio.Client(resuming.address) as rival:
            await rival.acquire("held", wait=0)


async def test_a_lease_whose_sidecar_is_away_for_too_long_is_lost_when_its_validity_runs_out(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("held", lease=lease)
        resuming.kill()
        left = lock.valid_for
        began = time.monotonic()
        await lock.wait_ended()
        assert time.monotonic() - began < left + 0.5
        assert isinstance(lock.error, sidekeeper.LostError)
        assert not lock.valid
        with pytest.raises(sidekeeper.LostError):
            await lease.close()


async def test_a_lease_that_the_next_sidecar_does_not_know_is_lost_at_once(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("held", lease=lease)
        resuming.kill()
        shutil.rmtree(resuming.state)
        resuming.start()
        await asyncio.wait_for(lock.wait_ended(), 2)
        assert lock.error is not None
        assert not lease.valid


async def test_an_entry_of_a_double_barrier_outlives_its_sidecar_and_is_left_while_that_is_away(resuming: Resuming) -> None:
    async with aio.Client(resuming.address) as client:
        one, other = await asyncio.gather(client.enter_barrier("load", 2), client.enter_barrier("load", 2))
        resuming.kill()
        await until(lambda: one.suspended and other.suspended)
        resuming.start()
        await until(lambda: not (one.suspended or other.suspended))
        assert one.valid
        resuming.kill()
        await until(lambda: one.suspended)
        leaving = asyncio.create_task(one.leave())
        await asyncio.sleep(0.3)
        assert not leaving.done()
        resuming.start()
        await until(lambda: not other.suspended)
        await asyncio.sleep(0.3)
        assert not leaving.done()
        await other.leave(wait=10)
        await leaving
