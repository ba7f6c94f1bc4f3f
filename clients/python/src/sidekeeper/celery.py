"""Celery tasks of which one runs at a time in the whole cluster, or that run once for a key.

`@app.task(base=Single)` is all that a task needs; `pip install sidekeeper[celery]` brings Celery along.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal, NoReturn
from uuid import uuid4

from celery import Task
from celery.exceptions import Ignore, Retry

from sidekeeper import _fork, _once, _transport
from sidekeeper._claim import log
from sidekeeper._errors import AlreadyDoneError, SidekeeperError, SupersededError, TooManyKeysError
from sidekeeper._locked import TAKEN, attempting, current_attempt, current_lock, holding, named
from sidekeeper._names import name_of, segment_of
from sidekeeper._sync import Client, OnceOptions

__all__ = ["Single", "client", "current_attempt", "current_lock"]

FEWEST_ATTEMPTS, MOST_ATTEMPTS = 3, 1000
KEEP_OF_MESSAGES = 24 * 3600.0
"""Seconds for which the record of a message stands, unless the task says otherwise. A name has room for 10,000 keys."""

_clients: dict[_fork.Process, Client] = {}
_making = threading.Lock()


def client() -> Client:
    """The client of this process, for tasks: of the sidecar at SIDEKEEPER_ADDRESS, and made with the first call. Under the pool `prefork`
    call it in tasks only: a client that is open where the pool forks makes its processes useless."""
    with _making:
        if _fork.here() not in _clients:
            _clients[_fork.here()] = Client()
        return _clients[_fork.here()]


class Single(Task):  # type: ignore[misc]
    """The base of a task that holds a lock while it runs.

    Each attribute is given to `app.task`, as in `@app.task(base=Single, taken="skip")`. A long task asks `current_lock` whether it still
    holds the lock; a task that has lost it fails with LostError. A call without a worker, and `apply`, raise the error of a lock that
    is taken. A task whose release is not confirmed has succeeded, since nothing may run it again for that: it is logged.

    With `once_key` the task is done once for each key. A message that comes again is acknowledged and does not run. Tasks with different
    keys run at the same time, and a long task asks `current_attempt` in place of `current_lock`. A task that replaces itself is done. A
    task that finishes its attempt as FAILED and then returns raises AlreadyDoneError.

    A task whose `run` returns a coroutine or a generator has not run: it raises TypeError.
    """

    abstract = True
    lock: str | Callable[..., str] | None = None
    """The lock's name, or a function that makes it of the task's arguments; None, `celery/` and the task's name. With `once_key` it is the
    name of the work. What is no name becomes one as `sidekeeper.name_of` says."""
    once_key: Callable[..., str] | Literal[True] | None = None
    """A function that makes of the task's arguments the key for which it is done once; True, the task's id: a message is worked off once,
    however often it is delivered. None, there is no key. A task that has more than 10,000 keys with records is sent again until there is
    room. What is no key becomes one as `sidekeeper.segment_of` says."""
    once_options: OnceOptions = OnceOptions()
    """More of how it is done once. Without `max_attempts`, the key has one attempt more than the task's `max_retries`, and at least 3.
    Without `keep`, a record stands for a week, and for a day if `once_key` is True."""
    taken: Literal["retry", "skip"] = "retry"
    """What a task does whose lock is taken: it is sent again, to run `retry_after` seconds later, for as often as it takes and without
    counting as one of its `max_retries`; or it is dropped. With "retry", it is also sent again while the sidecar or the
    ensemble is away. With `once_key` it is sent again in any case: only a task that is done is dropped."""
    retry_after: float = 10
    """Seconds until a task whose lock was taken is tried again."""
    wait: float | None = 0
    """Seconds for which a process of the worker waits for the lock first; None, without a limit."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        done: list[Any] = []
        try:
            with ExitStack() as stack:
                try:
                    stack.enter_context(self._held_by(args, kwargs))
                except AlreadyDoneError as error:
                    self._done_before(error)
                    return None
                except SidekeeperError as error:
                    self._not_granted(error)
                try:
                    done.append(_once.ran(self.run(*args, **kwargs)))
                except Ignore as error:  # as from `replace`: another message goes on with it
                    done.append(error)
        except SidekeeperError as error:
            if not done or isinstance(error, SupersededError | AlreadyDoneError):
                raise  # it is the task's own, or another outcome counts
            log.warning("%s", error)
        if isinstance(done[0], Ignore):
            raise done[0]
        return done[0]

    def _held_by(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> AbstractContextManager[None]:
        """What a call holds while it runs."""
        name, owner = self._lock_of(args, kwargs), self.name.encode()[:128].decode(errors="ignore")
        if (chosen := type(self).once_key) is None:
            return holding(client().lock(name, wait=self.wait, owner=owner))
        key = named(chosen, args, kwargs) if callable(chosen) else self.request.id or str(uuid4())
        attempts = MOST_ATTEMPTS if self.max_retries is None else self.max_retries + 1
        attempts = min(max(attempts, FEWEST_ATTEMPTS), MOST_ATTEMPTS)
        options: OnceOptions = {"max_attempts": attempts}
        if chosen is True:
            options["keep"] = KEEP_OF_MESSAGES
        options = {**options, **self.once_options, "wait": self.wait, "owner": owner}
        return attempting(client().attempt(name, segment_of(key), **options))

    def _done_before(self, error: AlreadyDoneError) -> None:
        """Has the worker acknowledge a message whose work is done. The result that the task has, if any, stays."""
        if self._in_worker():
            raise Ignore from error

    def _lock_of(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> str:
        chosen = type(self).lock  # not bound to the task
        return name_of(named(f"celery/{self.name}" if chosen is None else chosen, args, kwargs))

    def _in_worker(self) -> bool:
        return not self.request.called_directly and not self.request.is_eager

    def _not_granted(self, error: SidekeeperError) -> NoReturn:
        taken, in_worker = isinstance(error, TAKEN), self._in_worker()
        sends_again = self.taken == "retry" or type(self).once_key is not None  # whose work may be left undone by the one that has the lock
        if in_worker and taken and not sends_again:
            raise Ignore from error
        not_begun = taken or isinstance(error, TooManyKeysError) or _transport.is_transient(error) or _transport.was_lost(error)
        if in_worker and sends_again and not_begun:
            self._send_again(error)
        raise error

    def _send_again(self, error: SidekeeperError) -> NoReturn:
        again = self.signature_from_request(countdown=self.retry_after)
        again.apply_async()
        raise Retry(exc=error, when=self.retry_after, sig=again) from error
