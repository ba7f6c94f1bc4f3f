"""The clock on which validity is counted."""

import time


def now() -> float:
    """Seconds since some fixed instant; they go on while the machine is suspended, where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


LONGEST_NAP = 0.25
"""Seconds by which a deadline may be noticed late after the machine was suspended: sleeping stands still meanwhile."""
