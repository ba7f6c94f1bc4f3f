"""Databases for tests: PostgreSQL and MariaDB as Debian has them, on Unix sockets, and SQLite."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from sidekeeper import fence

from conftest import PATIENT

Connect = Callable[[], Any]


@dataclass
class Database:
    """A database of its own. Its connections wait a tenth of a second for what another transaction has locked; MariaDB's, a second."""

    dialect: fence.Dialect
    connect: Connect
    refusals: tuple[type[Exception], ...]
    """What its driver raises when it has waited in vain, or a snapshot is too old."""
    place: str
    """The driver's placeholder."""


def _program(name: str) -> str:
    places = [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), "/usr/sbin", os.environ["PATH"]]
    found = shutil.which(name, path=os.pathsep.join(places))
    assert found is not None, f"there is no {name}: see tools/need"
    return found


@contextmanager
def _served(command: Sequence[str], folder: Path, connect: Connect, refusals: type[Exception]) -> Iterator[None]:
    """Runs a server until the body is over, which begins when it answers."""
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(command, user=USER, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENT
        while True:
            try:
                connect().close()
                break
            except refusals:
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.02)
        yield
    finally:
        server.terminate()
        server.wait(PATIENT)


USER = "nobody" if os.getuid() == 0 else None
"""Whom servers run as that do not run as root."""


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sk", dir="/tmp"))  # short, since the path of a Unix socket is
    try:
        if USER is not None:
            shutil.chown(folder, USER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgresql() -> Iterator[Database]:
    with _folder() as folder:
        initialize = [_program("initdb"), "--pgdata", str(folder / "data"), "--username=test", "--auth=trust", "--no-sync", "--locale=C"]
        subprocess.run(initialize, user=USER, check=True, stdout=subprocess.DEVNULL)

        def connect() -> psycopg.Connection[Any]:
            options = "-c lock_timeout=100"
            return psycopg.connect(host=str(folder), user="test", dbname="postgres", options=options)

        command = [_program("postgres"), "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses="]
        with _served(command, folder, connect, psycopg.OperationalError):
            refusals = (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure)
            yield Database(fence.POSTGRESQL, connect, refusals, "%s")


@contextmanager
def mariadb() -> Iterator[Database]:
    with _folder() as folder:
        data = folder / "data"
        initialize = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}"]
        initialize += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(initialize, user=USER, check=True, stdout=subprocess.DEVNULL, cwd=folder)

        def connect() -> pymysql.Connection[Any]:
            return pymysql.connect(unix_socket=str(folder / "s.sock"), user="root", database="mysql")

        command = [_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={folder / 's.sock'}"]
        command += ["--skip-networking", f"--pid-file={folder / 'pid'}", "--innodb-lock-wait-timeout=1", "--innodb-buffer-pool-size=8M"]
        with _served(command, folder, connect, pymysql.err.OperationalError):
            yield Database(fence.MYSQL, connect, (pymysql.err.OperationalError,), "%s")


@contextmanager
def sqlite() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        yield Database(fence.SQLITE, lambda: sqlite3.connect(f"{folder}/db", timeout=0.1), (sqlite3.OperationalError,), "?")
