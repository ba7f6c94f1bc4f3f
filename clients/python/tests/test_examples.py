"""The examples do what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidekeeper

from conftest import PATIENT, ROOT, Sidecar

FENCING = ROOT / "examples" / "fencing"
DAILY = ROOT / "examples" / "cron" / "daily.sh"


class Issuer:
    """A process that issues an invoice."""

    def __init__(self, sidecar: Sidecar, database: Path, writer: str, work: float = 0) -> None:
        environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": str(ROOT / "clients/python/src")}
        command = [sys.executable, "-B", str(FENCING / "issue.py"), str(database), writer, "--work", str(work)]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def holds(self) -> None:
        """Returns when it says that it holds the lock."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("holding with token ")

    def ended(self) -> tuple[int, str]:
        """How it has ended, and its complaint."""
        _, complaint = self.process.communicate(timeout=PATIENT)
        return self.process.returncode, complaint


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "invoices.db"


def _written(database: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    monkeypatch.syspath_prepend(str(FENCING))
    import store  # type: ignore[import-not-found]

    invoices: list[tuple[int, str]] = store.Store(database).invoices()
    return invoices


def test_invoices_are_issued_one_after_the_other(sidecar: Sidecar, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuers = [Issuer(sidecar, database, f"billing-{number}") for number in range(3)]
    assert [issuer.ended() for issuer in issuers] == [(0, "")] * 3
    invoices = _written(database, monkeypatch)
    assert [number for number, _ in invoices] == [1, 2, 3]
    assert {text for _, text in invoices} == {"by billing-0", "by billing-1", "by billing-2"}


def test_the_stale_write_of_a_holder_that_was_frozen_is_refused(sidecar: Sidecar, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = Issuer(sidecar, database, "billing-1", work=0.5)
    frozen.holds()
    frozen.process.send_signal(signal.SIGSTOP)
    sidecar.expire("invoices")
    assert Issuer(sidecar, database, "billing-2").ended() == (0, "")
    frozen.process.send_signal(signal.SIGCONT)
    status, complaint = frozen.ended()
    assert status == 3
    assert "is stale: a later holder has written" in complaint
    assert [text for _, text in _written(database, monkeypatch)] == ["by billing-2"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-B", str(FENCING / "service.py"), str(tmp_path / "marks"), "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        yield service.stdout.readline().strip()
        service.kill()


@pytest.mark.parametrize("kind", ["fenced", "naive"])
def test_a_late_request_is_refused_by_a_gate_and_sells_twice_without_one(sidecar: Sidecar, shop: str, kind: str) -> None:
    url = f"{shop}/{kind}/apples"
    environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": str(ROOT / "clients/python/src")}

    def seller(number: int, work: float = 0) -> subprocess.Popen[str]:
        command = [sys.executable, "-B", str(FENCING / "sell.py"), url, str(number), "--work", str(work)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with seller(1, work=0.5) as frozen:
        assert frozen.stdout is not None
        assert frozen.stdout.readline().startswith("holding with token ")
        frozen.send_signal(signal.SIGSTOP)
        sidecar.expire("apples")
        with seller(5) as other:
            assert other.communicate(timeout=PATIENT)[1] == ""
        frozen.send_signal(signal.SIGCONT)
        said, complaint = frozen.communicate(timeout=PATIENT)
    with urllib.request.urlopen(url) as reply:
        left = reply.read()
    if kind == "fenced":
        assert (frozen.returncode, left) == (3, b"5")
        assert "refused: lock apples: fencing token " in complaint
    else:
        assert (frozen.returncode, left, said) == (0, b"9", "9 are left\n"), "five apples have been sold twice"


class Machine:
    """A machine whose cron does the job of the day."""

    def __init__(self, sidecar: Sidecar, job: str, *, name: str = "cron/reports", wait: str = "1m") -> None:
        tools = f"{Path(sidecar.program).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PATH": tools}
        command = [sidecar.program, "lock", "run", name, "--wait", wait, "--", str(DAILY), name, "sh", "-c", job]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self) -> tuple[int, str, str]:
        output, complaint = self.process.communicate(timeout=PATIENT)
        return self.process.returncode, output, complaint


def test_a_job_is_done_once_a_day_whatever_the_machines(sidecar: Sidecar) -> None:
    machines = [Machine(sidecar, "echo working; sleep 0.3") for _ in range(3)]
    ends = [machine.ended() for machine in machines]
    assert [status for status, _, _ in ends] == [0, 0, 0]
    assert "".join(output for _, output, _ in ends) == "working\n"
    assert sum("is taken" in complaint for _, _, complaint in ends) == 2


def test_a_job_that_failed_halfway_is_not_done_again(sidecar: Sidecar) -> None:
    assert Machine(sidecar, "exit 9").ended()[0] == 9
    status, output, complaint = Machine(sidecar, "echo working").ended()
    assert (status, output) == (0, "")
    assert "is taken" in complaint


def test_a_job_is_not_done_without_the_sidecar(sidecar: Sidecar) -> None:
    sidecar.end()
    assert Machine(sidecar, "echo working", wait="2s").ended()[:2] == (69, "")


class Worker:
    """A process that works in the pool."""

    def __init__(self, sidecar: Sidecar, name: str) -> None:
        environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": str(ROOT / "clients/python/src")}
        command = [sys.executable, "-B", str(ROOT / "examples" / "workers" / "worker.py"), name]
        self.name = name
        self.process = subprocess.Popen(command, env=environment)


@pytest.fixture
def workers(sidecar: Sidecar) -> Iterator[list[Worker]]:
    pool = [Worker(sidecar, f"worker-{number}") for number in range(3)]
    yield pool
    for worker in pool:
        worker.process.kill()
        worker.process.wait()


def _leader(client: sidekeeper.Client) -> str:
    return next(leader.owner for leader in client.watch_leader("pool/leader") if leader)


def _results(client: sidekeeper.Client, number: int) -> dict[str, str]:
    """The results of all jobs, when there are so many."""
    with client.config.view("pool") as pool:
        until = time.monotonic() + PATIENT
        while sum(key.startswith("pool/done/") for key in pool) < number:
            assert time.monotonic() < until, sorted(pool)
            time.sleep(0.02)
        return {key.removeprefix("pool/"): entry.text for key, entry in pool.items()}


def test_jobs_are_handed_out_and_done(threaded: sidekeeper.Client, workers: list[Worker]) -> None:
    assert _leader(threaded) in {worker.name for worker in workers}
    while len(threaded.get_group("pool").members) < len(workers):
        time.sleep(0.01)
    for number in range(20):
        threaded.config.put(f"pool/todo/job-{number}", f"say {number}")
    results = _results(threaded, 20)
    assert {name: result.split(" by ")[0] for name, result in results.items()} == {f"done/job-{n}": f"SAY {n}" for n in range(20)}
    assert {result.split(" by ")[1] for result in results.values()} == {worker.name for worker in workers}


def test_jobs_of_the_killed_are_done_by_the_others(threaded: sidekeeper.Client, workers: list[Worker]) -> None:
    leader = _leader(threaded)
    while len(threaded.get_group("pool").members) < len(workers):
        time.sleep(0.01)
    killed = [worker for worker in workers if worker.name == leader]
    killed += [worker for worker in workers if worker.name != leader][:1]
    for worker in killed:  # they are in the group until their leases have ended, and jobs are handed to them
        worker.process.send_signal(signal.SIGSTOP)
    for number in range(20):
        threaded.config.put(f"pool/todo/job-{number}", f"say {number}")
    for worker in killed:
        worker.process.kill()
    results = _results(threaded, 20)
    left = {worker.name for worker in workers if worker not in killed}
    assert {result.split(" by ")[1] for result in results.values()} == left
    assert len(results) == 20
