"""What the client costs: the same done through it and through bare stubs, in turns, with a real sidecar.

Run it as `PYTHONPATH=src python tests/overhead.py [ROUNDS]`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc

import sidekeeper
from sidekeeper import aio
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc
from sidekeeper.sequence.v1 import sequence_pb2, sequence_pb2_grpc

from conftest import Sidecar

IN_A_ROW = 30
AUTHORITY = [("grpc.default_authority", "localhost")]

Way = Callable[[], Awaitable[object]]


async def in_turn(do: Way) -> float:
    """The median of the microseconds that it takes."""
    took = []
    for _ in range(IN_A_ROW):
        began = time.perf_counter()
        await do()
        took.append(1e6 * (time.perf_counter() - began))
    return statistics.median(took)


async def compare(what: str, rounds: int, bare: Way, client: Way) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for way in (0, 1) if turn % 2 else (1, 0):  # who begins changes
            times[way].append(await in_turn((bare, client)[way]))
    ratio = statistics.median(after / before for before, after in zip(*times, strict=True))
    print(f"{what:26} bare {statistics.median(times[0]):6.0f} µs   client {statistics.median(times[1]):6.0f} µs   ratio {ratio:.2f}")


def now(do: Callable[[], object]) -> Way:
    async def done() -> object:
        return do()

    return done


async def asynchronous(sidecar: Sidecar, rounds: int) -> None:
    async with aio.Client(sidecar.address) as client, grpc.aio.insecure_channel(sidecar.address, options=AUTHORITY) as channel:
        locks, sequences = lock_pb2_grpc.LockServiceStub(channel), sequence_pb2_grpc.SequenceServiceStub(channel)
        numbers = client.sequence("numbers")
        await numbers.create(1)

        async def lock_bare() -> None:
            stream = locks.Acquire(lock_pb2.AcquireRequest(name="orders"))
            async for answer in stream:
                if answer.HasField("granted"):
                    await locks.Release(lock_pb2.ReleaseRequest(hold_id=answer.granted.hold_id))

        async def lock_by_client() -> None:
            await (await client.acquire("orders")).release()

        await compare("asyncio: lock and release", rounds, lock_bare, lock_by_client)
        await compare("asyncio: number", rounds, lambda: sequences.Next(sequence_pb2.NextRequest(name="numbers")), numbers.next)


async def threaded(sidecar: Sidecar, rounds: int) -> None:
    with sidekeeper.Client(sidecar.address) as client, grpc.insecure_channel(sidecar.address, options=AUTHORITY) as channel:
        locks, sequences = lock_pb2_grpc.LockServiceStub(channel), sequence_pb2_grpc.SequenceServiceStub(channel)
        numbers = client.sequence("numbers")

        def lock_bare() -> None:
            for answer in locks.Acquire(lock_pb2.AcquireRequest(name="orders")):
                if answer.HasField("granted"):
                    locks.Release(lock_pb2.ReleaseRequest(hold_id=answer.granted.hold_id))

        await compare("threads: lock and release", rounds, now(lock_bare), now(lambda: client.acquire("orders").release()))
        await compare("threads: number", rounds, now(lambda: sequences.Next(sequence_pb2.NextRequest(name="numbers"))), now(numbers.next))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        sidecar = Sidecar(os.environ["SIDEKEEPER_PROGRAM"], Path(folder))
        try:
            asyncio.run(asynchronous(sidecar, rounds))
            asyncio.run(threaded(sidecar, rounds))
        finally:
            sidecar.end()


if __name__ == "__main__":
    main()
