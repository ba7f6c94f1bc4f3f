"""Guards: holds that must last for a write to be carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sidekeeper.hold.v1 import hold_pb2


@dataclass(frozen=True)
class Ticket:
    """Names a hold for others, who guard with it what they write for its holder. It is no secret, and good until the lock is released or
    lost."""

    lock: str
    """The lock's name."""
    fencing_token: int
    """The hold's fencing token, larger than 0."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guards with the ticket what is written in the body of `with`, through any client; see `Lock.guard`."""
        wire = hold_pb2.Guard(ticket=hold_pb2.Ticket(lock=self.lock, fencing_token=self.fencing_token))
        with entered(Guard(wire, tickets=(self,))):
            yield


@dataclass(frozen=True)
class Verification:
    """How it stood with a ticket's hold at some moment of the call."""

    held: bool
    """Whether the lock was held with the ticket's fencing token."""
    current_token: int
    """The fencing token that the lock was held with: of several holders, the first one's; 0 if the lock had no holder."""


@dataclass(frozen=True)
class CurrentToken:
    """What a lock is held with."""

    lock: str
    """The lock's name."""
    fencing_token: int
    """That of the first holder; 0 if the lock has no holder."""
    stale: bool
    """Whether the token may be out of date, as the sidecar has lost contact with the ensemble."""


@dataclass(frozen=True, eq=False)
class Guard:
    """A guard, for what one client writes."""

    wire: hold_pb2.Guard
    client: object = None
    """What that client's objects have in common; None for every client."""
    tickets: tuple[Ticket, ...] = ()
    """Those of the hold that exclude all others."""


def of_hold(hold_id: str, client: object, *tickets: Ticket) -> Guard:
    return Guard(hold_pb2.Guard(hold_id=hold_id), client, tickets)


_guards: ContextVar[tuple[Guard, ...]] = ContextVar("sidekeeper guards", default=())


def enter(guard: Guard) -> None:
    """Guards what is written from here on, in this thread or task and the tasks that it begins."""
    _guards.set((*_guards.get(), guard))


def leave(guard: Guard) -> None:
    """Ends what `enter` began. It does nothing in a context that does not have the guard, where a generator may be closed."""
    _guards.set(tuple(other for other in _guards.get() if other is not guard))


@contextmanager
def entered(guard: Guard) -> Iterator[None]:
    enter(guard)
    try:
        yield
    finally:
        leave(guard)


@contextmanager
def unguarded() -> Iterator[None]:
    """Has the body of `with` write without guards, although a lock is held around it."""
    before = _guards.get()
    _guards.set(())
    try:
        yield
    finally:
        _guards.set(before)


def tickets() -> tuple[Ticket, ...]:
    """The tickets of the holds that guard what is written here, outermost first: what `sidekeeper.fence` sends along to whatever else the
    locks protect. Locks that are held in mode READ have none here, since readers do not exclude each other."""
    return tuple(dict.fromkeys(ticket for guard in _guards.get() for ticket in guard.tickets))


def guards(client: object) -> list[hold_pb2.Guard]:
    """The guards of what the client writes here."""
    return [guard.wire for guard in _guards.get() if guard.client is None or guard.client is client]
