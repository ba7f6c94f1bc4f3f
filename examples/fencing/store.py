"""Invoices in SQLite, guarded by a fencing token."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


class StaleTokenError(Exception):
    """The writer's lock was granted to somebody else since, who has written already."""


class Store:
    """The invoices of one file. It takes what a writer says for true only if nobody with a larger token has written before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(self._connect()) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS fence (lock TEXT PRIMARY KEY, token INTEGER NOT NULL)")
            database.execute("CREATE TABLE IF NOT EXISTS invoice (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)

    def write(self, lock: str, token: int, number: int, text: str) -> None:
        """Writes an invoice in the name of a lock. Raises StaleTokenError, and writes nothing, if a larger token has been seen."""
        with closing(self._connect()) as database, database:
            # One statement looks at the token and raises it: there is no moment between the two.
            guarded = database.execute(
                "INSERT INTO fence VALUES (?, ?) ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE token <= excluded.token",
                (lock, token),
            )
            if guarded.rowcount == 0:
                raise StaleTokenError(f"token {token} of {lock} is stale: a later holder has written")
            database.execute("INSERT INTO invoice VALUES (?, ?)", (number, text))

    def invoices(self) -> list[tuple[int, str]]:
        """All invoices, in the order of their numbers."""
        with closing(self._connect()) as database:
            return list(database.execute("SELECT number, text FROM invoice ORDER BY number"))
