"""What docs/fencing.md shows runs."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request
from wsgiref.util import setup_testing_defaults

import grpc
import pytest

import sidekeeper
from sidekeeper import fence

from conftest import ROOT
from databases import postgresql

SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/fencing.md").read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == 2


def test_the_transaction_writes_unless_it_is_late() -> None:
    with postgresql() as database:
        with closing(database.connect()) as connection:
            connection.execute(fence.POSTGRESQL.create)
            connection.execute("CREATE TABLE stock (number INTEGER NOT NULL)")
            connection.execute("INSERT INTO stock VALUES (10)")
            connection.commit()

        def write_and_set_back() -> int:
            driver = SimpleNamespace(connect=lambda _: database.connect())
            exec(SNIPPETS[0], {"psycopg": driver, "database": "", "sidekeeper": sidekeeper, "fence": fence})
            with closing(database.connect()) as connection:
                found = connection.execute("UPDATE stock SET number = 10 RETURNING (SELECT number FROM stock)").fetchone()
                connection.commit()
                return int(found[0])

        with sidekeeper.Ticket("orders", 7).guard():
            assert write_and_set_back() == 4
        with sidekeeper.Ticket("orders", 5).guard(), pytest.raises(fence.RefusedError):
            write_and_set_back()
        with closing(database.connect()) as connection:
            assert connection.execute("SELECT number FROM stock").fetchone() == (10,)


def test_the_service_refuses_what_is_late(tmp_path: Path) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return []

    def urlopen(request: Request) -> None:
        environ: dict[str, Any] = {"HTTP_SIDEKEEPER_FENCE": request.headers["Sidekeeper-fence"]}
        setup_testing_defaults(environ)
        names["app"](environ, lambda status, _: statuses.append(status))

    statuses: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        names: dict[str, Any] = {"app": app, "urlopen": urlopen, "pool": pool, "address": "127.0.0.1:1", "content": b"4"}
        names |= {"fence": fence, "grpc": grpc, "Request": Request, "url": "http://127.0.0.1:1/orders"}
        for token in (7, 5):
            with sidekeeper.Ticket("orders", token).guard():
                exec(SNIPPETS[1].replace("/var/lib/shop", str(tmp_path)), names | {"app": app}, names)
                names["channel"].close()
    assert statuses == ["200 OK", "412 Precondition Failed"]
