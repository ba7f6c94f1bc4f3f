"""The test kit, used as applications use it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper.testing import Sidecar

from conftest import PATIENT

pytest_plugins = ["sidekeeper.pytest_plugin"]


@pytest.fixture(autouse=True)
def _program(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIDEKEEPER_PROGRAM", program)


@pytest.fixture
def kit(_program: None) -> Iterator[Sidecar]:
    with Sidecar() as started:
        yield started


def _worker() -> str:
    """An application: what it says when it has lost its lock."""
    with sidekeeper.Client() as client:
        try:
            with client.lock("orders") as lock:
                lock.wait_should_stop(PATIENT)
        except sidekeeper.LostError as lost:
            return type(lost.cause).__name__
    return "finished"


async def test_a_worker_that_loses_its_lock_is_told(sidekeeper_sidecar: Sidecar) -> None:
    async with aio.Client() as client, asyncio.timeout(PATIENT):
        worker = asyncio.create_task(asyncio.to_thread(_worker))
        async for view in client.watch_lock("orders"):
            if view.holders:
                break
        await asyncio.to_thread(sidekeeper_sidecar.expire_lock, "orders")
        assert await worker == "LeaseLostError"


def test_leases_expire_in_three_ways(kit: Sidecar) -> None:
    lease = kit.client.open_lease()
    held = kit.client.acquire("with-a-lease", lease=lease)
    alone, other = kit.client.acquire("alone"), kit.client.acquire("other")

    kit.expire_lease(lease.id)
    assert held.wait_should_stop(PATIENT)
    kit.expire_lock("alone")
    assert alone.wait_should_stop(PATIENT)
    assert other.valid
    assert kit.expire_all() == 1
    assert other.wait_should_stop(PATIENT)
    with pytest.raises(sidekeeper.SidekeeperError, match="HOLD_NOT_FOUND"):
        kit.expire_lock("other")


def test_an_operator_ends_a_hold(kit: Sidecar) -> None:
    lock = kit.client.acquire("orders")
    assert kit.client.revoke("orders", grace=0) == 1
    assert lock.wait_should_stop(PATIENT)


def test_a_silence_that_lasts_loses_the_lock() -> None:
    with Sidecar(session_timeout=6) as kit:
        lock = kit.client.acquire("orders")
        kit.suspend(3600)
        assert lock.wait_should_stop(PATIENT)
        kit.suspend(0)
        kit.client.acquire("orders", wait=PATIENT).release()


def test_grants_are_late(kit: Sidecar) -> None:
    kit.delay_grants(3600)
    with pytest.raises(sidekeeper.WaitTimeoutError):
        kit.client.acquire("orders", wait=0.1)
    kit.delay_grants(0)
    kit.client.acquire("orders").release()


def test_sidecars_do_not_meet(kit: Sidecar) -> None:
    with Sidecar() as other:
        assert kit.client.acquire("orders", wait=0).valid
        assert other.client.acquire("orders", wait=0).valid


def test_nothing_is_left_of_a_sidecar_that_was_closed() -> None:
    with Sidecar() as closed:
        closed.client.acquire("orders")
    assert not _folder(closed.address).exists()
    closed.close()


def test_a_sidecar_is_closed_while_a_forked_child_lives() -> None:
    kit = Sidecar()
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(PATIENT * 2,))
    child.start()
    began = time.monotonic()
    kit.close()
    assert time.monotonic() - began < PATIENT / 2
    child.kill()
    child.join()


def test_nothing_is_left_of_a_run_that_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    run = [sys.executable, "-c", "from sidekeeper.testing import Sidecar; print(Sidecar().address, flush=True); input()"]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        folder = _folder(tests.stdout.readline().strip())
        assert folder.exists()
        tests.send_signal(signal.SIGKILL)
    end = time.monotonic() + PATIENT
    while folder.exists():
        assert time.monotonic() < end, "the sidecar outlives the tests"
        time.sleep(0.01)


def _folder(address: str) -> Path:
    """Where the sidecar's socket lies: its own folder, which it removes when it ends."""
    return Path(address.removeprefix("unix://")).parent


def test_whoever_has_no_program_is_told_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIDEKEEPER_PROGRAM")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match=r"SIDEKEEPER_PROGRAM.*sidekeeper/releases"):
        Sidecar()


def test_a_program_that_does_not_start_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="dev does not start: exit code 64"):
        Sidecar(session_timeout=1)
    assert "session timeout" in capfd.readouterr().err
