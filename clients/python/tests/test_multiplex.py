"""What a client says on the stream of its lease, and what it makes of what it is told there, by a sidecar that is played."""

from __future__ import annotations

import asyncio
import queue
import time
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
from sidekeeper.membership.v1 import membership_pb2, membership_pb2_grpc

LEASE, HOLD = "1" * 32, "0" * 32

Answers = queue.SimpleQueue[lease_pb2.MultiplexResponse | None]


class Members(membership_pb2_grpc.MembershipServiceServicer):  # type: ignore[misc]
    """Lets join who asks."""

    def Join(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield membership_pb2.JoinResponse(joined=membership_pb2.Joined(incarnation=1))
        while context.is_active():
            time.sleep(0.01)


class Played(lease_pb2_grpc.LeaseServiceServicer, lock_pb2_grpc.LockServiceServicer):  # type: ignore[misc]
    """Opens a lease, grants what is started, confirms what is stopped, and says how long the lease is valid."""

    def __init__(self) -> None:
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.answers: Answers = queue.SimpleQueue()
        """Of the newest stream."""
        self.lease_id = LEASE
        self.checking = True
        self.validity = 0.6
        """What a check is answered with, in seconds."""
        self.resumable = False
        self.breaking = False
        """Whether the stream breaks when it ends next, instead of that the lease is lost."""
        self.answering = True
        """Whether it says that a lease is resumed and what is stopped has ended."""
        self.tcp_address = ""
        self.opening_takes = 0.0
        self.refusing = False
        self.losing = False
        """Whether the next lease is lost before what is started on it is granted."""
        self.ending = ""
        """The reason for which what is started next ends, while the stream goes on."""
        self.waits: list[float] = []

    def Multiplex(self, requests: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        if self.refusing:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "LEASE_LIMIT: too many")
        answers = self.answers = queue.SimpleQueue()
        futures.ThreadPoolExecutor(1).submit(self.read, requests, answers)
        while (answer := answers.get()) is not None:
            if answer.WhichOneof("response") is None:
                return
            yield answer
        if self.breaking:
            self.breaking = False
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection is gone")
        context.abort(grpc.StatusCode.ABORTED, "LEASE_LOST: it is lost")

    def read(self, requests: Any, answers: Answers) -> None:
        try:
            for request in requests:
                self.hear(request, request.WhichOneof("request"))
            self.said.put("no more")
            answers.put(lease_pb2.MultiplexResponse())
        except grpc.RpcError:
            self.said.put("cancelled")
            answers.put(None)

    def hear(self, request: Any, kind: str) -> None:
        match kind:
            case "open":
                time.sleep(self.opening_takes)
                self.open()
            case "resume":
                self.said.put("resume")
                if self.answering:
                    self.open()
            case "check" if self.checking:
                self.check(request.check.check_id)
            case "start" if self.ending:
                code, _ = grpc.StatusCode.ABORTED.value
                ended = lease_pb2.Ended(request_id=request.start.request_id, code=code, reason=self.ending, message="it is lost")
                self.answers.put(lease_pb2.MultiplexResponse(ended=ended))
                self.ending = ""
            case "start" if self.losing:
                self.losing = False
                self.answers.put(None)
            case "start":
                self.waits.append(request.start.acquire.wait_timeout.ToMilliseconds() / 1000)
                granted = lock_pb2.AcquireResponse(granted=lock_pb2.Granted(hold_id=HOLD, fencing_token=7))
                event = lease_pb2.Event(request_id=request.start.request_id, acquire=granted)
                self.answers.put(lease_pb2.MultiplexResponse(event=event))
                self.said.put(f"start {request.start.request_id} {request.start.acquire.lease_id}")
            case "stop":
                if self.answering:
                    self.answers.put(lease_pb2.MultiplexResponse(ended=lease_pb2.Ended(request_id=request.stop.request_id)))
                self.said.put(f"stop {request.stop.request_id}")

    def open(self) -> None:
        opened = lease_pb2.Opened(lease_id=self.lease_id, resumable=self.resumable)
        self.answers.put(lease_pb2.MultiplexResponse(opened=opened))

    def break_stream(self) -> None:
        self.breaking = True
        self.answers.put(None)

    def check(self, check_id: int) -> None:
        checked = lease_pb2.Checked(check_id=check_id)
        checked.valid_for.FromMilliseconds(int(self.validity * 1000))
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
        self.said.put("a call of Close")
        self.answers.put(None)
        return lease_pb2.CloseResponse()


@pytest.fixture
def played(directory: Path) -> Iterator[tuple[Played, str]]:
    sidecar = Played()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    lease_pb2_grpc.add_LeaseServiceServicer_to_server(sidecar, server)
    lock_pb2_grpc.add_LockServiceServicer_to_server(sidecar, server)
    membership_pb2_grpc.add_MembershipServiceServicer_to_server(Members(), server)
    address = f"unix://{directory}/played.sock"
    server.add_insecure_port(address)
    sidecar.tcp_address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
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


async def test_a_lease_on_which_nothing_stands_is_not_lost_when_its_validity_runs_out(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        for _ in range(2):
            sidecar.checking = False
            await asyncio.sleep(2 * sidecar.validity)
            waiting = asyncio.create_task(client.acquire("orders", lease=lease))
            await asyncio.sleep(0.5)  # in which the lease is looked at, and asked about
            assert (lease.valid, lease.valid_for, lease.error) == (False, 0, None)
            assert sidecar.said.empty()
            sidecar.checking = True
            lock = await asyncio.wait_for(waiting, 10)
            assert lock.valid
            assert (await said(sidecar)).startswith("start ")
            await lock.release()
            assert (await said(sidecar)).startswith("stop ")
        lock = await client.acquire("orders", lease=lease)
        sidecar.checking = False
        await asyncio.wait_for(lease.wait_ended(), 10)
        for held in (lease, lock):
            assert isinstance(held.error and held.error.cause, sidekeeper.LeaseLostError)


async def test_what_is_started_on_a_lease_that_is_not_valid_fails_when_nobody_says_that_it_is(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        sidecar.checking = False
        await asyncio.sleep(2 * sidecar.validity)
        with pytest.raises(sidekeeper.SidekeeperError, match="does not answer"):
            await client.acquire("orders", lease=lease, wait=0)
        assert lease.error is None
        assert sidecar.said.empty()


async def test_a_lease_on_which_a_release_is_under_way_is_lost_when_its_validity_runs_out(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        sidecar.answering = sidecar.checking = False
        with pytest.raises(sidekeeper.LostError):
            await lock.release()
        assert isinstance(lease.error and lease.error.cause, sidekeeper.LeaseLostError)


async def test_a_member_on_a_lease_of_another_client_is_lost_when_the_validity_of_that_runs_out(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client, aio.Client(address) as other:
        lease = await client.open_lease()
        member = await other.join("workers", "a", lease=lease)
        sidecar.checking = False
        await asyncio.wait_for(member.wait_ended(), 10)
        assert isinstance(lease.error and lease.error.cause, sidekeeper.LeaseLostError)


async def test_a_lease_whose_stream_is_silent_keeps_the_others_of_its_client_from_nothing(played: tuple[Played, str]) -> None:
    sidecar, address = played
    sidecar.validity = 2
    async with aio.Client(address) as client:
        await client.open_lease()
        sidecar.lease_id = "2" * 32  # on the stream of the other one, nothing is said from now on
        lock = await client.acquire("orders", lease=await client.open_lease())
        await asyncio.sleep(2.5 * sidecar.validity)
        assert lock.valid


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


async def test_a_lock_without_a_lease_has_one_of_its_own_that_ends_with_it_without_a_call(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lock = await client.acquire("orders", owner="billing")
        request = (await said(sidecar)).split(" ")[1]
        assert lock.valid
        assert client._leases.open
        await lock.release()
        assert [await said(sidecar), await said(sidecar)] == [f"stop {request}", "no more"]
        assert not client._leases.open
        assert lock.error is None
    assert sidecar.said.empty()


async def test_the_wait_of_a_lock_without_a_lease_is_for_both_the_lease_and_the_lock(played: tuple[Played, str]) -> None:
    sidecar, address = played
    sidecar.opening_takes = 0.05
    async with aio.Client(address) as client:
        for wait in (60, 0):
            await (await client.acquire("orders", wait=wait)).release()
    assert 0 < sidecar.waits[0] <= 60 - 0.05
    assert sidecar.waits[1] == 0


async def test_a_lease_that_is_lost_before_its_only_lock_is_granted_costs_an_attempt(played: tuple[Played, str]) -> None:
    sidecar, address = played
    sidecar.losing = True
    async with aio.Client(address) as client:
        await (await client.acquire("orders")).release()
        sidecar.losing = True
        with pytest.raises(sidekeeper.EnsembleUnreachableError, match="nothing is held: it is lost"):
            await client.acquire("orders", wait=0)


async def test_a_lease_that_is_lost_is_said_of_its_only_lock_first(played: tuple[Played, str]) -> None:
    sidecar, address = played
    sidecar.ending = "LEASE_LOST"
    async with aio.Client(address) as client:
        with pytest.raises(sidekeeper.EnsembleUnreachableError, match="nothing is held: it is lost"):
            await client.acquire("orders", wait=0)


async def test_a_lease_that_cannot_be_opened_is_the_error_of_its_only_lock(played: tuple[Played, str]) -> None:
    sidecar, address = played
    sidecar.refusing = True
    async with aio.Client(address) as client:
        with pytest.raises(sidekeeper.LeaseLimitError):
            await client.acquire("orders")


async def test_a_lock_is_lost_with_the_lease_that_it_alone_has(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lock = await client.acquire("orders")
        sidecar.answers.put(None)
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert isinstance(lock.error and lock.error.cause, sidekeeper.LeaseLostError)
        with pytest.raises(sidekeeper.LostError):
            await lock.release()


async def test_a_lease_ends_whose_only_lock_was_lost_when_that_is_released(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lock = await client.acquire("orders")
        sidecar.end(int((await said(sidecar)).split(" ")[1]))
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert await said(sidecar) == f"release {HOLD}"
        with pytest.raises(sidekeeper.LostError):
            await lock.release()
        assert await said(sidecar) in ("cancelled", "no more")  # gRPC's server may take the one for the other


async def test_a_lease_that_is_reached_over_tcp_ends_with_its_stream_whatever_the_sidecar_says(played: tuple[Played, str]) -> None:
    sidecar, _ = played
    sidecar.resumable, sidecar.validity = True, 60
    async with aio.Client(sidecar.tcp_address) as client:
        lease = await client.open_lease()
        lock = await client.acquire("orders", lease=lease)
        assert (await said(sidecar)).startswith("start ")
        sidecar.break_stream()
        await asyncio.wait_for(lock.wait_ended(), 10)
        assert lock.error is not None
        assert lock.error.cause.code is grpc.StatusCode.UNAVAILABLE
        assert not lease.valid


async def said_next(sidecar: Played) -> str:
    """What is said next, but that a stream is over."""
    while (word := await said(sidecar)) in ("cancelled", "no more"):
        pass
    return word


async def held(sidecar: Played, client: aio.Client) -> tuple[aio.Lease, aio.Lock, str]:
    """A lock of a lease that outlives its sidecar, and the lock's number."""
    sidecar.resumable, sidecar.validity = True, 60
    lease = await client.open_lease()
    lock = await client.acquire("orders", lease=lease)
    sidecar.answering = False
    return lease, lock, (await said(sidecar)).split(" ")[1]


async def test_a_lock_that_was_released_before_its_stream_broke_is_released_though_its_place_is_gone(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        lease, lock, request = await held(sidecar, client)
        releasing = asyncio.create_task(lock.release())
        assert await said(sidecar) == f"stop {request}"
        sidecar.break_stream()
        assert [await said_next(sidecar), await said_next(sidecar)] == ["resume", f"stop {request}"]
        sidecar.open()
        sidecar.end(int(request))
        await releasing
        assert lock.error is None
        assert lease.valid


async def test_a_lock_is_lost_that_is_released_while_its_lease_is_away_and_was_broken_before(played: tuple[Played, str]) -> None:
    sidecar, address = played
    async with aio.Client(address) as client:
        _, lock, request = await held(sidecar, client)
        sidecar.break_stream()
        assert await said_next(sidecar) == "resume"
        releasing = asyncio.create_task(lock.release())
        assert await said_next(sidecar) == f"stop {request}"
        sidecar.open()
        sidecar.end(int(request))
        with pytest.raises(sidekeeper.LostError):
            await releasing
