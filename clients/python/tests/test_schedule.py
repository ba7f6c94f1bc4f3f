"""Work at the ticks of a schedule, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, timedelta

import pytest

import sidekeeper
from sidekeeper import Outcome, aio

from conftest import PATIENT, Sidecar


class NoDiskError(Exception):
    """Whose text is too long for a note, and no note's."""

    def __str__(self) -> str:
        return "no\tdisk " + "é" * 200


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot be said")


@pytest.fixture
def planned(sidecar: Sidecar) -> Sidecar:
    """A sidecar with a schedule of which a run waits."""
    sidecar.put_schedule("reports")
    sidecar.run_schedule("reports", "now")
    return sidecar


def until_lost(planned: Sidecar) -> None:
    """Waits until the sidecar has heard that a loss is known, and sees the next attempt."""
    with sidekeeper.Client(planned.address) as other, other.work("reports", wait=PATIENT) as tick:
        assert (tick.run_id, tick.number) == ("now", 2)


async def test_a_tick_succeeds_as_its_body_ends(client: aio.Client, planned: Sidecar) -> None:
    async with client.work("reports", owner="me") as tick:
        assert (tick.name, tick.run_id, tick.number, len(tick.hold_id)) == ("reports", "now", 1, 32)
        assert tick.at.tzinfo is UTC
        assert abs(tick.at.timestamp() - time.time()) < 60
        assert tick.at.utcoffset() == timedelta(0)
        assert tick.ticket() == sidekeeper.Ticket("reports", tick.fencing_token)
        assert sidekeeper.tickets() == (tick.ticket(),)
        await client.config.put("made", "x")
        assert tick.valid
    assert planned.history("reports") == ["now succeeded 1"]
    with pytest.raises(sidekeeper.WaitTimeoutError):
        await client.work("reports", wait=0)
    with pytest.raises(sidekeeper.ScheduleNotFoundError):
        await client.work("none")


def test_a_tick_of_a_thread_succeeds_as_its_body_ends(threaded: sidekeeper.Client, planned: Sidecar) -> None:
    with threaded.work("reports") as tick:
        assert (tick.name, tick.run_id, tick.number, len(tick.hold_id)) == ("reports", "now", 1, 32)
        assert abs(tick.at.timestamp() - time.time()) < 60
        assert tick.revocation is None
        assert not tick.should_stop()
        threaded.config.put("made", "x")
        assert sidekeeper.tickets() == (tick.ticket(),)
    assert planned.history("reports") == ["now succeeded 1"]
    with pytest.raises(sidekeeper.WaitTimeoutError), threaded.work("reports", wait=0):
        pass


async def test_a_body_that_raises_has_failed(client: aio.Client, threaded: sidekeeper.Client, planned: Sidecar) -> None:
    with pytest.raises(NoDiskError):
        async with client.work("reports"):
            raise NoDiskError
    planned.run_schedule("reports", "unspeakable")
    with pytest.raises(UnspeakableError):
        async with client.work("reports"):
            raise UnspeakableError
    planned.run_schedule("reports", "interrupted")
    with pytest.raises(KeyboardInterrupt), threaded.work("reports"):
        raise KeyboardInterrupt
    interrupted, unspeakable, full = planned.history("reports")
    assert interrupted == "interrupted failed 1: KeyboardInterrupt"
    assert unspeakable.startswith("unspeakable failed 1: test_schedule.UnspeakableError")
    note = full.removeprefix("now failed 1: ")
    assert note.startswith("test_schedule.NoDiskError: no disk é")
    assert len(note.encode()) in (255, 256)


async def test_a_body_whose_lock_is_lost_is_cancelled_and_its_tick_begins_again(client: aio.Client, planned: Sidecar) -> None:
    ended: list[str] = []
    with pytest.raises(sidekeeper.LostError):
        async with client.work("reports"):
            planned.expire("reports")
            try:
                await asyncio.sleep(PATIENT)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
    assert ended == ["cancelled"]
    await asyncio.to_thread(until_lost, planned)


def test_a_thread_whose_lock_is_lost_is_told_and_its_tick_begins_again(threaded: sidekeeper.Client, planned: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError), threaded.work("reports") as tick:
        planned.expire("reports")
        assert tick.wait_should_stop(PATIENT)
        tick.check()
    until_lost(planned)


async def test_a_body_that_raises_after_the_loss_has_not_failed(client: aio.Client, planned: Sidecar) -> None:
    with pytest.raises(NoDiskError):
        async with client.work("reports") as tick:
            planned.expire("reports")
            with suppress(asyncio.CancelledError):
                await tick.wait_ended()
                await asyncio.sleep(PATIENT)
            raise NoDiskError
    await asyncio.to_thread(until_lost, planned)


async def test_a_late_write_of_a_body_meets_the_loss_of_its_tick(client: aio.Client, planned: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError):
        async with client.work("reports"):
            planned.expire("reports")
            await client.config.put("late", "x")
    await asyncio.to_thread(until_lost, planned)


async def test_a_success_is_recorded_though_the_lock_was_lost(client: aio.Client, threaded: sidekeeper.Client, planned: Sidecar) -> None:
    async with client.work("reports") as tick:
        planned.expire("reports")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENT)
        assert tick.error is not None
    planned.run_schedule("reports", "threads")
    with threaded.work("reports") as other:
        planned.expire("reports")
        assert other.wait_ended(PATIENT)
    assert planned.history("reports") == ["threads succeeded 1", "now succeeded 1"]


async def test_what_is_cancelled_while_it_finishes_is_finished_all_the_same(client: aio.Client, planned: Sidecar) -> None:
    async def work() -> None:
        async with client.work("reports"):
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)

    with pytest.raises(asyncio.CancelledError):
        await work()
    assert planned.history("reports") == ["now succeeded 1"]


async def test_a_tick_that_is_awaited_is_finished_by_its_caller(client: aio.Client, planned: Sidecar) -> None:
    tick = await client.work("reports")
    await tick.finish(Outcome.SUCCEEDED, "three of them")
    assert not tick.valid
    assert tick.error is None
    with pytest.raises(sidekeeper.AlreadyDoneError):
        await tick.finish(Outcome.FAILED)
    assert planned.history("reports") == ["now succeeded 1: three of them"]
    planned.run_schedule("reports", "entered")
    async with await client.work("reports") as entered:
        assert entered.valid
    assert planned.history("reports")[0] == "entered succeeded 1"


async def test_a_body_that_has_ended_its_tick_itself_keeps_that_outcome(
    client: aio.Client, threaded: sidekeeper.Client, planned: Sidecar
) -> None:
    with pytest.raises(NoDiskError):
        async with client.work("reports") as tick:
            await tick.release()
            raise NoDiskError
    with pytest.raises(NoDiskError), threaded.work("reports") as again:
        assert again.number == 2
        again.finish(Outcome.SUCCEEDED, "made")
        raise NoDiskError
    assert planned.history("reports")[0] == "now succeeded 2: made"


def test_no_outcome_is_taken_for_recorded_when_the_client_is_closed(planned: Sidecar) -> None:
    with sidekeeper.Client(planned.address) as client:
        work = client.work("reports")
        tick = work.__enter__()
    with pytest.raises(sidekeeper.LostError):
        tick.finish(Outcome.SUCCEEDED)
    with pytest.raises(sidekeeper.LostError):
        work.__exit__(None, None, None)


async def test_one_of_two_workers_gets_a_tick(client: aio.Client, planned: Sidecar) -> None:
    positions: list[int] = []
    async with aio.Client(planned.address) as other, client.work("reports"):
        with pytest.raises(sidekeeper.LockHeldError):
            await other.work("reports", wait=0)
        waiting = asyncio.ensure_future(other.work("reports", on_queued=lambda queued: positions.append(queued.position)))
        async with asyncio.timeout(PATIENT):
            while not positions:
                await asyncio.sleep(0.01)
        assert positions[0] == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_what_work_is_given_is_checked_before_anything_is_sent(client: aio.Client, threaded: sidekeeper.Client) -> None:
    with pytest.raises(TypeError, match="there is no option 'timeout'"):
        client.work("reports", timeout=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name is 7"):
        threaded.work(7)  # type: ignore[arg-type]
    async with aio.Client("unix:///nowhere") as other:
        lease = await client.open_lease()
        with pytest.raises(ValueError, match="another client's"):
            await other.work("reports", lease=lease)
