"""A client process of the fault test that uses the Python client: it does what ../caller/stand.go does, and notes it in the same form.

It takes an order as one line of JSON from its input, and carries it out until the input ends. docs/histories.md has the events.
"""
import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "clients/python/src"))

import sidekeeper  # noqa: E402
from sidekeeper import aio  # noqa: E402

CALLERS, LOCKS = 5, 16
CODES = {"OK": "OK", "CANCELLED": "Canceled"}


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Process:
    def __init__(self, order):
        self.order, self.newest, self.stopping = order, 0, asyncio.Event()
        self.file = os.open(Path(order["histories"]) / f"{order['client']:05d}.history", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
        self.dice = random.Random(order["seed"])

    def note(self, **event):
        os.write(self.file, json.dumps({"at": now(), "client": self.order["client"], **event}).encode() + b"\n")

    def clocks(self):
        self.note(kind="clocks", wall=time.time_ns())

    async def pause(self, least, most):
        """Waits for a while, and says whether to go on."""
        try:
            await asyncio.wait_for(self.stopping.wait(), self.dice.uniform(least, most))
        except TimeoutError:
            return True
        return False

    async def unless_stopped(self, work):
        """What work leads to; cancelled when the process is to stop."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        task.cancel()  # which does nothing to what is done
        return await task


class Operation:
    """What one caller does with one lock, or as one member."""

    def __init__(self, process, caller, **begins):
        process.newest += 1
        self.process, self.caller, self.number, self.first, self.written = process, caller, process.newest, 0, 0
        self.is_lock, self.options = "lock" in begins, {"owner": f"{process.order['client']}/{self.number}"}
        self.note(sidecar=process.order["sidecar"], resumes=process.order["resumes"], repeats=True, **begins)

    def note(self, **event):
        self.process.note(op=self.number, caller=self.caller, **event)

    def end(self, error=None):
        cause = error.cause if isinstance(error, sidekeeper.LostError) else error
        if isinstance(cause, sidekeeper.SidekeeperError):
            code = CODES.get(cause.code.name) or cause.code.name.title().replace("_", "")
            self.note(kind="ended", code=code, reason=cause.reason)
        elif isinstance(cause, asyncio.CancelledError):
            self.note(kind="ended", code="Canceled", byUser=True)
        else:
            self.note(kind="ended", code="Unknown" if cause else "OK", reason=str(cause or ""))

    def look(self, held):
        """Notes now and then for how long the caller has been sure of a lock."""
        asked = now()
        if not self.is_lock or not held.valid:
            return
        self.first = self.first or now()
        if asked >= self.first and asked - self.written > 100_000_000:
            self.written = asked
            self.note(kind="believed", **{"from": self.first, "to": asked})

    async def keep(self, held, most, give_up):
        """Keeps something for a while and gives it up, unless it is lost before."""
        over = time.monotonic() + self.process.dice.uniform(0.2, most)
        while time.monotonic() < over and not self.process.stopping.is_set() and held.error is None:
            self.look(held)
            await asyncio.sleep(0.03)
        if (lost := held.error) is not None:
            self.end(lost)
        else:
            self.note(kind="releasing")
        try:
            await give_up()
            error = None
        except (sidekeeper.LostError, sidekeeper.SidekeeperError) as failed:
            error = failed
        if lost is None:
            self.end(error)


async def hold(process, client, caller, name):
    operation = Operation(process, caller, kind="called", lock=name, mode="exclusive")
    told = {
        "on_queued": lambda queued: operation.note(kind="queued", position=queued.position),
        "on_suspended": lambda remaining: operation.note(kind="suspended"),
        "on_resumed": lambda: operation.note(kind="resumed"),
    }
    try:
        lock = await process.unless_stopped(client.acquire(name, **operation.options, **told))
    except (sidekeeper.LostError, sidekeeper.SidekeeperError, asyncio.CancelledError) as error:
        operation.end(error)
        return
    operation.note(kind="granted", token=int(lock.fencing_token))
    await operation.keep(lock, 3, lock.release)


async def belong(process, client, caller):
    group, member = process.order["prefix"] + "/group", f"{process.order['slot']}-{caller - 1}"
    operation = Operation(process, caller, kind="joining", group=group, member=member)
    try:
        joined = await process.unless_stopped(client.join(group, member, on_conflict=sidekeeper.OnConflict.WAIT, **operation.options))
    except (sidekeeper.LostError, sidekeeper.SidekeeperError, asyncio.CancelledError) as error:
        operation.end(error)
        return
    operation.note(kind="joined", incarnation=joined.incarnation)
    await operation.keep(joined, 20, joined.leave)


async def go_about(process, client, caller):
    name = f"{process.order['prefix']}/stand/{(process.order['slot'] * (CALLERS - 1) + caller - 1) % LOCKS}"
    while await process.pause(0, 0.2):
        if caller == CALLERS:
            await belong(process, client, caller)
        else:
            await hold(process, client, caller, name)


async def main():
    process = Process(json.loads(sys.stdin.readline()))
    process.clocks()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: sys.stdin.read() or process.stopping.set())
    async with aio.Client(process.order["address"]) as client:
        await asyncio.gather(*(go_about(process, client, caller) for caller in range(1, CALLERS + 1)))
    process.clocks()


asyncio.run(main())
