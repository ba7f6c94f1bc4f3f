"""Elections, with asyncio and with threads."""

from __future__ import annotations

import asyncio

import pytest

import sidekeeper
from sidekeeper import aio
from sidekeeper._election import Observer
from sidekeeper.election.v1 import election_pb2
from sidekeeper.hold.v1 import hold_pb2

from conftest import PATIENT, Sidecar


async def test_candidates_lead_one_after_the_other(client: aio.Client) -> None:
    first = await client.campaign("scheduler", "one", value="one:80")
    assert first.valid
    assert first.term.lock == "scheduler"
    with pytest.raises(sidekeeper.LockHeldError):
        await client.campaign("scheduler", "two", wait=0)
    ahead: asyncio.Queue[tuple[int, sidekeeper.Leader | None]] = asyncio.Queue()
    waiting = asyncio.ensure_future(client.campaign("scheduler", "two", on_candidate=lambda *told: ahead.put_nowait(told)))
    position, leader = await asyncio.wait_for(ahead.get(), PATIENT)
    assert leader is not None
    assert (position, leader.candidate, leader.value, leader.term) == (1, "one", "one:80", first.term)
    view = await client.get_election("scheduler")
    assert view.leader is not None
    assert (view.leader.candidate, [c.candidate for c in view.candidates]) == ("one", ["two"])
    await first.resign()
    second = await asyncio.wait_for(waiting, PATIENT)
    assert second.term.fencing_token > first.term.fencing_token
    assert first.error is None
    with pytest.raises(sidekeeper.GuardLostError):
        await first.proclaim("late")
    await second.resign()
    assert (await client.get_election("scheduler")).leader is None


async def test_an_observer_sees_each_leader_and_its_value(client: aio.Client) -> None:
    observed = client.observe("observed")

    async def next_of() -> sidekeeper.Observation:
        return await asyncio.wait_for(anext(observed), PATIENT)

    assert await next_of() == sidekeeper.Observation(None)
    led = await client.campaign("observed", "one")
    leader = (await next_of()).leader
    assert leader is not None
    assert (leader.candidate, leader.value, leader.term) == ("one", "", led.term)
    await led.proclaim("one:80")
    leader = (await next_of()).leader
    assert leader is not None
    assert leader.value == "one:80"
    await led.resign()
    assert await next_of() == sidekeeper.Observation(None)
    await observed.aclose()


def test_no_earlier_term_is_observed_after_a_later_one() -> None:
    def leader(term: int) -> election_pb2.WatchResponse:
        ticket = hold_pb2.Ticket(lock="x", fencing_token=term)
        return election_pb2.WatchResponse(leader=election_pb2.Leader(candidate="c", ticket=ticket))

    observer = Observer()
    seen: list[str] = []
    vacant = election_pb2.WatchResponse(vacant=election_pb2.Vacant())
    for message in (None, leader(3), leader(5), None, None, leader(3), leader(5), vacant, leader(7)):
        if (told := observer.learn(message)) is not None:
            seen.append(f"{told.leader.term.fencing_token if told.leader else 0}{' stale' if told.stale else ''}")
    assert seen == ["3", "5", "5 stale", "5 stale", "5", "0", "7"]


async def test_leadership_is_handed_over(client: aio.Client) -> None:
    asked: asyncio.Queue[sidekeeper.YieldRequest] = asyncio.Queue()
    first = await client.campaign("handed", "one", on_yield_requested=asked.put_nowait)
    others = []
    for name in ("two", "three"):
        stands = asyncio.Event()
        others.append(asyncio.ensure_future(client.campaign("handed", name, on_candidate=lambda *_, s=stands: s.set())))
        await asyncio.wait_for(stands.wait(), PATIENT)
    with pytest.raises(sidekeeper.CandidateNotFoundError):
        await client.transfer_leadership("handed", "four")
    await client.transfer_leadership("handed", "three", reason="drained")
    request = await asyncio.wait_for(asked.get(), PATIENT)
    assert (request.to, request.reason, request.grace) == ("three", "drained", None)
    assert first.yield_request == request
    await first.resign()
    third = await asyncio.wait_for(others[1], PATIENT)
    await third.resign()
    await (await asyncio.wait_for(others[0], PATIENT)).resign()


async def test_a_body_is_cancelled_that_leads_no_more(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError):
        async with asyncio.timeout(PATIENT), client.leadership("body", "one"):
            sidecar.expire_all()
            await asyncio.sleep(2 * PATIENT)
    async with client.leadership("body", "one") as led:
        led.check()
        await client.config.put("led/by", b"one")
    with pytest.raises(sidekeeper.LostError):
        led.check()


async def test_a_candidacy_stands_on_a_lease(client: aio.Client) -> None:
    lease = await client.open_lease()
    led = await client.campaign("leased", "one", lease=lease)
    with pytest.raises(sidekeeper.AlreadyContendingError):
        await client.acquire("leased", lease=lease)
    await lease.close()
    await asyncio.wait_for(led.wait_ended(), PATIENT)
    assert isinstance(led.error, sidekeeper.LostError)


def test_threads_lead(threaded: sidekeeper.Client) -> None:
    with threaded.campaign("threads", "one", value="a") as led:
        assert (led.election, led.candidate, led.valid, led.yield_request) == ("threads", "one", True, None)
        led.check()
        led.proclaim("b")
        view = threaded.get_election("threads")
        assert view.leader is not None
        assert (view.leader.value, view.leader.term) == ("b", led.term)
        threaded.transfer_leadership("threads", "one")
    assert not led.valid
    assert next(iter(threaded.observe("threads"))).leader is None
