"""The header that has the tickets of a call: `orders=61, stock/eu=7`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sidekeeper._guard import Ticket
from sidekeeper.fence._refusal import Reason, RefusedError

HEADER = "sidekeeper-fence"
"""Has the tickets of a call, in gRPC's metadata and in HTTP."""

_MOST_TICKETS = 16  # as many as a write has guards
_LARGEST_TOKEN = 2**63 - 1
_TICKET = re.compile(r"([A-Za-z0-9._/-]{1,200})=([1-9][0-9]{0,18})")


def render(tickets: Iterable[Ticket]) -> str:
    """Writes tickets as a header has them."""
    return ", ".join(f"{ticket.lock}={ticket.fencing_token}" for ticket in tickets)


def parse(values: Iterable[str]) -> tuple[Ticket, ...]:
    """Reads the tickets of all headers of a call. Raises RefusedError."""
    tokens: dict[str, int] = {}
    for element in (element.strip(" \t") for value in values for element in value.split(",")):
        if element:
            ticket = parse_ticket(element)
            if tokens.setdefault(ticket.lock, ticket.fencing_token) != ticket.fencing_token:
                raise _malformed(f"two tokens of lock {ticket.lock}")
            if len(tokens) > _MOST_TICKETS:
                raise _malformed(f"more than {_MOST_TICKETS} tickets")
    return tuple(Ticket(lock, token) for lock, token in tokens.items())


def parse_ticket(element: str) -> Ticket:
    parts = _TICKET.fullmatch(element)
    if parts is None or int(parts[2]) > _LARGEST_TOKEN:
        raise _malformed("not lock=token")
    return Ticket(parts[1], int(parts[2]))


def _malformed(why: str) -> RefusedError:
    return RefusedError(Reason.MALFORMED, f"{HEADER}: {why}")
