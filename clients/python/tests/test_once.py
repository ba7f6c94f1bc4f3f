"""Work that is done once, with asyncio and with threads."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import suppress

import grpc
import pytest

import sidekeeper
from sidekeeper import Outcome, aio
from sidekeeper._errors import named
from sidekeeper.once.v1 import once_pb2, once_pb2_grpc

from conftest import PATIENT, Sidecar, record, state


class NoDiskError(Exception):
    """Whose text is too long for a note, and no note's."""

    def __str__(self) -> str:
        return "no\tdisk " + "é" * 200


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot be said")


def until_lost(sidecar: Sidecar, name: str, key: str) -> None:
    """Waits until the sidecar has heard that a loss is known, and the place is gone."""
    until = time.monotonic() + PATIENT
    while state(sidecar, name, key) == "RUNNING" and time.monotonic() < until:
        time.sleep(0.01)
    assert state(sidecar, name, key) == "LOST"


async def test_work_is_done_until_it_has_succeeded(client: aio.Client, sidecar: Sidecar) -> None:
    numbers: list[int] = []

    async def fail(attempt: aio.Attempt) -> None:
        numbers.append(attempt.number)
        assert attempt.ticket() == sidekeeper.Ticket("mail/order-7", attempt.fencing_token)
        assert sidekeeper.tickets() == (attempt.ticket(),)
        await client.config.put("sent", "x")
        raise NoDiskError

    async def succeed(attempt: aio.Attempt) -> None:
        numbers.append(attempt.number)

    with pytest.raises(NoDiskError):
        await client.once("mail", "order-7", fail, owner="me")
    failed = record(sidecar, "mail", "order-7")
    assert failed.state == once_pb2.STATE_FAILED
    assert failed.note.startswith("test_once.NoDiskError: no disk é")
    assert len(failed.note.encode()) in (255, 256)
    assert await client.once("mail", "order-7", succeed, owner="me", keep=3600)
    assert not await client.once("mail", "order-7", succeed)
    assert numbers == [1, 2]
    assert record(sidecar, "mail", "order-7").keep.seconds == 3600
    with pytest.raises(sidekeeper.AlreadyDoneError) as done:
        await client.begin("mail", "order-7")
    assert done.value.metadata["owner"] == "me"


def test_work_of_threads_is_done_until_it_has_succeeded(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    numbers: list[int] = []

    def succeed(attempt: sidekeeper.Attempt) -> None:
        threaded.config.put("sent", "x")
        assert sidekeeper.tickets() == (attempt.ticket(),)
        assert not attempt.should_stop()
        numbers.append(attempt.number)

    with pytest.raises(NoDiskError), threaded.attempt("mail", "order-7") as attempt:
        assert (attempt.name, attempt.key, attempt.number) == ("mail", "order-7", 1)
        raise NoDiskError
    assert state(sidecar, "mail", "order-7") == "FAILED"
    assert threaded.once("mail", "order-7", succeed)
    assert not threaded.once("mail", "order-7", succeed)
    assert numbers == [2]
    with threaded.begin("mail", "order-8") as begun:
        assert len(begun.hold_id) == 32
        assert begun.revocation is None
    assert state(sidecar, "mail", "order-8") == "SUCCEEDED"


async def test_an_attempt_that_is_entered_is_finished_as_its_body_ends(client: aio.Client, sidecar: Sidecar) -> None:
    async with await client.begin("mail", "succeeded") as attempt:
        assert attempt.valid
    with pytest.raises(NoDiskError):
        async with await client.begin("mail", "failed"):
            raise NoDiskError
    assert [state(sidecar, "mail", key) for key in ("succeeded", "failed")] == ["SUCCEEDED", "FAILED"]


async def test_an_interrupted_body_has_failed(client: aio.Client, threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with pytest.raises(KeyboardInterrupt), threaded.attempt("mail", "interrupted"):
        raise KeyboardInterrupt
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(PATIENT) as limit, client.attempt("mail", "cancelled"):
            limit.reschedule(0)
            await asyncio.sleep(PATIENT)
    with pytest.raises(UnspeakableError):
        async with client.attempt("mail", "unspeakable"):
            raise UnspeakableError
    assert [state(sidecar, "mail", key) for key in ("interrupted", "cancelled", "unspeakable")] == ["FAILED"] * 3


async def test_no_more_attempts_are_made_than_allowed(client: aio.Client, threaded: sidekeeper.Client) -> None:
    for number in (1, 2):
        attempt = await client.begin("mail", "few", max_attempts=2)
        assert attempt.number == number
        await attempt.finish(Outcome.FAILED, "no disk")
    with pytest.raises(sidekeeper.NotRepeatedError):
        await client.begin("mail", "few", max_attempts=2)
    with pytest.raises(sidekeeper.NotRepeatedError):
        threaded.begin("mail", "few", skip_failed=True)
    with pytest.raises(sidekeeper.NotRepeatedError):
        await client.once("mail", "few", lambda _: asyncio.sleep(0), max_attempts=2)
    threaded.begin("mail", "few").release()
    with pytest.raises(sidekeeper.NotRepeatedError):
        threaded.begin("mail", "few", skip_lost=True)


async def test_a_body_whose_lock_is_broken_is_cancelled_and_its_attempt_is_lost(client: aio.Client, sidecar: Sidecar) -> None:
    ended: list[str] = []

    async def work(_: aio.Attempt) -> None:
        try:
            await asyncio.to_thread(sidecar.break_lock, "nightly", PATIENT)
            await asyncio.sleep(PATIENT)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(sidekeeper.LostError) as lost:
        await client.once("nightly", "k", work, per_name=True)
    assert isinstance(lost.value.cause, sidekeeper.LockBrokenError)
    assert ended == ["cancelled"]
    await asyncio.to_thread(until_lost, sidecar, "nightly", "k")
    with pytest.raises(sidekeeper.NotRepeatedError):
        await client.begin("nightly", "k", per_name=True, skip_lost=True)


def test_a_thread_whose_lock_is_broken_is_told_and_its_attempt_is_lost(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError), threaded.attempt("nightly", "told") as attempt:
        sidecar.break_lock("nightly/told", PATIENT)
        assert attempt.wait_should_stop(PATIENT)
        attempt.check()
    with pytest.raises(NoDiskError), threaded.attempt("nightly", "failed") as attempt:
        sidecar.expire("nightly/failed")
        assert attempt.wait_ended(PATIENT)
        raise NoDiskError
    until_lost(sidecar, "nightly", "told")
    assert state(sidecar, "nightly", "failed") == "LOST"


async def test_an_error_that_tells_of_a_loss_leaves_an_attempt_lost(client: aio.Client, sidecar: Sidecar) -> None:
    """Also before the client knows that its own lock is lost, and for another lock than that."""
    async with client.lock("other") as other:
        pass

    async def write(how: str) -> None:
        try:
            with other.guard():
                await client.config.put("late", "x")
        except sidekeeper.GuardLostError as error:
            if how == "from":
                raise NoDiskError from error
            if how == "while":
                raise NoDiskError  # noqa: B904 (it is no cause)
            if how == "not for":
                raise NoDiskError from None
            raise

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write("itself"))

    found = {}
    for how in ("itself", "from", "while", "not for", "group"):
        with suppress(NoDiskError, sidekeeper.GuardLostError, ExceptionGroup):
            async with client.attempt("mail", how.replace(" ", "-")):
                await (group() if how == "group" else write(how))
        found[how] = state(sidecar, "mail", how.replace(" ", "-"))
    assert found == {"itself": "LOST", "from": "LOST", "while": "FAILED", "not for": "FAILED", "group": "LOST"}


async def test_a_late_write_of_a_body_meets_the_loss_of_its_attempt(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError):
        async with client.attempt("mail", "k"):
            sidecar.expire("mail/k")
            await client.config.put("late", "x")
    assert state(sidecar, "mail", "k") == "LOST"


async def test_a_success_is_recorded_though_the_lock_was_lost(client: aio.Client, sidecar: Sidecar) -> None:
    async def work(attempt: aio.Attempt) -> None:
        sidecar.expire("mail/asyncio")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENT)
        assert attempt.error is not None

    assert await client.once("mail", "asyncio", work)
    assert state(sidecar, "mail", "asyncio") == "SUCCEEDED"


def test_a_success_of_a_thread_is_recorded_though_the_lock_was_lost(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    def work(attempt: sidekeeper.Attempt) -> None:
        sidecar.expire("mail/threads")
        assert attempt.wait_ended(PATIENT)

    assert threaded.once("mail", "threads", work)
    assert state(sidecar, "mail", "threads") == "SUCCEEDED"


async def test_the_first_outcome_of_an_attempt_counts(client: aio.Client, sidecar: Sidecar) -> None:
    attempt = await client.begin("mail", "k")
    await attempt.finish(Outcome.FAILED, "no disk")
    assert not attempt.valid
    assert attempt.error is None
    with pytest.raises(sidekeeper.LostError):
        attempt.check()
    await attempt.finish(Outcome.FAILED, "another note")
    assert record(sidecar, "mail", "k").note == "no disk"
    with pytest.raises(sidekeeper.AlreadyDoneError):
        await attempt.finish(Outcome.SUCCEEDED)
    released = await client.begin("mail", "released")
    await released.release()
    assert state(sidecar, "mail", "released") == "LOST"
    await released.finish(Outcome.SUCCEEDED)
    assert state(sidecar, "mail", "released") == "SUCCEEDED"
    with pytest.raises(sidekeeper.AlreadyDoneError):
        await client.begin("mail", "released")


async def test_a_success_is_recorded_after_a_body_has_released_its_attempt(
    client: aio.Client, threaded: sidekeeper.Client, sidecar: Sidecar
) -> None:
    assert await client.once("mail", "asyncio", lambda attempt: attempt.release())
    assert await asyncio.to_thread(threaded.once, "mail", "threads", lambda attempt: attempt.release())
    assert [state(sidecar, "mail", key) for key in ("asyncio", "threads")] == ["SUCCEEDED"] * 2


async def test_a_body_that_has_finished_its_attempt_keeps_that_outcome(
    client: aio.Client, threaded: sidekeeper.Client, sidecar: Sidecar
) -> None:
    with pytest.raises(sidekeeper.AlreadyDoneError):
        await client.once("mail", "failed", lambda attempt: attempt.finish(Outcome.FAILED))
    with pytest.raises(sidekeeper.AlreadyDoneError):
        await asyncio.to_thread(threaded.once, "mail", "thread", lambda attempt: attempt.finish(Outcome.FAILED))
    with pytest.raises(NoDiskError):
        async with client.attempt("mail", "succeeded") as attempt:
            await attempt.finish(Outcome.SUCCEEDED)
            raise NoDiskError
    with pytest.raises(NoDiskError):
        async with client.attempt("mail", "released") as attempt:
            await attempt.release()
            raise NoDiskError
    found = [state(sidecar, "mail", key) for key in ("failed", "thread", "succeeded", "released")]
    assert found == ["FAILED", "FAILED", "SUCCEEDED", "LOST"]


def test_no_outcome_is_taken_for_recorded_when_the_client_is_closed(sidecar: Sidecar) -> None:
    with sidekeeper.Client(sidecar.address) as threaded:
        released, finished = threaded.begin("mail", "released"), threaded.begin("mail", "finished")
        released.release()
        finished.finish(Outcome.SUCCEEDED)
    finished.finish(Outcome.SUCCEEDED)
    for attempt in (released, finished):
        with pytest.raises(sidekeeper.ReleaseUnconfirmedError):
            attempt.finish(Outcome.FAILED)
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError), released:
        pass
    released.release()


async def test_an_attempt_is_superseded_by_the_next(client: aio.Client, threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.SupersededError):
        async with client.attempt("mail", "k") as first:
            with suppress(asyncio.CancelledError):
                sidecar.expire("mail/k")
                await asyncio.sleep(PATIENT)
            second = await asyncio.to_thread(threaded.begin, "mail", "k")
            assert second.number == 2
            assert second.fencing_token > first.fencing_token
    await asyncio.to_thread(second.finish, Outcome.SUCCEEDED)
    assert state(sidecar, "mail", "k") == "SUCCEEDED"


async def test_a_finish_that_has_failed_can_be_asked_for_again(client: aio.Client, sidecar: Sidecar) -> None:
    late = await client.begin("nightly", "late", per_name=True, wait=0, lease=await client.open_lease())
    sidecar.expire("nightly")
    async with asyncio.timeout(PATIENT):
        await late.wait_ended()
    other = await client.begin("nightly", "other", per_name=True)
    with pytest.raises(sidekeeper.LockHeldError):
        await late.finish(Outcome.SUCCEEDED)
    await other.release()
    await late.finish(Outcome.SUCCEEDED)
    assert state(sidecar, "nightly", "late") == "SUCCEEDED"


async def test_work_of_one_name_does_not_overlap_if_asked_for(client: aio.Client) -> None:
    positions: list[int] = []
    async with client.attempt("nightly", "first", per_name=True) as attempt:
        assert attempt.ticket().lock == "nightly"
        with pytest.raises(sidekeeper.LockHeldError):
            await client.begin("nightly", "second", per_name=True, wait=0)
        with pytest.raises(sidekeeper.LockHeldError):
            await client.acquire("nightly", wait=0)
        waiting = asyncio.ensure_future(
            client.begin("nightly", "third", per_name=True, on_queued=lambda queued: positions.append(queued.position))
        )
        async with asyncio.timeout(PATIENT):
            while not positions:
                await asyncio.sleep(0.01)
    await (await waiting).finish(Outcome.SUCCEEDED)
    assert positions[0] == 1


async def test_what_is_cancelled_while_it_finishes_is_finished_all_the_same(client: aio.Client, sidecar: Sidecar) -> None:
    async def work() -> None:
        async with client.attempt("mail", "k"):
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)

    with pytest.raises(asyncio.CancelledError):
        await work()
    assert state(sidecar, "mail", "k") == "SUCCEEDED"


async def test_an_attempt_that_is_lost_as_its_body_ends_has_the_outcome_of_its_finish(client: aio.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.AlreadyDoneError):
        async with client.attempt("mail", "k") as attempt:
            with grpc.insecure_channel(sidecar.address, options=[("grpc.default_authority", "localhost")]) as channel:
                failed = once_pb2.FinishRequest(hold_id=attempt.hold_id, outcome=once_pb2.OUTCOME_FAILED)
                once_pb2_grpc.OnceServiceStub(channel).Finish(failed, timeout=PATIENT)
            attempt._claim.lose(named("LEASE_LOST", "before the loop has heard anything"))
    assert state(sidecar, "mail", "k") == "FAILED"


async def test_a_client_that_is_closed_leaves_its_attempts_lost(sidecar: Sidecar) -> None:
    async with aio.Client(sidecar.address) as client:
        attempt = await client.begin("mail", "k")
    assert isinstance(attempt.error, sidekeeper.LostError)
    with pytest.raises(sidekeeper.SidekeeperError):
        await attempt.finish(Outcome.SUCCEEDED)
    async with aio.Client(sidecar.address) as other, other.attempt("mail", "k") as second:
        assert second.number == 2


async def test_finish_waits_for_a_sidecar_that_is_frozen(client: aio.Client, sidecar: Sidecar) -> None:
    attempt = await client.begin("mail", "k")
    sidecar.send(signal.SIGSTOP)
    finishing = asyncio.ensure_future(attempt.finish(Outcome.SUCCEEDED))
    await asyncio.sleep(0.2)
    assert not finishing.done()
    assert not attempt.valid
    sidecar.send(signal.SIGCONT)
    await finishing
    assert state(sidecar, "mail", "k") == "SUCCEEDED"


def test_threads_that_have_the_same_work_do_it_once(threaded: sidekeeper.Client) -> None:
    ran: list[int] = []

    def work(attempt: sidekeeper.Attempt) -> None:
        ran.append(attempt.number)

    done: list[bool] = []
    threads = [threading.Thread(target=lambda: done.append(threaded.once("mail", "k", work))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert ran == [1]
    assert sorted(done) == [False] * 4 + [True]
