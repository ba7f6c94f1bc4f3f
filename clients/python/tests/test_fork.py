"""What a process has of the clients of the one that it was forked from. Each test forks a program of its own, which says what happened.

Programs that fork while a client is open turn gRPC's own handlers of forks off: they crash about one child in six, before it does anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import sidekeeper

from conftest import PATIENT, Sidecar

THREADS = """
import multiprocessing, os, sys, threading, time
import sidekeeper

def error_of(work):
    began = time.monotonic()
    try:
        return repr(work())
    except Exception as error:
        told = type(error).__name__ + (" of " + type(error.cause).__name__ if hasattr(error, "cause") else "")
        return told if time.monotonic() - began < 0.5 else told + ", late"

def fork(work):
    sys.stdout.flush()
    if not (pid := os.fork()):
        work()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0, "the child has failed"

def hold():
    with sidekeeper.Client() as client, client.lock("other") as lock:
        print("held:", lock.valid)
"""

ASYNC = """
import asyncio
from sidekeeper import aio

def refusal_of(work):
    try:
        asyncio.run(work)
    except Exception as error:
        return type(error).__name__ + (" of " + type(error.cause).__name__ if hasattr(error, "cause") else "")

async def hold():
    async with aio.Client() as client, client.lock("other") as lock:
        print("held:", lock.valid)
"""


@pytest.fixture
def run(sidecar: Sidecar) -> Callable[..., list[str]]:
    """Runs a program, and gives the lines that it and its children have written."""

    def run(text: str, forks_while_open: bool = False) -> list[str]:
        source = str(Path(sidekeeper.__file__).parents[1])
        support = "0" if forks_while_open else "1"
        own = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": source, "GRPC_ENABLE_FORK_SUPPORT": support}
        program = [sys.executable, "-c", text]
        ran = subprocess.Popen(program, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            told, complained = ran.communicate(timeout=PATIENT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(ran.pid, signal.SIGKILL)  # with the children that hang
        assert ran.returncode == 0, told + complained
        return told.splitlines()

    return run


def test_a_forked_child_has_nothing_of_its_parents_and_asks_for_nothing(run: Callable[..., list[str]]) -> None:
    told = run(
        THREADS
        + """
client = sidekeeper.Client()
lease = client.open_lease()
lock = client.acquire("orders", owner="parent")
membership = client.join("workers", "a", lease=lease)
leaders = client.watch_leader("orders")
next(leaders)
view = client.config.view("app")
entries = view.__enter__()

def child():
    print("valid:", lock.valid, lease.valid, membership.valid, lock.valid_for)
    print("lost:", type(lock.error.cause).__name__, type(lease.error.cause).__name__, type(membership.error.cause).__name__)
    print("stops:", lock.should_stop(), lock.wait_should_stop(), lock.wait_ended(), entries.age())
    for work in (lock.check, lock.release, lease.close, membership.leave):
        print(error_of(work))
    for work in (
        lambda: client.acquire("b"), client.open_lease, lambda: client.get_lock("orders"), lambda: next(leaders),
        lambda: client.sequence("ids").next(), lambda: client.config.get("a"), lambda: membership.update({}),
        lambda: client.join("workers", "b"), lambda: client.run_while_leader("b", print), sidekeeper.Client,
    ):
        print(error_of(work))
    print("closed:", error_of(client.close))

fork(child)
time.sleep(4)  # longer than anything is valid that is not asked for
print("parent:", lock.valid, lease.valid, membership.valid, client.get_lock("orders").holders[0].owner)
fork(lambda: fork(lambda: print("grandchild:", lock.valid, error_of(sidekeeper.Client))))
lock.release()
view.__exit__(None, None, None)
client.close()
""",
        forks_while_open=True,
    )
    assert told == [
        "valid: False False False 0.0",
        "lost: ForkedError ForkedError ForkedError",
        "stops: True True True inf",
        *["LostError of ForkedError"] * 4,
        *["ForkedError"] * 10,
        "closed: None",
        "parent: True True True parent",
        "grandchild: False ForkedError",
    ]


def test_a_forked_child_does_not_end_its_parents_attempt(run: Callable[..., list[str]]) -> None:
    told = run(
        THREADS
        + """
client = sidekeeper.Client()

def child():
    print("valid:", attempt.valid, type(attempt.error.cause).__name__)
    for work in (
        attempt.check, attempt.release, lambda: attempt.finish(sidekeeper.Outcome.FAILED), lambda: attempt.__exit__(None, None, None),
        lambda: client.begin("mail", "other"), lambda: client.once("mail", "other", print),
    ):
        print(error_of(work))

with client.attempt("mail", "k") as attempt:
    fork(child)
    print("parent:", attempt.valid)
print("done:", not client.once("mail", "k", print))
client.close()
""",
        forks_while_open=True,
    )
    assert told == [
        "valid: False ForkedError",
        *["LostError of ForkedError"] * 4,
        *["ForkedError"] * 2,
        "parent: True",
        "done: True",
    ]


def test_a_child_that_python_does_not_know_to_be_forked_has_nothing_either(run: Callable[..., list[str]]) -> None:
    told = run(
        THREADS
        + """
import ctypes
client = sidekeeper.Client()
lock = client.acquire("orders")
if not (pid := ctypes.PyDLL(None).fork()):  # as uWSGI does, in C
    print(lock.valid, error_of(lock.release), error_of(client.open_lease), error_of(sidekeeper.Client), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(lock.valid)
client.close()
""",
        forks_while_open=True,
    )
    assert told == ["False LostError of ForkedError ForkedError ForkedError", "True"]


def test_a_forked_child_of_an_asyncio_program_has_nothing_either(run: Callable[..., list[str]]) -> None:
    told = run(
        ASYNC
        + """
import multiprocessing, os

def child():
    print("valid:", lock.valid, lease.valid, type(lock.error.cause).__name__, entries.age())
    asyncio.run(lock.wait_ended())
    for work in (lock.release(), lease.close(), client.acquire("b"), client.open_lease(), client.get_lock("orders"), anext(leaders),
                 client.sequence("ids").next(), client.config.get("a"), client.join("workers", "b"), entries.wait_changed(), hold()):
        print(refusal_of(work))
    print("closed:", asyncio.run(client.close()), flush=True)

async def main():
    global client, lock, lease, leaders, entries
    async with aio.Client() as client, client.lock("orders", owner="parent") as lock, client.config.view("app") as entries:
        lease = await client.open_lease()
        leaders = client.watch_leader("orders")
        await anext(leaders)
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        await asyncio.to_thread(process.join)
        assert process.exitcode == 0
        if not (pid := os.fork()):
            try:  # it goes on in the parent's loop, as far as it can
                await client.get_lock("orders")
            except Exception as error:
                print("inside:", type(error).__name__, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        await asyncio.sleep(4)
        print("parent:", lock.valid, lease.valid, (await client.get_lock("orders")).holders[0].owner)

asyncio.run(main())
""",
        forks_while_open=True,
    )
    assert told == [
        "valid: False False ForkedError inf",
        *["LostError of ForkedError"] * 2,
        *["ForkedError"] * 9,
        "closed: None",
        "inside: ForkedError",
        "parent: True True parent",
    ]


def test_a_child_of_a_process_that_has_closed_its_clients_holds_locks_of_its_own(run: Callable[..., list[str]]) -> None:
    told = run(
        THREADS
        + """
client = sidekeeper.Client()
with client.lock("orders") as kept:
    pass
lost = client.acquire("orders")
client.revoke("orders", grace=0)
lost.wait_ended()
client.close()
for _ in range(5):
    fork(hold)
process = multiprocessing.get_context("fork").Process(target=hold)
process.start()
process.join()
hold()
"""
    )
    assert told == ["held: True"] * 7


def test_a_child_of_an_asyncio_program_that_has_closed_its_clients_holds_locks_of_its_own(run: Callable[..., list[str]]) -> None:
    told = run(
        THREADS
        + ASYNC
        + """
async def main():
    global kept, client
    async with aio.Client() as client, client.lock("orders") as kept:
        print("parent:", kept.valid)

asyncio.run(main())
for _ in range(5):
    fork(lambda: asyncio.run(hold()))
asyncio.run(hold())
"""
    )
    assert told == ["parent: True"] + ["held: True"] * 6


def test_processes_that_are_not_forked_hold_locks_of_their_own(run: Callable[..., list[str]]) -> None:
    told = run(
        """
import subprocess, sys
import sidekeeper
HOLD = "import sidekeeper\\nwith sidekeeper.Client() as client, client.lock('other') as lock: print('held:', lock.valid)"
with sidekeeper.Client() as client, client.lock("orders") as lock:
    subprocess.run([sys.executable, "-c", HOLD], check=True, preexec_fn=lambda: None)  # which forks, and runs the hooks of forks
    print("parent:", lock.valid)
""",
        forks_while_open=True,
    )
    assert told == ["held: True", "parent: True"]
