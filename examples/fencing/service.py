"""A service that counts apples twice: behind a gate, and for those who trust their lock.

    python service.py /tmp/marks 8080

GET and PUT of /fenced/apples and /naive/apples.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from sidekeeper import fence

LOCK = "apples"


class Apples:
    """How many there are."""

    def __init__(self) -> None:
        self._number = b"10"

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PUT":
            self._number = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        start_response("200 OK", [("content-type", "text/plain")])
        return [self._number]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def is_read(call: str) -> bool:
    return call.startswith("GET ")


def main() -> None:
    marks, port = sys.argv[1:]
    gate = fence.Gate(fence.FileStore(marks), locks=[LOCK], without_ticket=is_read)
    shops = {"/fenced/apples": fence.WSGIMiddleware(Apples(), gate), "/naive/apples": Apples()}
    with make_server(
        "127.0.0.1", int(port), lambda environ, start: shops[environ["PATH_INFO"]](environ, start), handler_class=Quiet
    ) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
