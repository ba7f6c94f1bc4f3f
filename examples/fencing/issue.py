"""Issues an invoice: holds a lock, takes a number, works for a while, and writes into a store that refuses stale tokens.

    python issue.py invoices.db billing-1 --work 1

Exits with 0 when it has written, with 3 when the store has refused it, and with 70 when it has noticed by itself that the lock was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path

import sidekeeper

from store import StaleTokenError, Store

LOCK = "invoices"


def issue(client: sidekeeper.Client, store: Store, writer: str, work: float) -> None:
    numbers = client.sequence("invoices")
    with contextlib.suppress(sidekeeper.SequenceExistsError, sidekeeper.OutcomeUnknownError):
        numbers.create(1)  # unless somebody has; whether it is there, next tells
    with client.lock(LOCK, owner=writer) as lock:
        number = numbers.next()
        lock.check()  # the lock is ours now...
        print(f"holding with token {lock.fencing_token}", flush=True)
        time.sleep(work)  # ...and may not be any more: this program can be suspended, or swapped out, at any moment
        store.write(LOCK, lock.fencing_token, number, f"by {writer}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Issues an invoice.")
    parser.add_argument("database", type=Path)
    parser.add_argument("writer")
    parser.add_argument("--work", type=float, default=0, metavar="SECONDS", help="how long to work on it")
    arguments = parser.parse_args()
    store = Store(arguments.database)
    try:
        with sidekeeper.Client() as client:
            issue(client, store, arguments.writer, arguments.work)
    except StaleTokenError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 3
    except sidekeeper.LostError as error:
        print(error, file=sys.stderr)
        return 70
    print("written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
