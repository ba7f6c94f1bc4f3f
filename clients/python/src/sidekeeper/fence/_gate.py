"""Gates: which calls pass."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from sidekeeper._guard import Ticket, Verification
from sidekeeper.fence._header import HEADER, parse
from sidekeeper.fence._refusal import Reason, RefusedError, not_held, stale, undecided

_logger = logging.getLogger("sidekeeper")


class Store(Protocol):
    """Remembers the largest fencing token of each lock. All instances of a service that guard the same thing share one, and it outlives
    them: what it forgets lets a late call pass."""

    def raise_to(self, lock: str, token: int) -> int:
        """Makes token the mark of the lock if it is larger, and returns the mark: token itself, or a larger one. When it returns the mark
        is as durable as the store makes it. Of two calls at once, one sees the mark of the other."""
        ...


class _Gate:
    def __init__(self, store: Store, locks: Iterable[str], without_ticket: Callable[[str], bool] | None) -> None:
        self._store = store
        self._locks = tuple(locks)
        self._without_ticket = without_ticket

    def _tickets(self, call: str, values: Iterable[str]) -> tuple[Ticket, ...]:
        tickets = parse(values)
        missing = self._missing(tickets)
        if missing is not None and not (self._without_ticket is not None and self._without_ticket(call)):
            raise missing
        return tickets

    def _missing(self, tickets: tuple[Ticket, ...]) -> RefusedError | None:
        if not self._locks and not tickets:
            return RefusedError(Reason.MISSING, f"{HEADER}: no ticket")
        there = {ticket.lock for ticket in tickets}
        lock = next((lock for lock in self._locks if lock not in there), None)
        return None if lock is None else RefusedError(Reason.MISSING, f"{HEADER}: no ticket of lock {lock}")

    def _raise(self, ticket: Ticket) -> None:
        largest = self._store.raise_to(ticket.lock, ticket.fencing_token)
        if largest > ticket.fencing_token:
            raise stale(ticket, largest)


def _judge(ticket: Ticket, verification: Verification) -> None:
    if not verification.held:
        raise not_held(ticket, verification.current_token)


def _undecided(call: str) -> RefusedError:
    _logger.exception("a call cannot be fenced: %s", call)
    return undecided()


class Gate(_Gate):
    """Lets those calls pass whose tickets are not stale.

    `locks` are those of which each call must have a ticket. It should name what guards the service: else a ticket of any lock will do.
    `without_ticket` says which calls pass without the tickets, by gRPC's method, as in /shop.v1.Orders/List, or by HTTP's method and path,
    as in `GET /orders`; the tickets that such a call has must still not be stale. `verify` is `Client.verify`: asks the sidecar whether the
    ticket's hold lasts, before the gate believes its token. Without it, any caller can keep all others out with an invented token. It
    costs each call a request to the ensemble.
    """

    def __init__(
        self,
        store: Store,
        *,
        locks: Iterable[str] = (),
        without_ticket: Callable[[str], bool] | None = None,
        verify: Callable[[Ticket], Verification] | None = None,
    ) -> None:
        super().__init__(store, locks, without_ticket)
        self._verify = verify

    def admit(self, call: str, values: Iterable[str]) -> tuple[Ticket, ...]:
        """Lets a call pass, which raises the marks of its tickets, or raises RefusedError. Interceptors and middleware call it with the
        values of HEADER. A ticket may become stale right afterwards: a service whose effects come late compares the token there again."""
        tickets = self._tickets(call, values)
        try:
            if self._verify is not None:  # before any mark is raised: marks are for holders alone
                for ticket in tickets:
                    _judge(ticket, self._verify(ticket))
            for ticket in tickets:
                self._raise(ticket)
        except RefusedError:
            raise
        except Exception as error:
            raise _undecided(call) from error
        return tickets


class AioGate(_Gate):
    """Does what Gate does for asyncio. `verify` is that of `aio.Client`; the store's methods run on other threads."""

    def __init__(
        self,
        store: Store,
        *,
        locks: Iterable[str] = (),
        without_ticket: Callable[[str], bool] | None = None,
        verify: Callable[[Ticket], Awaitable[Verification]] | None = None,
    ) -> None:
        super().__init__(store, locks, without_ticket)
        self._verify = verify

    async def admit(self, call: str, values: Iterable[str]) -> tuple[Ticket, ...]:
        """See Gate.admit."""
        tickets = self._tickets(call, values)
        try:
            if self._verify is not None:
                for ticket in tickets:
                    _judge(ticket, await self._verify(ticket))
            for ticket in tickets:
                await asyncio.to_thread(self._raise, ticket)
        except RefusedError:
            raise
        except Exception as error:
            raise _undecided(call) from error
        return tickets
