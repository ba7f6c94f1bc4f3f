"""Threads that are none: gevent and eventlet put coroutines of their own in the place of a process's threads and selectors."""

from __future__ import annotations

import _thread
import selectors


def refuse_if_patched() -> None:
    """Raises RuntimeError where a thread with an event loop would never run beside its maker, as the client's must."""
    for module, found in (("_thread", _thread.start_new_thread), ("selectors", selectors.DefaultSelector)):
        by = found.__module__
        if by != module:
            raise RuntimeError(
                f"{by.partition('.')[0]} has replaced the threads of this process. Without one of its own the client would wait for ever. "
                "Run this in a process with threads, as with `gunicorn -k gthread` or `celery --pool threads`."
            )
