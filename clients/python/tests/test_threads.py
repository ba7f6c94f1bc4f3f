"""The client for threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

import sidekeeper
from sidekeeper import _sync

from conftest import PATIENT, Sidecar


def test_a_lock_is_held_in_a_body(threaded: sidekeeper.Client) -> None:
    with threaded.lock("orders", owner="me") as lock:
        assert lock.valid
        assert not lock.should_stop()
        assert not lock.wait_should_stop(0.05)
        lock.check()
        assert threaded.get_lock("orders").holders[0].fencing_token == lock.fencing_token
        with pytest.raises(sidekeeper.LockHeldError):
            threaded.acquire("orders", wait=0)
    assert not lock.valid
    assert lock.error is None
    with threaded.acquire("orders", wait=0) as again:
        assert again.fencing_token > lock.fencing_token


def test_a_body_is_told_of_a_killed_sidecar(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with pytest.raises(sidekeeper.LostError), threaded.lock("orders") as lock:
        killed = time.monotonic()
        sidecar.end()
        assert lock.wait_should_stop(PATIENT)
        print(f"a body learns of a killed sidecar after {(time.monotonic() - killed) * 1000:.1f} ms")
        with pytest.raises(sidekeeper.LostError):
            lock.check()


def test_a_body_that_fails_fails_with_its_own_error(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with pytest.raises(ZeroDivisionError), threaded.lock("orders") as lock:
        sidecar.expire("orders")
        lock.wait_ended(PATIENT)
        1 / 0  # noqa: B018


def test_a_body_is_told_when_it_is_suspended_for_longer_than_its_grace(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    with threaded.lock("orders", suspension_grace=0.1) as lock:
        sidecar.suspend(2)
        assert lock.wait_should_stop(PATIENT)
        with pytest.raises(sidekeeper.SuspendedError):
            lock.check()
        assert lock.valid
        until = time.monotonic() + PATIENT
        while lock.should_stop() and time.monotonic() < until:
            time.sleep(0.01)
        lock.check()


def test_a_function_that_is_called_with_events_cannot_wait_for_itself(threaded: sidekeeper.Client) -> None:
    refused: list[BaseException] = []

    def ask(_: sidekeeper.Queued) -> None:
        try:
            threaded.get_lock("orders")
        except RuntimeError as error:
            refused.append(error)

    with threaded.lock("orders"), pytest.raises(sidekeeper.WaitTimeoutError):
        threaded.acquire("orders", wait=0.2, on_queued=ask)
    assert "must not call the client" in str(refused[0])


def test_a_callback_that_exits_ends_nothing_but_itself(
    threaded: sidekeeper.Client, sidecar: Sidecar, caplog: pytest.LogCaptureFixture
) -> None:
    for leave in (SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()):
        asked = threading.Event()

        def fail(_: sidekeeper.Revocation, asked: threading.Event = asked, leave: BaseException = leave) -> None:
            asked.set()
            raise leave

        lock = threaded.acquire("orders", on_revocation=fail)
        with sidekeeper.Client(sidecar.address) as other:
            assert other.revoke("orders") == 1
        assert asked.wait(PATIENT)
        releasing = threading.Thread(target=lock.release, daemon=True)
        releasing.start()
        releasing.join(PATIENT / 3)
        assert not releasing.is_alive()
        assert lock.error is None
    assert caplog.text.count("a callback failed") == 3


def test_threads_exclude_each_other(threaded: sidekeeper.Client) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(5):
            with threaded.lock("orders"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert len(most) == 20
    assert max(most) == 1


def test_a_leader_leads_again_after_a_loss(threaded: sidekeeper.Client, sidecar: Sidecar) -> None:
    tokens: list[int] = []

    def lead(lock: sidekeeper.Lock) -> str:
        tokens.append(lock.fencing_token)
        if len(tokens) == 1:
            sidecar.expire("leader")
            lock.wait_should_stop(PATIENT)
        return "done"

    assert threaded.run_while_leader("leader", lead) == "done"
    assert len(tokens) == 2


def test_what_goes_through_streams(threaded: sidekeeper.Client) -> None:
    ids = threaded.sequence("ids")
    ids.create(1)
    numbers = ids.numbers(ahead=7)
    assert len({next(numbers) for _ in range(20)}) == 20
    threaded.config.put("app/colour", "red")
    events = threaded.config.watch("app/colour")
    assert next(events).changes[0].entry.text == "red"
    events.close()  # type: ignore[attr-defined]
    with threaded.config.view("app") as view:
        assert dict(view)["app/colour"].text == "red"
        assert view.age() == 0
    assert [entry.key for entry in threaded.config.list()] == ["app/colour"]
    with threaded.stay_joined("workers", "a"):
        assert list(threaded.get_group("workers").members) == ["a"]
    assert not threaded.get_group("workers").members
    with threaded.open_lease(ttl=4) as lease, threaded.join("workers", "b", lease=lease) as membership:
        assert membership.valid
        assert next(threaded.watch_group("workers")).members["b"].incarnation == membership.incarnation


def test_a_view_of_what_cannot_be_is_refused(threaded: sidekeeper.Client) -> None:
    with pytest.raises(sidekeeper.InvalidFieldError), threaded.config.view("a//b"):
        pass


def test_closing_twice_is_harmless_and_leaves_no_thread(sidecar: Sidecar) -> None:
    before = threading.active_count()
    client = sidekeeper.Client(sidecar.address)
    lock = client.acquire("orders")
    client.close()
    client.close()
    assert not lock.valid
    assert threading.active_count() <= before + 1  # gRPC's own, which it keeps


def test_a_thread_that_waits_learns_that_the_client_is_closed(sidecar: Sidecar) -> None:
    client = sidekeeper.Client(sidecar.address)
    with sidekeeper.Client(sidecar.address) as other, other.acquire("orders"):
        waiting = threading.Thread(target=lambda: learned.append(_error_of(lambda: client.acquire("orders"))))
        learned: list[Exception] = []
        waiting.start()
        while not other.get_lock("orders").waiters:
            time.sleep(0.01)
        client.close()
        waiting.join(PATIENT)
    (error,) = learned
    assert isinstance(error, sidekeeper.SidekeeperError)
    assert error.code is grpc.StatusCode.CANCELLED


def test_what_is_given_up_after_its_client_was_closed_has_its_own_outcome(sidecar: Sidecar) -> None:
    client = sidekeeper.Client(sidecar.address)
    released, lost = client.acquire("orders"), client.acquire("stock")
    released.release()
    client.close()
    released.release()
    with pytest.raises(sidekeeper.LostError, match="the client is closed"):
        lost.release()
    with pytest.raises(sidekeeper.SidekeeperError, match="the client is closed"):
        client.get_lock("orders")


def test_nothing_waits_for_a_loop_that_ends(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    client = sidekeeper.Client(sidecar.address)
    ended: list[BaseException] = []

    def work() -> None:
        try:
            client._loop.run(asyncio.sleep(PATIENT))
        except sidekeeper.SidekeeperError as error:
            ended.append(error)

    late, end_others = threading.Thread(target=work, daemon=True), _sync._end_others

    async def end_others_and_be_asked() -> None:
        await end_others()
        late.start()
        late.join(0.1)

    monkeypatch.setattr(_sync, "_end_others", end_others_and_be_asked)
    client.close()
    late.join(PATIENT / 3)
    assert "the client is closed" in str(ended)


@pytest.mark.parametrize("granted", [True, False])
def test_what_is_granted_to_a_thread_that_is_interrupted_is_given_up(
    granted: bool, threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come when the grant has arrived, or just before the loop learns of the cancellation."""
    result = concurrent.futures.Future.result

    def interrupt(future: concurrent.futures.Future[object], timeout: float | None = None) -> None:
        if granted:
            result(future, timeout)
        monkeypatch.undo()
        raise KeyboardInterrupt

    for take in (lambda: threaded.acquire("orders"), lambda: threaded.join("workers", "a")):
        monkeypatch.setattr(concurrent.futures.Future, "result", interrupt)
        with pytest.raises(KeyboardInterrupt):
            take()
    threaded.acquire("orders", wait=3).release()
    threaded.join("workers", "a", on_conflict=sidekeeper.OnConflict.WAIT, wait=3).leave()


def test_what_is_granted_to_a_thread_that_is_interrupted_before_it_waits_is_given_up(
    threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threaded._loop._begin

    def interrupt(work: Any) -> None:
        monkeypatch.undo()
        begin(work)
        raise KeyboardInterrupt

    for take in (lambda: threaded.acquire("orders"), lambda: threaded.join("workers", "a")):
        monkeypatch.setattr(threaded._loop, "_begin", interrupt)
        with pytest.raises(KeyboardInterrupt):
            take()
    threaded.acquire("orders", wait=3).release()
    threaded.join("workers", "a", on_conflict=sidekeeper.OnConflict.WAIT, wait=3).leave()


def _interrupted_at(point: int, work: Callable[[], object]) -> bool:
    """Does work, in which a signal's handler raises at a line of the client, or at the beginning of a function of it. Says whether there
    were so many."""
    source, seen = str(Path(sidekeeper.__file__).parent), 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(source):
            return None
        seen += event in ("call", "line")
        if seen == point:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return seen >= point


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("hold", [lambda client: client.lock("orders"), lambda client: client.locks("orders", "stock")])
def test_what_a_body_holds_is_given_up_wherever_a_signals_handler_raises(
    hold: Callable[[sidekeeper.Client], Any], threaded: sidekeeper.Client, sidecar: Sidecar
) -> None:
    def work() -> None:
        with hold(threaded):
            pass

    point = 1
    with sidekeeper.Client(sidecar.address) as other:
        while _interrupted_at(point, work):
            other.acquire("orders", wait=3).release()
            assert not sidekeeper.tickets(), "what is written here is guarded"
            point += 1
    assert point > 50


def test_what_is_released_is_given_up_also_if_a_signals_handler_raises_before_that_has_begun(
    threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threaded.create_semaphore("rooms", 1)

    def interrupt(work: Any) -> None:
        monkeypatch.undo()
        work.close()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lock = threaded.acquire("orders")
        monkeypatch.setattr(threaded._loop, "_begin", interrupt)
        lock.release()
    threaded.acquire("orders", wait=3).release()
    with pytest.raises(KeyboardInterrupt), threaded.acquire_permits("rooms"):
        monkeypatch.setattr(sidekeeper.Permits, "_give_up", interrupt_before(monkeypatch))
    threaded.acquire_permits("rooms", wait=3).release()
    with pytest.raises(KeyboardInterrupt), threaded.enter_barrier("start", 1):
        monkeypatch.setattr(sidekeeper.BarrierEntry, "leave", interrupt_before(monkeypatch))
    threaded.enter_barrier("start", 1, wait=3).release()


def test_a_signals_handler_may_call_the_client(threaded: sidekeeper.Client) -> None:
    lock = threaded.acquire("orders")
    with threaded._loop._handing:  # as the interrupted thread does while it hands work over
        lock.release()
    threaded.acquire("orders", wait=3).release()


def test_a_close_that_is_interrupted_goes_on(sidecar: Sidecar, threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client = sidekeeper.Client(sidecar.address)
    client.acquire("orders")
    serving = client._loop._thread
    monkeypatch.setattr(serving, "join", interrupt_before(monkeypatch))
    with pytest.raises(KeyboardInterrupt):
        client.close()
    threaded.acquire("orders", wait=3).release()
    client.close()
    assert not serving.is_alive()


def interrupt_before(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    return interrupt


def _error_of(work: Callable[[], object]) -> Exception:
    try:
        work()
    except sidekeeper.SidekeeperError as error:
        return error
    raise AssertionError("it succeeded")


CLOSES_WITH_STREAMS_OPEN = """
import sidekeeper
for _ in range(40):
    with sidekeeper.Client() as client:
        with client.acquire("orders"):
            leader = next(client.watch_leader("orders"))
        events = client.watch_lock("orders")
        print(next(events).holders)
"""


def test_closing_ends_streams_in_order(sidecar: Sidecar) -> None:
    """It does not leave grpc's tasks to a loop that is gone, which says so on standard error."""
    environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": str(Path(sidekeeper.__file__).parents[1])}
    program = [sys.executable, "-W", "error", "-c", CLOSES_WITH_STREAMS_OPEN]
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=PATIENT, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        sidekeeper.Client("nonsense")
