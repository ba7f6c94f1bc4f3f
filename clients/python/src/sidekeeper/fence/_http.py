"""HTTP: what a request carries, and middleware for WSGI and ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from sidekeeper._guard import tickets
from sidekeeper.fence._gate import AioGate, Gate
from sidekeeper.fence._header import HEADER, render
from sidekeeper.fence._refusal import RefusedError

_Scope = MutableMapping[str, Any]
_Send = Callable[[_Scope], Awaitable[None]]
_Receive = Callable[[], Awaitable[_Scope]]
_ASGI = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
_WSGI = Callable[[dict[str, Any], Any], Iterable[bytes]]


def headers() -> dict[str, str]:
    """The tickets of the locks that are held here, for a request of whatever library; nothing, if none is. See `sidekeeper.tickets`."""
    carried = tickets()
    return {HEADER: render(carried)} if carried else {}


class WSGIMiddleware:
    """Refuses requests that do not pass the gate, with the reason as text, and has app answer the others, with their tickets as
    `sidekeeper.tickets` in the environment."""

    def __init__(self, app: _WSGI, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        call = f"{environ['REQUEST_METHOD']} {environ.get('SCRIPT_NAME', '')}{environ.get('PATH_INFO', '')}"
        try:
            admitted = self._gate.admit(call, [environ.get("HTTP_SIDEKEEPER_FENCE", "")])
        except RefusedError as refusal:
            start_response(refusal.http_status, [("content-type", "text/plain; charset=utf-8")])
            return [f"{refusal}\n".encode()]
        return self._app({**environ, "sidekeeper.tickets": admitted}, start_response)


class ASGIMiddleware:
    """Refuses requests that do not pass the gate, with the reason as text, and web sockets, with the code 1008; it has app answer the
    others, with their tickets as `sidekeeper.tickets` in the scope."""

    def __init__(self, app: _ASGI, gate: AioGate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        values = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == HEADER.encode()]
        try:
            admitted = await self._gate.admit(f"{scope.get('method', 'GET')} {scope['path']}", values)
        except RefusedError as refusal:
            await _refuse(scope, send, refusal)
            return
        await self._app({**scope, "sidekeeper.tickets": admitted}, receive, send)


async def _refuse(scope: _Scope, send: _Send, refusal: RefusedError) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)})
        return
    status = int(refusal.http_status.split()[0])
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
    await send({"type": "http.response.body", "body": f"{refusal}\n".encode()})
