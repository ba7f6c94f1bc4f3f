"""Tasks of Celery, with two real workers whose processes are forked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import Ignore, Retry

import sidekeeper
from sidekeeper._errors import named
from sidekeeper.celery import Single, current_attempt

from conftest import PATIENT, Sidecar, record, state

SHOP = """
import fcntl, os, time
from celery import Celery
from sidekeeper.celery import Single, current_attempt, current_lock

folders = dict(data_folder_in="messages", data_folder_out="messages", control_folder="control")
app = Celery("shop", broker="filesystem://")
app.conf.update(broker_transport_options=folders, worker_hijack_root_logger=False, task_default_queue="a")

def alone(what):
    with open("running", "w") as running:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if another one runs
        with open("log", "a") as log:
            print(what, os.getppid(), current_lock().valid, file=log)
        while not os.path.exists("go"):
            time.sleep(0.02)

@app.task(base=Single, lock=lambda shop: f"stock/{shop}", retry_after=0.2, acks_late=True)
def count(shop):
    alone("count")

@app.task(base=Single, lock="stock/7", taken="skip")
def look():
    alone("look")

@app.task(base=Single, once_key=lambda order: f"order-{order}", retry_after=0.2, acks_late=True)
def pay(order):
    note(order)
    while order == 5 and not os.path.exists("go"):
        time.sleep(0.02)
    if order == 9 and current_attempt().number == 1:
        raise ValueError("no money")

@app.task(base=Single, once_key=True)
def mail():
    note("mail")

def note(what):
    attempt = current_attempt()
    with open("log", "a") as log:
        print(what, os.getppid(), attempt.number, attempt.ticket().lock, file=log)

@app.task(base=Single, lock="stock/9", retry_after=0.2, time_limit=2)
def killed():
    alone("killed")

@app.task(base=Single, lock="stock/9", retry_after=0.2, soft_time_limit=2)
def stopped():
    alone("stopped")
"""

Worker = subprocess.Popen[bytes]
FOR_LONG = 4 * PATIENT
"""Seconds: a worker takes some to start on a busy machine."""


class Workers:
    """Workers of one application in a folder, each with a queue of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SIDEKEEPER_ADDRESS": address, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
        self.started: list[Worker] = []
        (folder / "shop.py").write_text(SHOP)
        (folder / "messages").mkdir()
        (folder / "control").mkdir()

    def start(self, queue: str) -> Worker:
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "--pool=prefork", "--concurrency=1", f"--queues={queue}"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=info", f"--hostname={queue}@test"]
        with (self.folder / f"{queue}.log").open("wb") as log:
            options: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "stdout": log, "stderr": log}
            self.started.append(subprocess.Popen([*command, *quiet], start_new_session=True, **options))
        return self.started[-1]

    def send(self, queue: str, call: str, **options: str) -> None:
        sent = f"import shop; shop.{call}.apply_async(**{dict(options, queue=queue)!r})"
        subprocess.run([sys.executable, "-c", sent], cwd=self.folder, env=self.environment, check=True)

    def ran(self) -> list[list[str]]:
        log = self.folder / "log"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    def told(self, queue: str) -> str:
        return (self.folder / f"{queue}.log").read_text()

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + FOR_LONG
        while not happened():
            assert time.monotonic() < end, "".join(log.read_text() for log in self.folder.glob("*.log"))
            time.sleep(0.05)


@pytest.fixture
def workers(sidecar: Sidecar, directory: Path) -> Iterator[Workers]:
    made = Workers(directory, sidecar.address)
    yield made
    for worker in made.started:
        kill(worker)


def kill(worker: Worker) -> None:
    """Kills a worker and its pool, as a machine that fails does."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(PATIENT)


def test_of_two_workers_one_runs_a_task_and_the_other_goes_on_when_it_is_killed(workers: Workers) -> None:
    first, second = workers.start("a"), workers.start("b")
    workers.send("a", "count.s(7)")
    workers.until(lambda: workers.ran() == [["count", str(first.pid), "True"]])
    workers.send("b", "look")
    workers.send("b", "count.s(7)")
    workers.until(lambda: "Retry in 0.2s" in workers.told("b") and "ignored" in workers.told("b"))
    kill(first)
    workers.until(lambda: workers.ran()[1:] == [["count", str(second.pid), "True"]])
    (workers.folder / "go").touch()
    workers.until(lambda: "succeeded" in workers.told("b"))
    assert "BlockingIOError" not in workers.told("a") + workers.told("b")


def test_a_task_over_its_time_limit_leaves_its_lock_to_the_next(workers: Workers) -> None:
    """To one of another worker after the hard limit: Celery's pool can hang for ever when it has killed one of its processes."""
    one, other = (str(workers.start(queue).pid) for queue in "ab")
    for task in ("stopped", "stopped", "killed"):
        workers.send("a", task)
    ran = [[task, one, "True"] for task in ("stopped", "stopped", "killed")]
    workers.until(lambda: workers.ran() == ran)
    workers.send("b", "stopped")
    workers.until(lambda: workers.ran() == [*ran, ["stopped", other, "True"]])
    workers.until(lambda: [workers.told(queue).count("raised unexpected: SoftTimeLimitExceeded") for queue in "ab"] == [2, 1])
    assert workers.told("a").count("Hard time limit (2s) exceeded for shop.killed") == 1


def test_a_message_whose_work_is_done_is_acknowledged_and_does_not_run(workers: Workers) -> None:
    first, second = (str(workers.start(queue).pid) for queue in "ab")
    for call in ("pay.s(7)", "pay.s(9)"):
        workers.send("a", call)
    workers.send("a", "mail.s()", task_id="5d0c4a2e")
    workers.until(lambda: workers.told("a").count(" succeeded in ") == 2 and "no money" in workers.told("a"))
    for call in ("pay.s(7)", "pay.s(9)"):
        workers.send("b", call)
    workers.send("b", "mail.s()", task_id="5d0c4a2e")
    workers.send("b", "mail.s()", task_id="another")
    workers.until(lambda: (workers.told("b").count(" succeeded in "), workers.told("b").count(" ignored")) == (2, 2))
    assert sorted(workers.ran()) == sorted(
        [
            ["7", first, "1", "celery/shop.pay/order-7"],
            ["9", first, "1", "celery/shop.pay/order-9"],
            ["mail", first, "1", "celery/shop.mail/5d0c4a2e"],
            ["9", second, "2", "celery/shop.pay/order-9"],
            ["mail", second, "1", "celery/shop.mail/another"],
        ]
    )


def test_another_worker_does_the_work_of_one_that_is_killed_once(workers: Workers) -> None:
    first, second = workers.start("a"), workers.start("b")
    workers.send("a", "pay.s(5)")
    workers.until(lambda: workers.ran() == [["5", str(first.pid), "1", "celery/shop.pay/order-5"]])
    workers.send("b", "pay.s(5)")
    workers.until(lambda: "Retry in 0.2s" in workers.told("b"))
    kill(first)
    workers.until(lambda: workers.ran()[1:] == [["5", str(second.pid), "2", "celery/shop.pay/order-5"]])
    (workers.folder / "go").touch()
    workers.until(lambda: "succeeded" in workers.told("b"))
    workers.send("b", "pay.s(5)")
    workers.until(lambda: "ignored" in workers.told("b"))
    assert len(workers.ran()) == 2


@pytest.fixture
def app(threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch) -> Celery:
    monkeypatch.setattr("sidekeeper.celery.client", lambda: threaded)
    made = Celery("here", broker="memory://", set_as_current=False)
    sent(made)  # by another test: the broker is the process's
    return made


def deliver(task: Any, message: str, *args: object) -> Any:
    """Runs a task as a worker does that got this message."""
    task.push_request(id=message, args=args, kwargs={}, called_directly=False, is_eager=False, delivery_info={})
    try:
        return task(*args)
    finally:
        task.pop_request()


def sent(app: Celery) -> list[str]:
    """The messages that wait for a worker."""
    found: list[str] = []
    with app.connection_for_read() as connection, connection.SimpleQueue("celery") as queue, suppress(queue.Empty):
        while True:
            message = queue.get(block=False)
            message.ack()
            found.append(message.headers["id"])
    return found


def test_a_call_without_a_worker_is_done_once_too(app: Celery) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=lambda order: order)  # type: ignore[untyped-decorator]
    def pay(order: str) -> str:
        return order

    assert [pay("a"), pay("a"), pay.apply(("b",)).get(), pay.apply(("b",)).get()] == ["a", None, "b", None]


def test_a_key_has_as_many_attempts_as_celery_makes(app: Celery) -> None:
    for retries, options, attempts in ((0, {}, 3), (3, {}, 4), (None, {}, 5), (3, {"max_attempts": 2}, 2)):

        @app.task(name=f"pay{retries}{attempts}", base=Single, once_key=lambda: "k", max_retries=retries, once_options=options)  # type: ignore[untyped-decorator]
        def pay() -> None:
            raise ValueError("no money")

        for _ in range(attempts):
            with pytest.raises(ValueError, match="no money"):
                pay()
        with pytest.raises(ValueError if retries is None else sidekeeper.NotRepeatedError):
            pay()


def test_a_task_that_was_superseded_fails_and_one_whose_outcome_is_unknown_does_not(
    app: Celery, threaded: sidekeeper.Client, sidecar: Sidecar, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=lambda order: order)  # type: ignore[untyped-decorator]
    def pay(order: str) -> str:
        sidecar.expire(f"mail/{order}")
        assert current_attempt().wait_ended(PATIENT)
        if order == "superseded":
            threaded.begin("mail", order).release()
        if order == "held":
            threaded.acquire("mail/held")
        return order

    with pytest.raises(sidekeeper.SupersededError):
        pay("superseded")
    assert pay("held") == "held"
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["FAILED_PRECONDITION (LOCK_HELD)"]


@pytest.mark.parametrize("taken", ["retry", "skip"])
def test_a_message_whose_work_another_does_is_sent_again_and_only_what_is_done_is_dropped(
    app: Celery, threaded: sidekeeper.Client, taken: str
) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=lambda order: order, taken=taken)  # type: ignore[untyped-decorator]
    def pay(order: str) -> str:
        return order

    for order, wait in (("7", 0), ("8", 0.01)):
        pay.wait = wait
        with threaded.begin("mail", order):
            with pytest.raises(Retry):
                deliver(pay, "1", order)
            assert sent(app) == ["1"]
        pay.wait = PATIENT
        with pytest.raises(Ignore):
            deliver(pay, "1", order)
        assert sent(app) == []


@pytest.mark.parametrize("taken", ["retry", "skip"])
def test_a_message_for_whose_key_there_is_no_room_is_sent_again(
    app: Celery, threaded: sidekeeper.Client, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=True, taken=taken)  # type: ignore[untyped-decorator]
    def mail() -> str:
        return "sent"

    def full(*_: object, **__: object) -> None:
        raise named("TOO_MANY_KEYS", "the name has 10000 keys")

    with monkeypatch.context() as patched:
        patched.setattr(threaded, "attempt", full)
        with pytest.raises(Retry):
            deliver(mail, "1")
        with pytest.raises(sidekeeper.TooManyKeysError):
            mail()
    assert sent(app) == ["1"]
    assert deliver(mail, "1") == "sent"


def test_the_record_of_a_message_stands_for_a_day_unless_the_task_says_otherwise(app: Celery, sidecar: Sidecar) -> None:
    for name, key, options, keep in (("a", True, {}, 24), ("b", True, {"keep": 3600}, 1), ("c", lambda: "1", {}, 7 * 24)):

        @app.task(name=name, base=Single, shared=False, once_key=key, once_options=options)  # type: ignore[untyped-decorator]
        def mail() -> None: ...

        deliver(mail, "1")
        assert record(sidecar, f"celery/{name}", "1").keep.seconds == keep * 3600


def test_names_and_keys_that_sidekeeper_does_not_take_become_some_that_it_takes(app: Celery, sidecar: Sidecar) -> None:
    @app.task(name="mail:send", base=Single, shared=False, once_key=lambda: "order/1")  # type: ignore[untyped-decorator]
    def mail() -> None: ...

    deliver(mail, "1")
    assert record(sidecar, "celery/_-mail_3asend", "_-order_2f1").attempt == 1


def test_a_task_that_replaces_itself_is_done(app: Celery, sidecar: Sidecar) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=lambda order: order, bind=True)  # type: ignore[untyped-decorator]
    def pay(self: Any, order: str) -> None:
        self.replace(app.signature("other"))

    with pytest.raises(Ignore):
        deliver(pay, "1", "7")
    assert state(sidecar, "mail", "7") == "SUCCEEDED"
    assert sent(app) == ["1"]
    with pytest.raises(Ignore):
        deliver(pay, "1", "7")
    assert sent(app) == []


def test_a_task_that_retries_has_failed(app: Celery, sidecar: Sidecar) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=True, bind=True)  # type: ignore[untyped-decorator]
    def pay(self: Any) -> None:
        raise self.retry(countdown=0)

    with pytest.raises(Retry):
        deliver(pay, "1")
    assert state(sidecar, "mail", "1") == "FAILED"
    assert sent(app) == ["1"]


def test_a_task_that_has_not_run_or_says_so_itself_fails(app: Celery, sidecar: Sidecar) -> None:
    @app.task(base=Single, shared=False, lock="mail", once_key=True)  # type: ignore[untyped-decorator]
    async def coroutine() -> None: ...

    @app.task(base=Single, shared=False, lock="mail", once_key=True)  # type: ignore[untyped-decorator]
    def generator() -> Iterator[int]:
        yield 1

    @app.task(base=Single, shared=False, lock="mail", once_key=True)  # type: ignore[untyped-decorator]
    def told() -> None:
        current_attempt().finish(sidekeeper.Outcome.FAILED)

    for number, task, error in ((1, coroutine, TypeError), (2, generator, TypeError), (3, told, sidekeeper.AlreadyDoneError)):
        with pytest.raises(error):
            deliver(task, str(number))
        assert state(sidecar, "mail", str(number)) == "FAILED"
