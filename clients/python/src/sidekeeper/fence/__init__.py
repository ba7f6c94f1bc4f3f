"""Keeps late writes out of what a lock protects.

A program that was frozen while it held a lock goes on where it stood, and writes after the next holder. Nothing that it does itself
prevents that. So the holder of a lock sends its tickets along. What is written to refuses a ticket that is older than one that it has
seen.

The caller's half sends the tickets of the locks that are held around a call, as in the body of `client.lock`: `ClientInterceptor` for gRPC,
`aio_client_interceptors` for its asyncio, `headers` for HTTP. The other half is a `Gate`, or an `AioGate`, in the service that guards
something: `ServerInterceptor`, `AioServerInterceptor`, `WSGIMiddleware` and `ASGIMiddleware` refuse stale calls, by a mark in a `Store`
that survives restarts. Where the effect is a transaction in a database, `enter` compares the token in that transaction, which is better:
a gate looks when a call arrives, and the effect comes later.

What is said of headers, answers and marks here is the same for the clients of all languages.
"""

from sidekeeper.fence._gate import AioGate, Gate, Store
from sidekeeper.fence._grpc import AioServerInterceptor, ClientInterceptor, ServerInterceptor, aio_client_interceptors, tickets_of
from sidekeeper.fence._header import HEADER, parse, render
from sidekeeper.fence._http import ASGIMiddleware, WSGIMiddleware, headers
from sidekeeper.fence._refusal import Reason, RefusedError
from sidekeeper.fence._sql import MYSQL, POSTGRESQL, SQLITE, Dialect, SQLStore, enter
from sidekeeper.fence._store import FileStore

__all__ = [
    "HEADER",
    "MYSQL",
    "POSTGRESQL",
    "SQLITE",
    "ASGIMiddleware",
    "AioGate",
    "AioServerInterceptor",
    "ClientInterceptor",
    "Dialect",
    "FileStore",
    "Gate",
    "Reason",
    "RefusedError",
    "SQLStore",
    "ServerInterceptor",
    "Store",
    "WSGIMiddleware",
    "aio_client_interceptors",
    "enter",
    "headers",
    "parse",
    "render",
    "tickets_of",
]
