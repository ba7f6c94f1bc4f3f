"""A program that ends without closing its client ends quietly."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conftest import PATIENT, Sidecar

PROGRAMS = {
    "threads": """
import sidekeeper
client = sidekeeper.Client()
lock = client.acquire("orders")
""",
    "threads, with an error": """
import sidekeeper
client = sidekeeper.Client("unix:///nowhere/s.sock")
try:
    client.acquire("orders", wait=0)
except sidekeeper.SidekeeperError:
    pass
""",
    "asyncio": """
import asyncio
from sidekeeper import aio
async def main():
    global client, lock
    client = aio.Client()
    lock = await client.acquire("orders")
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_client_that_is_not_closed_says_nothing_at_the_end(sidecar: Sidecar, text: str) -> None:
    environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=PATIENT)
    assert (ran.returncode, ran.stderr) == (0, "")
