"""A sidecar for tests: `sidekeeper dev`, the real program with an ensemble in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

import sidekeeper
from sidekeeper import aio
from sidekeeper.dev.v1 import dev_pb2, dev_pb2_grpc

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

    def __init__(self, program: str, directory: Path, *flags: str) -> None:
        self.program, self.flags = program, flags
        self.address = f"unix://{directory}/s.sock"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program, "dev", "--listen", self.address, "--log-level", "error", *self.flags], stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + PATIENT
        while not Path(self.address.removeprefix("unix://")).exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the sidecar does not start")
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.send(signal.SIGCONT)
            self.send(number)
            self.process.wait(PATIENT)
            self.process = None

    def dev(self, method: str, request: Any) -> Any:
        """Makes a call of DevService."""
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            return getattr(dev_pb2_grpc.DevServiceStub(channel), method)(request, timeout=PATIENT)

    def expire(self, lock: str) -> None:
        """Has the lease of a lock's holder expire."""
        self.dev("ExpireLease", dev_pb2.ExpireLeaseRequest(lock=lock))

    def expire_all(self) -> None:
        """Has all leases expire."""
        self.dev("ExpireLease", dev_pb2.ExpireLeaseRequest(all=True))

    def suspend(self, seconds: int) -> None:
        """Silences the ensemble for so long."""
        request = dev_pb2.SuspendRequest()
        request.duration.FromSeconds(seconds)
        self.dev("Suspend", request)


@pytest.fixture
def directory() -> Iterator[Path]:
    # Short, since a Unix socket's path is at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="sk") as made:
        yield Path(made)


@pytest.fixture
def sidecar(program: str, directory: Path) -> Iterator[Sidecar]:
    running = Sidecar(program, directory, "--session-timeout", "4s")
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
