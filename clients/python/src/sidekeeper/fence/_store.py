"""Marks in a file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sidekeeper._guard import Ticket
from sidekeeper.fence._header import parse_ticket
from sidekeeper.fence._refusal import RefusedError


class FileStore:
    """Keeps marks in a file, which all processes and threads of one machine can share: each `raise_to` has a lock on the file of that name
    with `.lock` behind it, and replaces the file as a whole, when it is safe on the disk. It is for disks of the machine, not of a network.
    Do not delete the file: without it late calls pass."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def raise_to(self, lock: str, token: int) -> int:
        """See Store."""
        with self._locked():
            marks = self._read()
            if marks.get(lock, 0) >= token:
                return marks[lock]
            self._replace({**marks, lock: token})
            return token

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(f"{self._path}.lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _read(self) -> dict[str, int]:
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {mark.lock: mark.fencing_token for mark in map(self._mark, lines)}

    def _mark(self, line: str) -> Ticket:
        try:
            return parse_ticket(line)
        except RefusedError:
            raise ValueError(f"marks: {self._path}: {line!r} is not lock=token") from None

    def _replace(self, marks: dict[str, int]) -> None:
        fresh = f"{self._path}.new"
        with open(fresh, "w") as file:
            file.writelines(f"{lock}={token}\n" for lock, token in marks.items())
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
