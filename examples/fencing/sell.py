"""Sells apples: holds a lock, looks how many there are, works for a while, and says how many are left.

    python sell.py http://127.0.0.1:8080/fenced/apples 5 --work 1

Exits with 0 when it has sold them, and with 3 when the service has refused it.
"""

from __future__ import annotations

import argparse
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import sidekeeper
from sidekeeper import fence

LOCK = "apples"


def sell(client: sidekeeper.Client, shop: str, number: int, work: float) -> None:
    with client.lock(LOCK) as lock:
        with urlopen(shop) as reply:
            left = int(reply.read()) - number
        lock.check()  # the lock is ours now...
        print(f"holding with token {lock.fencing_token}", flush=True)
        time.sleep(work)  # ...and may not be any more: this program can be suspended, or swapped out, at any moment
        with urlopen(Request(shop, str(left).encode(), fence.headers(), method="PUT")):
            print(f"{left} are left")


def main() -> int:
    parser = argparse.ArgumentParser(description="Sells apples.")
    parser.add_argument("shop")
    parser.add_argument("number", type=int)
    parser.add_argument("--work", type=float, default=0, metavar="SECONDS", help="how long to work on it")
    arguments = parser.parse_args()
    try:
        with sidekeeper.Client() as client:
            sell(client, arguments.shop, arguments.number, arguments.work)
    except HTTPError as refused:
        print(f"refused: {refused.read().decode().strip()}", file=sys.stderr)
        return 3
    except sidekeeper.LostError:
        pass  # noticed when it had sold them
    return 0


if __name__ == "__main__":
    sys.exit(main())
