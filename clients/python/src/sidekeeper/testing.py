"""Sidecars for tests of applications that use Sidekeeper: `sidekeeper dev`, the program that runs in production, with an ensemble in
memory. Each has an ensemble of its own, starts within a fraction of a second, and fails as sidecars and ensembles do in production when a
test asks for it.

    with Sidecar() as sidecar:
        with pytest.raises(LostError), sidecar.client.lock("orders") as lock:
            sidecar.expire_lock("orders")
            lock.wait_should_stop(10)

With pytest, `sidekeeper.pytest_plugin` has it as a fixture. The program is what SIDEKEEPER_PROGRAM names, or `sidekeeper` on PATH. It
ends with the tests, even if they are killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cached_property
from typing import Any, Self

import grpc

from sidekeeper._errors import from_status
from sidekeeper._sync import Client
from sidekeeper._types import duration
from sidekeeper.dev.v1 import dev_pb2, dev_pb2_grpc

__all__ = ["PROGRAM_VARIABLE", "Sidecar"]

PROGRAM_VARIABLE = "SIDEKEEPER_PROGRAM"
"""The environment variable that names the program."""

PATIENCE = 30.0
"""Seconds that a fault may take to be done, and the program to end."""


class Sidecar:
    """A running sidecar on a Unix socket, for threads and, by its address, for asyncio. Close it, or use it as a context manager.

    session_timeout: how many seconds a lease survives without the ensemble unless its caller asks for another time: from 2.2 to 20. None
        is 6: a lease is suspended about a second after the ensemble has fallen silent, and lost after about four.

    It returns when the sidecar serves. Raises FileNotFoundError if there is no program, RuntimeError if that does not start, which has
    written the reason to standard error. The methods that are faults raise SidekeeperError. They block: with asyncio, call them with
    `asyncio.to_thread`.
    """

    address: str
    """Where it listens: `unix:///…`, as clients and gRPC in other languages understand it."""

    def __init__(self, *, session_timeout: float | None = None) -> None:
        program = _program()
        command = [program, "dev", "--until-input-ends", "--listen=", "--drain-timeout=0s", "--log-level=error"]
        if session_timeout is not None:
            command.append(f"--session-timeout={session_timeout}s")
        # It ends when its input does, which nothing is written to: with this process, however that ends.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.address = self._await_address(program)
        except BaseException:
            self.close()
            raise

    def _await_address(self, program: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if listening := re.search(r"callers: +(unix://[^\s,]+)", line):
                return listening[1]
        raise RuntimeError(f"{program} dev does not start: exit code {self._process.wait()}")

    @cached_property
    def client(self) -> Client:
        """A client of the sidecar, for threads. It is made when it is first asked for, and closed with the sidecar."""
        return Client(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client and stops the sidecar. Locks that others hold are lost. Closing again does nothing."""
        if "client" in self.__dict__:
            self.client.close()
        self._process.terminate()  # since a forked child may hold its input open
        try:
            self._process.communicate(timeout=PATIENCE)
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise

    def suspend(self, seconds: float) -> None:
        """Has the ensemble answer no one for that long, as if the network to it had been cut. What is held is suspended, and lost if the
        silence outlasts its validity. The newest call counts; 0 ends a silence at once."""
        self._fault("Suspend", dev_pb2.SuspendRequest(duration=duration(seconds)))

    def delay_grants(self, seconds: float) -> None:
        """Has each lock granted that much later than its turn comes, from now on. Meanwhile its caller waits at the head of the queue."""
        self._fault("DelayGrants", dev_pb2.DelayGrantsRequest(delay=duration(seconds)))

    def expire_lock(self, name: str) -> None:
        """Expires the leases that hold a lock, as the ensemble does with those that it has not heard of for too long. It returns when their
        callers have been told and the lock is free. Raises SidekeeperError if no one holds it."""
        self._expire(lock=name)

    def expire_lease(self, lease_id: str) -> None:
        """Expires a lease by its id, as expire_lock does."""
        self._expire(lease_id=lease_id)

    def expire_all(self) -> int:
        """Expires every lease of the sidecar, as expire_lock does, and returns how many there were."""
        return self._expire(all=True)

    def _expire(self, **leases: Any) -> int:
        expired: int = self._fault("ExpireLease", dev_pb2.ExpireLeaseRequest(**leases)).expired
        return expired

    def _fault(self, method: str, request: object) -> Any:
        with grpc.insecure_channel(self.address, options=[("grpc.default_authority", "localhost")]) as channel:
            try:
                return getattr(dev_pb2_grpc.DevServiceStub(channel), method)(request, timeout=PATIENCE)
            except grpc.RpcError as error:
                raise from_status(error.code(), error.details(), error.trailing_metadata()) from None


def _program() -> str:
    program = os.environ.get(PROGRAM_VARIABLE) or "sidekeeper"
    found = shutil.which(program)
    if found is None:
        raise FileNotFoundError(
            f"no program {program!r} to start a sidecar with: put `sidekeeper` on PATH, or its path into {PROGRAM_VARIABLE}. "
            "It is one file, from https://github.com/sidekeeper/sidekeeper/releases"
        )
    return found
