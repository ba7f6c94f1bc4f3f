"""What a fork leaves of a client: nothing. The threads that keep its deadlines, and those of gRPC, stay with the parent."""

from __future__ import annotations

import gc
import os
import threading

from sidekeeper._errors import ForkedError

INHERITED = "this process was forked from the one that made the client: make a client after the fork"
STRANDED = (
    "gRPC ran in the process that this one was forked from, and cannot be used here. Close every client before the fork and "
    "make clients after it, or start the process without a fork (multiprocessing's spawn and forkserver)"
)

POLLER = "(_poll_wrapper)"
"""How the name of the thread ends that grpc.aio has while it runs."""

Process = tuple[int, int]


class _State:
    def __init__(self) -> None:
        self.forks = 0
        self.polled = False
        self.stranded = False
        self.open: dict[int, Process] = {}


_state = _State()


def here() -> Process:
    """This process: neither a child nor a parent has the same. The number says so where a fork is made without Python's knowledge, as
    uWSGI makes them; the count, where the number comes again."""
    return os.getpid(), _state.forks


def refuse_if_forked(home: Process) -> None:
    """Raises ForkedError for what was made in another process."""
    if here() != home:
        raise ForkedError(INHERITED)


def refuse_if_stranded() -> None:
    """Raises ForkedError where gRPC hangs, or crashes, and takes the parent's event loops with it."""
    if _state.stranded or any(home != here() for home in tuple(_state.open.values())):
        raise ForkedError(STRANDED)


def opened(channel: object) -> Process:
    """Notes that gRPC runs here for a channel, and returns where that is."""
    _state.open[id(channel)] = here()
    return here()


def closed(channel: object, home: Process) -> None:
    """Notes that it runs no more for this channel; where it was inherited, it never ends."""
    if here() == home:
        _state.open.pop(id(channel), None)


def _before() -> None:
    if _polls():
        gc.collect()  # it ends with gRPC's last object, which a cycle may keep
    _state.polled = _polls()


def _polls() -> bool:
    return any(thread.name.endswith(POLLER) for thread in threading.enumerate())


def _in_child() -> None:
    _state.forks += 1
    _state.stranded = _state.stranded or _state.polled


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
