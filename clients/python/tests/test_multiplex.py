"""What a client says on the stream of its lease, and what it makes of what it is told there, by a sidecar that is played."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper.lease.v1 import lease_pb2, lease_pb2_grpc
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc

LEASE, HOLD = "1" * 32, "0" * 32


class Played(lease_pb2_grpc.LeaseServiceServicer, lock_pb2_grpc.LockServiceServicer):  # type: ignore[misc]
    """Opens a lease, grants what is started, confirms what is stopped, and says how long the lease is valid."""

    def __init__(self) -> None:
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[lease_pb2.MultiplexResponse | None] = queue.SimpleQueue()
        self.checking = True

    def Multiplex(self, requests: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        futures.ThreadPoolExecutor(1).submit(self.read, requests)
        while (answer := self.answers.get()) is not None:
            yield answer
        context.abort(grpc.StatusCode.ABORTED, "LEASE_LOST: it is lost")

    def read(self, requests: Any) -> None:
        try:
            for request in requests:
                self.hear(request, request.WhichOneof("request"))
        except grpc.RpcError:
            self.answers.put(None)

    def hear(self, request: Any, kind: str) -> None:
        match kind:
            case "open":
                self.answers.put(lease_pb2.MultiplexResponse(opened=lease_pb2.Opened(lease_id=LEASE)))
            case "check" if self.checking:
                self.check(request.check.check_id)
            case "start":
                granted = lock_pb2.AcquireResponse(granted=lock_pb2.Granted(hold_id=HOLD, fencing_token=7))
                event = lease_pb2.Event(request_id=request.start.request_id, acquire=granted)
                self.answers.put(lease_pb2.MultiplexResponse(event=event))
                self.said.put(f"start {request.start.request_id} {request.start.acquire.lease_id}")
            case "stop":
                self.answers.put(lease_pb2.MultiplexResponse(ended=lease_pb2.Ended(request_id=request.stop.request_id)))
                self.said.put(f"stop {request.stop.request_id}")

    def check(self, check_id: int) -> None:
        checked = lease_pb2.Checked(check_id=check_id)
        checked.valid_for.FromMilliseconds(600)
        self.answers.put(lease_pb2.MultiplexResponse(checked=checked))

    def end(self, request_id: int) -> None:
        ended = lease_pb2.Ended(request_id=request_id, code=10, reason="LOCK_BROKEN", message="LOCK_BROKEN: by an operator")
        self.answers.put(lease_pb2.MultiplexResponse(ended=ended))

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.said.put("a call of Check")
        context.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.said.put(f"release {request.hold_id}")
        return lock_pb2.ReleaseResponse()

    def Close(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.answers.put(None)
        return lease_pb2.CloseResponse()


@pytest.fixture
def played(directory: Path) -> Iterator[tuple[Played, str]]:
    sidecar = Played()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    lease_pb2_grpc.add_LeaseServiceServicer_to_server(sidecar, server)
    lock_pb2_grpc.add_LockServiceServicer_to_server(sidecar, server)
    address = f"unix://{directory}/played.sock"
    server.add_insecure_port(address)
    server.start()
    yield sidecar, address
    sidecar.answers.put(None)
    server.stop(None).wait()


async def said(sidecar: Played) -> str:
    return await asyncio.to_thread(sidecar.said.get, timeout=10)


async def test_a_lock_of_a_lease_takes_two_messages_and_no_call(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        assert (lock.fencing_token, lock.hold_id, lock.valid) == (7, HOLD, True)
        started = (await said(sidecar)).split(" ")
        assert started[::2] == ["start", ""]
        await lock.release()
        assert await said(sidecar) == f"stop {started[1]}"
        assert sidecar.said.empty()


async def test_a_lock_of_a_lease_ends_when_that_is_read_and_is_acknowledged(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        request = int((await said(sidecar)).split(" ")[1])
        sidecar.end(request)
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert not lock.valid
        assert isinstance(lock.error and lock.error.cause, sidekeeper.LockBrokenError)
        assert await said(sidecar) == f"release {HOLD}"
        assert lease.valid


async def test_a_lease_that_nobody_confirms_on_its_stream_ends_with_all_its_locks(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        sidecar.checking = False
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert not lease.valid
        assert isinstance(lock.error and lock.error.cause, sidekeeper.LeaseLostError)


async def test_a_lease_whose_stream_ends_takes_its_locks_along(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        sidecar.answers.put(None)
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert isinstance(lock.error and lock.error.cause, sidekeeper.LeaseLostError)
        with pytest.raises(sidekeeper.SidekeeperError):
            await client.acquire("orders", lease=lease)
