"""What a caller is told whose work has ended, when its sidecar does not confirm the release."""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import AsyncIterator, Iterator
from concurrent import futures
from typing import Any

import celery
import grpc
import pytest

import sidekeeper
import sidekeeper.celery
from sidekeeper import _transport, aio
from sidekeeper.lock.v1 import lock_pb2, lock_pb2_grpc

FAILURES = {
    "UNAVAILABLE: ": (grpc.StatusCode.UNAVAILABLE, "the connection is gone"),
    "UNAVAILABLE (ENSEMBLE_UNREACHABLE): away": (grpc.StatusCode.UNAVAILABLE, "ENSEMBLE_UNREACHABLE: away"),
    "NOT_FOUND (HOLD_NOT_FOUND): no such hold": (grpc.StatusCode.NOT_FOUND, "HOLD_NOT_FOUND: no such hold"),
    "DEADLINE_EXCEEDED: ": (grpc.StatusCode.DEADLINE_EXCEEDED, "it does not answer"),
}


class Forgetful(lock_pb2_grpc.LockServiceServicer):  # type: ignore[misc]
    """Grants each lock, and does not confirm its release."""

    def __init__(self) -> None:
        self.granted = 0
        self.failure = FAILURES["UNAVAILABLE: "]

    def Acquire(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self.granted += 1
        over = futures.Future[None]()
        context.add_callback(lambda: over.set_result(None))
        yield lock_pb2.AcquireResponse(granted=lock_pb2.Granted(hold_id="0" * 32, fencing_token=self.granted))
        over.result()

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        held = lock_pb2.CheckedHold(hold_id=request.hold_ids[0], fencing_token=1)
        held.valid_for.FromSeconds(60)
        return lock_pb2.CheckResponse(holds=[held])

    def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        context.abort(*self.failure)


@pytest.fixture
def forgetful() -> Iterator[tuple[Forgetful, str]]:
    script = Forgetful()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    lock_pb2_grpc.add_LockServiceServicer_to_server(script, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"  # where a lock without a lease is one call
    server.start()
    yield script, address
    server.stop(None).wait()


@pytest.fixture
def client(forgetful: tuple[Forgetful, str]) -> Iterator[sidekeeper.Client]:
    with sidekeeper.Client(forgetful[1]) as made:
        yield made


@pytest.fixture
async def tasks(forgetful: tuple[Forgetful, str]) -> AsyncIterator[aio.Client]:
    async with aio.Client(forgetful[1]) as made:
        yield made


def check(error: sidekeeper.ReleaseUnconfirmedError, why: str = "UNAVAILABLE: ") -> None:
    assert str(error).startswith("ABORTED (RELEASE_UNCONFIRMED): lock orders: the work has ended, but its release is not confirmed: " + why)
    assert not _transport.is_transient(error)
    assert not _transport.was_lost(error)
    assert isinstance(pickle.loads(pickle.dumps(error)), sidekeeper.ReleaseUnconfirmedError)


@pytest.mark.parametrize("why", FAILURES)
def test_whatever_keeps_a_release_from_being_confirmed_is_no_reason_to_repeat_the_work(
    why: str, forgetful: tuple[Forgetful, str], client: sidekeeper.Client
) -> None:
    forgetful[0].failure = FAILURES[why]
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as caught, client.lock("orders") as lock:
        pass
    check(caught.value, why)
    assert lock.error is None
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError):
        lock.release()


@pytest.mark.parametrize("why", FAILURES)
async def test_nor_is_it_for_a_task(why: str, forgetful: tuple[Forgetful, str], tasks: aio.Client) -> None:
    forgetful[0].failure = FAILURES[why]
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as caught:
        async with tasks.lock("orders"):
            pass
    check(caught.value, why)


def test_the_error_of_the_work_stands_before_that_of_its_release(client: sidekeeper.Client) -> None:
    with pytest.raises(KeyError), client.lock("orders"):
        raise KeyError


def test_a_result_is_not_lost_with_the_release(forgetful: tuple[Forgetful, str], client: sidekeeper.Client) -> None:
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as called:
        sidekeeper.locked(client, "orders")(lambda: 7)()
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as led:
        client.run_while_leader("orders", lambda _: 8)
    assert (called.value.result, led.value.result) == (7, 8)
    assert forgetful[0].granted == 2


async def test_a_result_of_a_task_is_not_lost_with_the_release(forgetful: tuple[Forgetful, str], tasks: aio.Client) -> None:
    async def body(*_: object) -> int:
        return 7

    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as called:
        await aio.locked(tasks, "orders")(body)()
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as led:
        await tasks.run_while_leader("orders", body)
    assert (called.value.result, led.value.result) == (7, 7)
    assert forgetful[0].granted == 2


def test_the_error_of_a_release_within_the_work_has_no_result_of_the_work_around(client: sidekeeper.Client) -> None:
    inner = sidekeeper.locked(client, "orders")(lambda: "inner")
    with pytest.raises(sidekeeper.ReleaseUnconfirmedError) as called:
        sidekeeper.locked(client, "stock")(inner)()
    assert called.value.result == "inner"


def test_a_celery_task_whose_release_is_not_confirmed_has_succeeded(
    forgetful: tuple[Forgetful, str], client: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sidekeeper.celery, "client", lambda: client)
    app = celery.Celery("shop", broker="memory://")

    @app.task(base=sidekeeper.celery.Single, lock="orders", bind=True, max_retries=3)  # type: ignore[untyped-decorator]
    def count(task: Any) -> int:
        return 7

    @app.task(base=sidekeeper.celery.Single, lock="orders")  # type: ignore[untyped-decorator]
    def fails() -> None:
        raise KeyError

    with caplog.at_level(logging.WARNING, "sidekeeper"):
        assert count() == 7
    assert "RELEASE_UNCONFIRMED" in caplog.text
    done = count.apply()
    assert (done.state, done.result, forgetful[0].granted) == ("SUCCESS", 7, 2)
    with contextlib.suppress(KeyError):
        fails()
        pytest.fail("the task's own error is not raised")
