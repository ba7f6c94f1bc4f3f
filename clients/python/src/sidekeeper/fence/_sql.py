"""Marks in a database, and the comparison in the transaction that writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from sidekeeper._guard import Ticket
from sidekeeper.fence._refusal import stale


class _Connection(Protocol):
    def cursor(self) -> Any: ...

    def commit(self) -> Any: ...

    def close(self) -> Any: ...


@dataclass(frozen=True)
class Dialect:
    """What a database is told, with the placeholders of its usual driver."""

    create: str
    """Makes the table with the marks, unless it is there."""
    raise_to: str
    """Makes a token the mark of a lock if it is larger. In a transaction it keeps the mark from others until the end of that."""
    read: str | None = None
    """Reads the mark behind that, unless that has returned it."""


POSTGRESQL = Dialect(
    create="CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
    raise_to="INSERT INTO fence VALUES (%s, %s) "
    "ON CONFLICT (lock_name) DO UPDATE SET token = GREATEST(fence.token, excluded.token) RETURNING token",
)
"""PostgreSQL, with psycopg."""

MYSQL = Dialect(
    create="CREATE TABLE IF NOT EXISTS fence "
    "(lock_name VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB",
    raise_to="INSERT INTO fence VALUES (%s, %s) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
    # A plain SELECT would read the transaction's snapshot, which may be older than the mark.
    read="SELECT token FROM fence WHERE lock_name = %s FOR UPDATE",
)
"""MariaDB and MySQL, with PyMySQL or mysqlclient."""

SQLITE = Dialect(
    create="CREATE TABLE IF NOT EXISTS fence (lock_name VARCHAR(200) PRIMARY KEY, token BIGINT NOT NULL)",
    raise_to="INSERT INTO fence VALUES (?, ?) ON CONFLICT (lock_name) DO UPDATE SET token = MAX(token, excluded.token) RETURNING token",
)
"""SQLite 3.35 or newer, with sqlite3."""


def enter(connection: _Connection, dialect: Dialect, ticket: Ticket) -> None:
    """Compares a ticket in the transaction that writes: call it before the writes. Raises RefusedError if a larger token has been seen;
    roll back then. Until the transaction ends, one with another ticket of the lock waits."""
    largest = _raise(connection, dialect, ticket.lock, ticket.fencing_token)
    if largest > ticket.fencing_token:
        raise stale(ticket, largest)


def _raise(connection: _Connection, dialect: Dialect, lock: str, token: int) -> int:
    with closing(connection.cursor()) as cursor:
        cursor.execute(dialect.raise_to, (lock, token))
        if dialect.read is not None:
            cursor.execute(dialect.read, (lock,))
        row: Sequence[int] = cursor.fetchone()
        return row[0]


class SQLStore:
    """Keeps marks in the table `fence` of a database, for all instances of a service. `connect` gives a connection that is closed
    afterwards, as that of a pool is. Create the table with `dialect.create`."""

    def __init__(self, connect: Callable[[], _Connection], dialect: Dialect) -> None:
        self._connect = connect
        self._dialect = dialect

    def raise_to(self, lock: str, token: int) -> int:
        """See Store."""
        with closing(self._connect()) as connection:
            largest = _raise(connection, self._dialect, lock, token)
            connection.commit()
            return largest
