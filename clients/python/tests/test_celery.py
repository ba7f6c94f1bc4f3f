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

from conftest import PATIENT, Sidecar

SHOP = """
import fcntl, os, time
from celery import Celery
from sidekeeper.celery import Single, current_lock

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

    def send(self, queue: str, call: str) -> None:
        sent = f"import shop; shop.{call}.apply_async(queue={queue!r})"
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
