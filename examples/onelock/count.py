"""Counts in a file, under a lock that others share: through Sidekeeper, with a program that uses Curator on the same path.

python count.py LOCK FILE TIMES
"""

from __future__ import annotations

import sys
from pathlib import Path

import sidekeeper


def count_one(file: Path) -> None:
    """Fails if anybody else is at it."""
    busy = Path(f"{file}.busy")
    busy.touch(exist_ok=False)
    number = int(file.read_text())
    file.write_text(f"{number + 1}\n")
    busy.unlink()


def main() -> None:
    lock, file, times = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    with sidekeeper.Client() as client:  # where SIDEKEEPER_ADDRESS says
        for _ in range(times):
            with client.lock(lock, owner="count.py") as held:
                held.check()
                count_one(file)
    print(f"Python counted {times}")


if __name__ == "__main__":
    main()
