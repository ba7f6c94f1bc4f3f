"""Fencing tokens that are compared in the transaction that writes, on the databases themselves."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

import sidekeeper
from sidekeeper import fence

from conftest import Sidecar
from databases import Database, mariadb, postgresql, sqlite


@pytest.fixture(scope="module", params=[postgresql, mariadb, sqlite], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[Database]:
    with request.param() as started:
        yield started


@pytest.fixture
def database(server: Database) -> Database:
    with closing(server.connect()) as connection:
        _run(connection, "DROP TABLE IF EXISTS fence")
        _run(connection, "DROP TABLE IF EXISTS stock")
        _run(connection, server.dialect.create)
        _run(connection, server.dialect.create)  # again, it does nothing
        _run(connection, "CREATE TABLE stock (what VARCHAR(20) PRIMARY KEY, number INTEGER NOT NULL)")
        _run(connection, "INSERT INTO stock VALUES ('apples', 10)")
        connection.commit()
    return server


def _run(connection: Any, statement: str, *values: object) -> list[Any]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if statement.startswith("SELECT") else []


def _orders(token: int) -> sidekeeper.Ticket:
    return sidekeeper.Ticket("orders", token)


def _write(database: Database, number: int, ticket: sidekeeper.Ticket | None) -> None:
    """Writes what has been computed; without a ticket, as programs do that trust their lock."""
    with closing(database.connect()) as connection:
        if ticket is not None:
            fence.enter(connection, database.dialect, ticket)
        _run(connection, f"UPDATE stock SET number = {database.place}", number)
        connection.commit()


def _number(database: Database) -> int:
    with closing(database.connect()) as connection:
        return int(_run(connection, "SELECT number FROM stock")[0][0])


@pytest.mark.parametrize("fenced", [True, False])
def test_the_late_write_of_a_holder_that_was_frozen_is_refused_and_damages_without_a_fence(
    database: Database, sidecar: Sidecar, fenced: bool
) -> None:
    """A holder that goes on after another one has been granted its lock is what a frozen one looks like to the database."""
    with sidekeeper.Client(sidecar.address) as first, sidekeeper.Client(sidecar.address) as second:
        frozen = first.acquire("orders")
        computed = _number(database) - 1
        sidecar.expire("orders")
        with second.lock("orders") as lock:
            _write(database, _number(database) - 5, lock.ticket() if fenced else None)
        if fenced:
            with pytest.raises(fence.RefusedError, match="is stale, since") as caught:
                _write(database, computed, frozen.ticket())
            assert (caught.value.reason, caught.value.largest) == (fence.Reason.STALE, lock.fencing_token)
            assert _number(database) == 5
        else:
            _write(database, computed, None)
            assert _number(database) == 9, "five apples have been sold twice"


def test_a_holder_writes_as_often_as_it_likes(database: Database) -> None:
    for token in (5, 5, 2**63 - 2, 2**63 - 1, 2**63 - 1):
        _write(database, 1, _orders(token))
    with pytest.raises(fence.RefusedError):
        _write(database, 2, _orders(2**63 - 2))
    assert _number(database) == 1


def test_locks_whose_names_differ_in_case_alone_have_marks_of_their_own(database: Database) -> None:
    _write(database, 1, sidekeeper.Ticket("Orders/EU", 7))
    _write(database, 1, sidekeeper.Ticket("orders/eu", 5))
    with pytest.raises(fence.RefusedError):
        _write(database, 1, sidekeeper.Ticket("Orders/EU", 6))


@pytest.mark.parametrize(("begun", "later"), [(5, 7), (7, 5)])
def test_a_transaction_waits_for_one_of_another_holder(database: Database, begun: int, later: int) -> None:
    with closing(database.connect()) as connection:
        fence.enter(connection, database.dialect, _orders(begun))
        with pytest.raises(database.refusals):
            _write(database, 1, _orders(later))
        connection.commit()
    if later > begun:
        _write(database, 1, _orders(later))
        return
    with pytest.raises(fence.RefusedError):
        _write(database, 1, _orders(later))


def test_what_is_rolled_back_leaves_no_mark(database: Database) -> None:
    with closing(database.connect()) as connection:
        fence.enter(connection, database.dialect, _orders(7))
        connection.rollback()
    _write(database, 1, _orders(5))


def test_a_snapshot_that_is_older_than_the_mark_lets_no_late_write_pass(database: Database) -> None:
    _write(database, 3, _orders(3))
    with closing(database.connect()) as connection:
        if database.dialect is fence.POSTGRESQL:
            _run(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if database.dialect is fence.SQLITE:
            _run(connection, "BEGIN")
        assert _run(connection, "SELECT number FROM stock") == [(3,)]
        if database.dialect is fence.SQLITE:  # whose readers keep writers out
            with pytest.raises(database.refusals):
                _write(database, 7, _orders(7))
            return
        _write(database, 7, _orders(7))
        with pytest.raises((fence.RefusedError, *database.refusals)):
            fence.enter(connection, database.dialect, _orders(5))
            connection.commit()
        connection.rollback()
    assert _number(database) == 7


def test_of_raises_at_once_no_smaller_one_passes_after_a_larger_one(database: Database) -> None:
    store = fence.SQLStore(database.connect, database.dialect)
    passed, lock = 0, threading.Lock()

    def raise_to(token: int) -> None:
        nonlocal passed
        with lock:
            before = passed
        try:
            largest = store.raise_to("orders", token)
        except database.refusals:
            return  # it has waited in vain, and a gate would refuse the call
        assert largest >= max(before, token)
        with lock:
            passed = max(passed, largest)

    tokens = list(range(1, 101))
    random.Random(7).shuffle(tokens)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(raise_to, tokens))
    assert store.raise_to("orders", 1) == passed
