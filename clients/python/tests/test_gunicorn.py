"""Clients under gunicorn, whose --preload imports the application before it forks its workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from conftest import PATIENT, Sidecar

MADE_IN_THE_WORKER = """
import functools, os, sidekeeper

client = functools.cache(sidekeeper.Client)

def app(environ, start_response):
    with client().lock("orders", wait=10) as lock:
        start_response("200 OK", [])
        return [f"{os.getpid()} {lock.valid}".encode()]
"""

MADE_ON_IMPORT = """
import os, sidekeeper

client = sidekeeper.Client()

def app(environ, start_response):
    start_response("200 OK", [])
    try:
        return [repr(client.acquire("orders")).encode()]
    except sidekeeper.ForkedError as error:
        return [f"{os.getpid()} {error}".encode()]
"""

# A worker that hears SIGTERM before it has its handlers, which it has when it says so, goes on until gunicorn kills it.
SAYS_WHEN_READY = """
def post_worker_init(worker):
    open(f"ready-{worker.pid}", "w").close()
"""

WORKERS = 2

Serve = Callable[[str], Callable[[], list[str]]]


@pytest.fixture
def serve(sidecar: Sidecar, directory: Path) -> Iterator[Serve]:
    """Starts an application with its workers, and returns what answers a request."""
    started: list[subprocess.Popen[bytes]] = []
    address = f"{directory}/g.sock"

    def start(application: str) -> Callable[[], list[str]]:
        (directory / "application.py").write_text(application)
        (directory / "gunicorn.conf.py").write_text(SAYS_WHEN_READY)
        command = [sys.executable, "-m", "gunicorn", "--preload", f"--workers={WORKERS}", f"--bind=unix:{address}", "--log-level=critical"]
        environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": os.pathsep.join(sys.path)}
        started.append(subprocess.Popen([*command, "application:app"], cwd=directory, env=environment))
        until = time.monotonic() + PATIENT
        while len(list(directory.glob("ready-*"))) < WORKERS and time.monotonic() < until:
            time.sleep(0.01)
        return request

    def request() -> list[str]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENT)
            connection.connect(address)
            http = HTTPConnection("localhost")
            http.sock = connection
            http.request("GET", "/")
            response: HTTPResponse = http.getresponse()
            return response.read().decode().split(" ", 1)

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENT) == 0


def test_a_worker_makes_its_own_client(serve: Serve) -> None:
    request, workers = serve(MADE_IN_THE_WORKER), set()
    for _ in range(50):
        worker, valid = request()
        assert valid == "True"
        workers.add(worker)
    assert 1 <= len(workers) <= WORKERS


def test_a_client_that_was_made_before_the_fork_says_so(serve: Serve) -> None:
    _, told = serve(MADE_ON_IMPORT)()
    assert "fork" in told, told
