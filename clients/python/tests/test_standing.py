"""Claims, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc

from conftest import PATIENT, Sidecar


def _minutes_left(until: datetime | None) -> int:
    assert until is not None
    return round((until - datetime.now(UTC)) / timedelta(minutes=1))


async def test_a_claim_outlives_its_client(client: aio.Client, sidecar: Sidecar) -> None:
    async with aio.Client(sidecar.address) as other:
        made = await other.claim("staging", 600, "apply", owner="ci-7")
    [holder] = (await client.get_lock("staging")).holders
    assert holder.claim is not None
    assert (holder.owner, holder.claim.reason, holder.fencing_token) == ("ci-7", "apply", made.fencing_token)
    assert _minutes_left(holder.claim.until) == _minutes_left(made.until) == 10
    known = client.claim_by_id(made.id)
    assert (known.fencing_token, known.until) == (0, None)
    with pytest.raises(ValueError, match="has no ticket"):
        known.ticket()
    assert 50 < await known.check() <= 58
    assert (known.fencing_token, _minutes_left(known.until)) == (made.fencing_token, 10)
    await known.extend(1200)
    assert _minutes_left(known.until) == 20
    with pytest.raises(sidekeeper.NoProcessError):
        await client.revoke("staging")
    await known.release()
    await known.release()
    with pytest.raises(sidekeeper.ClaimEndedError):
        await known.check()
    with pytest.raises(sidekeeper.ClaimEndedError):
        await client.claim("staging", 600, "apply", claim_id=made.id)
    with pytest.raises(sidekeeper.ClaimNotFoundError):
        await client.claim_by_id("0" * 32).check()


async def test_what_is_written_is_guarded_by_a_claim(client: aio.Client) -> None:
    claim = await client.claim("staging", 60, "apply")
    with claim.ticket().guard():
        await client.config.put("app/colour", "red")
    await claim.release()
    with claim.ticket().guard(), pytest.raises(sidekeeper.GuardLostError):
        await client.config.put("app/colour", "blue")


async def test_a_claim_waits_as_others_do(client: aio.Client) -> None:
    async with client.lock("staging") as lock:
        with pytest.raises(sidekeeper.LockHeldError):
            await client.claim("staging", 60, "apply", wait=0)
        with pytest.raises(sidekeeper.WaitTimeoutError):
            await client.claim("staging", 60, "apply", wait=0.1)
        waiting = asyncio.ensure_future(client.claim("staging", 60, "apply"))
        await _waiters(client, 1)
    assert (await asyncio.wait_for(waiting, PATIENT)).fencing_token > lock.fencing_token


async def test_a_claim_whose_id_nobody_knows_is_withdrawn(client: aio.Client) -> None:
    async with client.lock("staging"):
        for claim_id, left in ((None, 0), (secrets.token_hex(16), 1)):
            waiting = asyncio.ensure_future(client.claim("staging", 60, "apply", claim_id=claim_id))
            await _waiters(client, 1)
            waiting.cancel()
            await asyncio.wait([waiting])
            await _waiters(client, left)


async def test_a_claim_is_asked_for_until_it_is_answered(program: str, directory: Path) -> None:
    sidecar = Sidecar(program, directory)
    async with aio.Client(sidecar.address) as client:
        await client.get_lock("staging")
        sidecar.end()
        with pytest.raises(sidekeeper.SidekeeperError, match="not reachable"):
            await client.claim("staging", 60, "apply", wait=0.3)
        waiting = asyncio.ensure_future(client.claim("staging", 60, "apply", wait=PATIENT))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(sidecar.start)
        assert await (await waiting).check() > 0
    sidecar.end()


def test_claims_with_threads(threaded: sidekeeper.Client) -> None:
    claim = threaded.claim("staging", 60, "apply")
    assert threaded.claim("staging", 60, "apply", claim_id=claim.id).fencing_token == claim.fencing_token
    known = threaded.claim_by_id(claim.id)
    known.extend(600)
    assert _minutes_left(known.until) == 10
    assert known.check() > 50
    assert claim.ticket() == sidekeeper.Ticket("staging", claim.fencing_token)
    claim.release()
    with pytest.raises(sidekeeper.ClaimEndedError):
        known.extend(60)


async def _waiters(client: aio.Client, number: int) -> None:
    async with asyncio.timeout(PATIENT):
        while len((await client.get_lock("staging")).waiters) != number:
            await asyncio.sleep(0.01)


class _Losing(lock_pb2_grpc.LockServiceServicer):  # type: ignore[misc]
    """A sidecar that answers so many calls of Claim with a lost reply."""

    def __init__(self, replies: int) -> None:
        self.replies = replies
        self.asked: list[lock_pb2.ClaimRequest] = []
        self.released: list[str] = []

    async def Claim(self, request: lock_pb2.ClaimRequest, context: Any) -> lock_pb2.ClaimResponse:  # noqa: N802
        self.asked.append(request)
        if len(self.asked) <= self.replies:
            await context.abort(grpc.StatusCode.ABORTED, "OUTCOME_UNKNOWN: a reply was lost")
        return lock_pb2.ClaimResponse(fencing_token=7)

    async def Release(self, request: lock_pb2.ReleaseRequest, _: Any) -> lock_pb2.ReleaseResponse:  # noqa: N802
        self.released.append(request.claim_id)
        return lock_pb2.ReleaseResponse()


@asynccontextmanager
async def _losing(directory: Path, replies: int) -> AsyncIterator[tuple[_Losing, aio.Client]]:
    losing, server = _Losing(replies), grpc.aio.server()
    lock_pb2_grpc.add_LockServiceServicer_to_server(losing, server)
    server.add_insecure_port(f"unix://{directory}/l.sock")
    await server.start()
    async with aio.Client(f"unix://{directory}/l.sock") as client:
        yield losing, client
    await server.stop(None)


async def test_a_claim_is_asked_for_with_one_id_until_there_is_an_answer(directory: Path) -> None:
    async with _losing(directory, 2) as (sidecar, client):
        claim = await client.claim("staging", 60, "apply", wait=PATIENT)
        assert [request.claim_id for request in sidecar.asked] == [claim.id] * 3
        assert (claim.fencing_token, sidecar.released) == (7, [])
        waits = [request.wait_timeout.ToNanoseconds() / 1e9 for request in sidecar.asked]
        assert PATIENT == waits[0] > waits[1] > waits[2] > PATIENT - 20


async def test_a_claim_without_an_answer_is_released_if_no_caller_knows_its_id(directory: Path) -> None:
    async with _losing(directory, 2) as (sidecar, client):
        for claim_id in (secrets.token_hex(16), None):
            with pytest.raises(sidekeeper.OutcomeUnknownError):
                await client.claim("staging", 60, "apply", wait=0, claim_id=claim_id)
        async with asyncio.timeout(PATIENT):
            while not sidecar.released:
                await asyncio.sleep(0.01)
        assert sidecar.released == [sidecar.asked[1].claim_id]
