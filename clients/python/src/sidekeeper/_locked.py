"""Functions each of whose calls holds a lock, or does work once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack, overload

from sidekeeper import _lock, _once
from sidekeeper._errors import AlreadyDoneError, LockHeldError, WaitTimeoutError, results
from sidekeeper._options import check_options

if TYPE_CHECKING:
    from sidekeeper import _sync, aio

P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L")

Name = str | Callable[..., str]
"""A lock's name, or the name or the key of work, or what makes it of the arguments of a call."""
TAKEN = (LockHeldError, WaitTimeoutError)

_current: ContextVar[_sync.Lock] = ContextVar("sidekeeper_lock")
_current_of_task: ContextVar[_lock.Lock] = ContextVar("sidekeeper_lock_of_task")
_current_attempt: ContextVar[_sync.Attempt] = ContextVar("sidekeeper_attempt")
_current_attempt_of_task: ContextVar[_once.Attempt] = ContextVar("sidekeeper_attempt_of_task")


def current_lock() -> _sync.Lock:
    """The lock that this call of a function with `locked` holds, or a task of `sidekeeper.celery`: the innermost of this thread.
    Raises LookupError in any other function."""
    return _current.get()


def current_lock_of_task() -> _lock.Lock:
    """The lock that this call of a function with `locked` holds: the innermost of this task. Raises LookupError in any other function."""
    return _current_of_task.get()


def current_attempt() -> _sync.Attempt:
    """The attempt that this call of a function with `done_once` is, or a task of `sidekeeper.celery` with a key: the innermost of this
    thread. Raises LookupError in any other function."""
    return _current_attempt.get()


def current_attempt_of_task() -> _once.Attempt:
    """The attempt that this call of a function with `done_once` is: the innermost of this task. Raises LookupError elsewhere."""
    return _current_attempt_of_task.get()


@overload
def locked(
    client: _sync.Client | Callable[[], _sync.Client],
    name: Name,
    *,
    skip: Literal[False] = False,
    suspension_grace: float | None = None,
    **options: Unpack[_sync.LockOptions],
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...


@overload
def locked(
    client: _sync.Client | Callable[[], _sync.Client],
    name: Name,
    *,
    skip: Literal[True],
    suspension_grace: float | None = None,
    **options: Unpack[_sync.LockOptions],
) -> Callable[[Callable[P, T]], Callable[P, T | None]]: ...


def locked(
    client: _sync.Client | Callable[[], _sync.Client],
    name: Name,
    *,
    skip: bool = False,
    suspension_grace: float | None = None,
    **options: Unpack[_sync.LockOptions],
) -> Callable[[Callable[P, T]], Callable[P, T | None]]:
    """Has each call of a function hold a lock, as the body of `client.lock` does.

    client: the client, or a function that returns it, which is called with each call.
    name: the lock's name, or a function that makes it of the arguments of the call.
    skip: whether a call that is not granted the lock within wait, by default 0, does nothing and returns None. Otherwise it waits, and
        raises LockHeldError or WaitTimeoutError. If the sidecar or the ensemble is away it raises an error in any case.

    A thread cannot be interrupted: a long function asks `current_lock`. LostError is raised at the end of a call that has lost the lock.
    ReleaseUnconfirmedError has the call's result: do not call again for it.
    """
    check_options(_lock.LockOptions, {**options, "lease": None}, suspension_grace=suspension_grace)
    chosen: _sync.LockOptions = {"wait": 0, **options} if skip else options

    def decorate(function: Callable[P, T]) -> Callable[P, T | None]:
        _refuse(function, inspect.iscoroutinefunction(function), "use sidekeeper.aio.locked")

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            this = client() if callable(client) else client
            with results() as done, ExitStack() as stack:
                try:
                    stack.enter_context(holding(this.lock(named(name, args, kwargs), suspension_grace=suspension_grace, **chosen)))
                except TAKEN:
                    if skip:
                        return None
                    raise
                result = function(*args, **kwargs)
                done.append(result)
                return result
            raise AssertionError  # the lock's end hides no error

        return call

    return decorate


@overload
def locked_task(
    client: aio.Client | Callable[[], aio.Client],
    name: Name,
    *,
    skip: Literal[False] = False,
    suspension_grace: float | None = None,
    **options: Unpack[_lock.LockOptions],
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]: ...


@overload
def locked_task(
    client: aio.Client | Callable[[], aio.Client],
    name: Name,
    *,
    skip: Literal[True],
    suspension_grace: float | None = None,
    **options: Unpack[_lock.LockOptions],
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T | None]]]: ...


def locked_task(
    client: aio.Client | Callable[[], aio.Client],
    name: Name,
    *,
    skip: bool = False,
    suspension_grace: float | None = None,
    **options: Unpack[_lock.LockOptions],
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T | None]]]:
    """Has each call of a coroutine function hold a lock, as the body of `client.lock` does: it is cancelled, and LostError raised, as
    soon as the lock is lost. The arguments are those of `sidekeeper.locked`."""
    check_options(_lock.LockOptions, {**options, "lease": None}, suspension_grace=suspension_grace)
    chosen: _lock.LockOptions = {"wait": 0, **options} if skip else options

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | None]]:
        _refuse(function, not inspect.iscoroutinefunction(function), "use sidekeeper.locked")

        @functools.wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            this = client() if callable(client) else client
            with results() as done:
                async with AsyncExitStack() as stack:
                    held = this.lock(named(name, args, kwargs), suspension_grace=suspension_grace, **chosen)
                    try:
                        lock = await stack.enter_async_context(held)
                    except TAKEN:
                        if skip:
                            return None
                        raise
                    stack.enter_context(_kept(_current_of_task, lock))
                    result = await function(*args, **kwargs)
                    done.append(result)
                    return result
            raise AssertionError  # the lock's end hides no error

        return call

    return decorate


def done_once(
    client: _sync.Client | Callable[[], _sync.Client], name: Name, key: Name, **options: Unpack[_sync.OnceOptions]
) -> Callable[[Callable[P, T]], Callable[P, T | None]]:
    """Has a function do its work once for a key, as the body of `client.attempt` does.

    client: the client, or a function that returns it, which is called with each call.
    name: the name of the work, or a function that makes it of the arguments of the call.
    key: what is done once, such as the number of an order, or a function that makes it of the arguments of the call.

    A call whose work was done before does nothing and returns None. A call that raises has failed, and the next call with the key runs the
    function again. A call that returns a coroutine or a generator has failed, too, with TypeError: its work has not run. A thread cannot be
    interrupted: a long function asks `current_attempt` whether its lock still stands.
    """
    check_options(_once.OnceOptions, {**options, "lease": None})

    def decorate(function: Callable[P, T]) -> Callable[P, T | None]:
        _refuse(function, inspect.iscoroutinefunction(function), "use sidekeeper.aio.done_once")

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            this = client() if callable(client) else client
            with ExitStack() as stack:
                try:
                    stack.enter_context(attempting(this.attempt(named(name, args, kwargs), named(key, args, kwargs), **options)))
                except AlreadyDoneError:
                    return None
                return _once.ran(function(*args, **kwargs))
            raise AssertionError  # the attempt's end hides no error

        return call

    return decorate


def done_once_task(
    client: aio.Client | Callable[[], aio.Client], name: Name, key: Name, **options: Unpack[_once.OnceOptions]
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T | None]]]:
    """Has a coroutine function do its work once for a key, as the body of `client.attempt` does: it is cancelled, and LostError raised, as
    soon as its lock is lost. The arguments are those of `sidekeeper.done_once`."""
    check_options(_once.OnceOptions, {**options, "lease": None})

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | None]]:
        _refuse(function, not inspect.iscoroutinefunction(function), "use sidekeeper.done_once")

        @functools.wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            this = client() if callable(client) else client
            async with AsyncExitStack() as stack:
                begun = this.attempt(named(name, args, kwargs), named(key, args, kwargs), **options)
                try:
                    attempt = await stack.enter_async_context(begun)
                except AlreadyDoneError:
                    return None
                stack.enter_context(_kept(_current_attempt_of_task, attempt))
                return await function(*args, **kwargs)
            raise AssertionError  # the attempt's end hides no error

        return call

    return decorate


def _refuse(function: Callable[..., object], other: bool, instead: str) -> None:
    """Raises TypeError for a function whose body runs after its call has returned, and so without the lock."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function} is a generator, which runs after its call: hold the lock in its body")
    if other:
        raise TypeError(f"{function} cannot be called so: {instead}")


def named(name: Name, args: tuple[object, ...], kwargs: dict[str, Any]) -> str:
    """The name of the lock of a call, or the name or the key of its work."""
    return name(*args, **kwargs) if callable(name) else name


@contextmanager
def holding(held: AbstractContextManager[_sync.Lock]) -> Iterator[None]:
    """Holds a lock as the current one."""
    with held as lock, _kept(_current, lock):
        yield


@contextmanager
def attempting(begun: AbstractContextManager[_sync.Attempt]) -> Iterator[None]:
    """Does work as the current attempt."""
    with begun as attempt, _kept(_current_attempt, attempt):
        yield


@contextmanager
def _kept(variable: ContextVar[L], value: L) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)
