"""The clock on which validity is counted, in seconds since some fixed instant."""

import math
import sys
import time
from collections.abc import Callable


def _system() -> tuple[Callable[[], float], float]:
    """A clock that goes on while the machine is suspended, where the system has one, and by how much it may be behind.

    macOS has its CLOCK_MONOTONIC_RAW; before Python 3.13 Windows' clock has a resolution of 16 ms.
    """
    chosen = getattr(time, "CLOCK_BOOTTIME", None)
    if chosen is None and sys.platform == "darwin":
        chosen = time.CLOCK_MONOTONIC_RAW
    if chosen is None:
        return time.monotonic, time.get_clock_info("monotonic").resolution
    return lambda: time.clock_gettime(chosen), time.clock_getres(chosen)


_read, _coarse = _system()


def before() -> float:
    """The earliest time that it can be now. If the clock cannot be read, validity counted from it has run out."""
    try:
        return _read()
    except OSError:
        return -math.inf


def now() -> float:
    """The latest time that it can be now. If the clock cannot be read, nothing is valid."""
    try:
        return _read() + _coarse
    except OSError:
        return math.inf


LONGEST_NAP = 0.25
"""Seconds by which a deadline may be noticed late after the machine was suspended: sleeping stands still meanwhile."""
