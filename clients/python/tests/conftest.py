"""A sidecar for tests: `sidekeeper dev`, the real program with an ensemble in memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # see test_fork.py; gRPC reads it once
import grpc

import sidekeeper
from sidekeeper import aio
from sidekeeper.assignment.v1 import assignment_pb2, assignment_pb2_grpc
from sidekeeper.dev.v1 import dev_pb2, dev_pb2_grpc
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc
from sidekeeper.once.v1 import once_pb2, once_pb2_grpc
from sidekeeper.schedule.v1 import schedule_pb2, schedule_pb2_grpc

ROOT = Path(__file__).parents[3]
PATIENT = 30.0
"""Seconds after which something does not happen any more."""


@pytest.fixture(scope="session")
def program() -> str:
    """The sidecar's program: SIDEKEEPER_PROGRAM, or built from this tree."""
    built = os.environ.get("SIDEKEEPER_PROGRAM")
    if built:
        return built
    subprocess.run(["go", "build", "-o", "bin/", "./cmd/sidekeeper"], cwd=ROOT, check=True)
    return str(ROOT / "bin" / "sidekeeper")


class Sidecar:
    """A sidecar that can be frozen, killed, and started again at the same address. Its ensemble ends with it."""

    def __init__(self, program: str, directory: Path, leases: int = 4) -> None:
        self.program, self.directory, self.leases = program, directory, leases
        self.certificates = directory / "certificates"
        self.address = f"unix://{directory}/s.sock"
        self.secure_address = ""
        """Over TCP, with the certificates."""
        self.ensemble_address = ""
        """Where programs of ZooKeeper connect, and no gRPC is spoken."""
        self.served_address = ""
        """Where the sidecar listens that was served last at this ensemble."""
        self.served: list[subprocess.Popen[str]] = []
        self.process: subprocess.Popen[str] | None = None
        directory.mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        listen = ["--listen", "127.0.0.1:0", "--listen", self.address, "--tls-folder", str(self.certificates)]
        command = [self.program, "dev", *listen, "--log-level", "error", "--session-timeout", f"{self.leases}s"]
        own = {**os.environ, "TMPDIR": str(self.directory)}  # for what it leaves when it is killed
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
        assert self.process.stdout is not None
        for line in self.process.stdout:  # it serves when it says so
            if listening := re.search(r"callers: .* (127\.0\.0\.1:\d+)", line):
                self.secure_address = listening[1]
            if joined := re.search(r"ensemble: +(127\.0\.0\.1:\d+)", line):
                self.ensemble_address = joined[1]
            if "Ctrl-C here stops it" in line:
                return
        raise RuntimeError("the sidecar does not start")

    def serve(self, flags: str, policy: str) -> None:
        """Starts a sidecar as in production, in the folder of the certificates and at the same ensemble."""
        command = [self.program, "serve", "--zookeeper", self.ensemble_address, "--tick-time", "1s", "--listen", "127.0.0.1:0"]
        command += ["--operator-listen", "", "--audit-log", "off", "--log-level", "error", *flags.split()]
        if policy:
            (self.certificates / "policy.yaml").write_text(policy)
            command += ["--policy", "policy.yaml"]
        untraced = os.environ | {"SIDEKEEPER_TEST_TRACES": ""}  # which are of a sidecar that has an ensemble of its own
        served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.certificates, env=untraced)
        self.served.append(served)
        assert served.stdout is not None
        listening = re.search(r"listening on (127\.0\.0\.1:\d+)", served.stdout.readline())
        assert listening, "the sidecar does not start"
        self.served_address = listening[1]

    def send(self, number: signal.Signals) -> None:
        """Sends a signal. A sidecar that is frozen stands still when this returns, or has ended."""
        assert self.process is not None
        self.process.send_signal(number)
        state = Path(f"/proc/{self.process.pid}/stat")
        while number == signal.SIGSTOP and state.exists() and not re.search(r"\) [TZ] ", state.read_text()):
            time.sleep(0.001)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        while self.served:
            served = self.served.pop()
            served.kill()
            served.communicate(timeout=PATIENT)
        if self.process is not None:
            self.send(number)
            self.send(signal.SIGCONT)  # afterwards, so that one that is frozen answers nothing before it is killed
            self.process.communicate(timeout=PATIENT)
            self.process = None

    def dev(self, method: str, request: Any) -> Any:
        """Makes a call of DevService."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            return getattr(dev_pb2_grpc.DevServiceStub(channel), method)(request, timeout=PATIENT)

    def expire(self, lock: str) -> None:
        """Has the lease of a lock's holder expire."""
        self.dev("ExpireLease", dev_pb2.ExpireLeaseRequest(lock=lock))

    def break_lock(self, lock: str, within: float) -> None:
        """Ends the hold of a lock's holder as an operator does, and sees that its place is gone in time."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            locks = lock_pb2_grpc.LockServiceStub(channel)
            holder = locks.Get(lock_pb2.GetRequest(name=lock), timeout=PATIENT).view.holders[0]
            locks.Break(lock_pb2.BreakRequest(name=lock, fencing_token=holder.token, reason="stuck"), timeout=within)

    def schedules(self, method: str, request: Any) -> Any:
        """Makes a call of ScheduleService."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            return getattr(schedule_pb2_grpc.ScheduleServiceStub(channel), method)(request, timeout=PATIENT)

    def put_schedule(self, name: str) -> None:
        """Makes a schedule whose next tick is far away."""
        self.schedules("Put", schedule_pb2.PutRequest(name=name, cron="0 0 29 2 *"))

    def run_schedule(self, name: str, run: str) -> None:
        """Asks for a run."""
        self.schedules("Run", schedule_pb2.RunRequest(name=name, id=run))

    def history(self, name: str) -> list[str]:
        """What became of runs, the newest first."""
        outcomes = self.schedules("History", schedule_pb2.HistoryRequest(name=name)).outcomes
        return [f"{each.run_id} {_state(each)} {each.attempt}: {each.note}".removesuffix(": ") for each in outcomes]

    def sets(self, method: str, request: Any) -> Any:
        """Makes a call of AssignmentService."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            return getattr(assignment_pb2_grpc.AssignmentServiceStub(channel), method)(request, timeout=PATIENT)

    def define(self, name: str, *items: str, drop: bool = False) -> None:
        """Makes a set of items, or gives it others."""
        self.sets("Define", assignment_pb2.DefineRequest(set=name, items=items, drop=drop))

    def has_exited(self) -> bool:
        """Whether it has ended, by itself or because it was told to."""
        assert self.process is not None
        return self.process.poll() is not None

    def expire_all(self) -> None:
        """Has all leases expire."""
        self.dev("ExpireLease", dev_pb2.ExpireLeaseRequest(all=True))

    def suspend(self, seconds: int) -> None:
        """Silences the ensemble for so long."""
        request = dev_pb2.SuspendRequest()
        request.duration.FromSeconds(seconds)
        self.dev("Suspend", request)


def _state(outcome: schedule_pb2.Outcome) -> str:
    return schedule_pb2.State.Name(outcome.state).removeprefix("STATE_").lower()


def record(sidecar: Sidecar, name: str, key: str) -> once_pb2.Record:
    """The record of work that is done once."""
    with grpc.insecure_channel(sidecar.address, options=[("grpc.default_authority", "localhost")]) as channel:
        stub = once_pb2_grpc.OnceServiceStub(channel)
        made: once_pb2.Record = stub.Get(once_pb2.GetRequest(name=name, key=key), timeout=PATIENT).record
        return made


def state(sidecar: Sidecar, name: str, key: str) -> str:
    return once_pb2.State.Name(record(sidecar, name, key).state).removeprefix("STATE_")


@pytest.fixture
def directory() -> Iterator[Path]:
    # Short, since a Unix socket's path is at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="sk") as made:
        yield Path(made)


@pytest.fixture
def sidecar(program: str, directory: Path) -> Iterator[Sidecar]:
    running = Sidecar(program, directory)
    yield running
    running.end()


@pytest_asyncio.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[aio.Client]:
    async with aio.Client(sidecar.address) as made:
        yield made


@pytest.fixture
def threaded(sidecar: Sidecar) -> Iterator[sidekeeper.Client]:
    with sidekeeper.Client(sidecar.address) as made:
        yield made
