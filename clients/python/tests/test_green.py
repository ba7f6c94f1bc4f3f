"""The client in a process whose threads are coroutines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PATIENT

PATCHED = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "gevent, but for threads": "from gevent import monkey; monkey.patch_all(thread=False)",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}
MADE = {"threads": "sidekeeper.Client()", "asyncio": "sidekeeper.aio.Client()"}


def made(*lines: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    command = [sys.executable, "-W", "ignore", "-c", "\n".join(lines)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENT)


@pytest.mark.parametrize("client", MADE)
@pytest.mark.parametrize("by", PATCHED)
def test_a_process_without_threads_is_told_so(by: str, client: str) -> None:
    run = made(PATCHED[by], "import sidekeeper, sidekeeper.aio", MADE[client])
    assert run.stderr.splitlines()[-1].startswith(f"RuntimeError: {by.partition(',')[0]} has replaced the threads of this process. ")


def test_what_leaves_threads_alone_is_no_reason() -> None:
    run = made("from gevent import monkey; monkey.patch_socket()", "import sidekeeper", "sidekeeper.Client().close()")
    assert (run.returncode, run.stderr) == (0, "")
