"""Calls with tickets, and the gates that refuse stale ones."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import grpc
import pytest
import yaml

import sidekeeper
from sidekeeper import aio, fence

from conftest import ROOT, Sidecar

TABLE: dict[str, Any] = yaml.safe_load((ROOT / "clients/conformance/fence.yaml").read_text())


def _written(tickets: tuple[sidekeeper.Ticket, ...]) -> list[str]:
    return [fence.render([ticket]) for ticket in tickets]


@pytest.mark.parametrize("of", TABLE["headers"], ids=lambda of: repr(of["values"]))
def test_tickets_are_read_as_in_each_language(of: dict[str, Any]) -> None:
    if "malformed" in of:
        with pytest.raises(fence.RefusedError) as caught:
            fence.parse(of["values"])
        assert (str(caught.value), caught.value.reason) == (of["malformed"], fence.Reason.MALFORMED)
    else:
        assert _written(fence.parse(of["values"])) == of["tickets"]


@pytest.mark.parametrize("of", TABLE["written"], ids=lambda of: of["value"])
def test_tickets_are_written_as_in_each_language(of: dict[str, Any]) -> None:
    assert fence.render(fence.parse(of["tickets"])) == of["value"]


def _memory_database(folder: Path) -> fence.SQLStore:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(folder / "marks", timeout=30)

    with closing(connect()) as database:
        database.execute(fence.SQLITE.create)
    return fence.SQLStore(connect, fence.SQLITE)


def _file(folder: Path) -> fence.FileStore:
    return fence.FileStore(folder / "marks")


class _Held:
    """What a gate asks: it knows which token each lock is held with, until it falls silent."""

    def __init__(self, held: dict[str, int]) -> None:
        self._held = held
        self.silent = False

    def __call__(self, ticket: sidekeeper.Ticket) -> sidekeeper.Verification:
        if self.silent:
            raise OSError("away")
        current = self._held.get(ticket.lock, 0)
        return sidekeeper.Verification(held=current == ticket.fencing_token, current_token=current)

    async def later(self, ticket: sidekeeper.Ticket) -> sidekeeper.Verification:
        return self(ticket)


@pytest.mark.parametrize("kind", [fence.Gate, fence.AioGate])
@pytest.mark.parametrize("store", [_file, _memory_database])
@pytest.mark.parametrize("of", TABLE["gates"], ids=lambda of: of["name"])
async def test_gates_let_pass_what_they_do_in_each_language(
    of: dict[str, Any], store: Callable[[Path], fence.Store], kind: type[fence.Gate] | type[fence.AioGate], tmp_path: Path
) -> None:
    held = _Held(of.get("held", {}))
    without = (lambda _: True) if of.get("without") else None
    locks = of.get("locks", ())

    def gate() -> fence.Gate | fence.AioGate:
        if kind is fence.Gate:
            return fence.Gate(store(tmp_path), locks=locks, without_ticket=without, verify=held if "held" in of else None)
        return fence.AioGate(store(tmp_path), locks=locks, without_ticket=without, verify=held.later if "held" in of else None)

    async def outcome(header: str) -> tuple[str | None, str]:
        try:
            answer = guarded.admit("/shop.v1.Orders/Put", [header])
            if not isinstance(answer, tuple):
                await answer
        except fence.RefusedError as refusal:
            return refusal.reason.value, str(refusal)
        return None, ""

    guarded = gate()
    for step in of["steps"]:
        match step.get("do"):
            case "restart":
                guarded = gate()
            case "fail":
                (tmp_path / "marks").write_bytes(b"orders")
            case "silence":
                held.silent = True
            case None:
                reason, said = await outcome(step["of"])
                assert reason == step.get("refused"), said
                assert said == step.get("says", said)


def test_of_raises_at_once_no_smaller_one_passes_after_a_larger_one(tmp_path: Path) -> None:
    passed = 0
    lock = threading.Lock()

    def raise_to(token: int) -> None:
        nonlocal passed
        with lock:
            before = passed
        largest = fence.FileStore(tmp_path / "marks").raise_to("orders", token)
        assert largest >= max(before, token)
        with lock:
            passed = max(passed, largest)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(raise_to, range(1, 41)))
    assert (tmp_path / "marks").read_text() == "orders=40\n"


def test_tickets_are_those_of_who_excludes_others(threaded: sidekeeper.Client) -> None:
    assert sidekeeper.tickets() == ()
    assert fence.headers() == {}
    with threaded.lock("orders") as orders, threaded.lock("table", mode=sidekeeper.Mode.READ):
        with threaded.lock("stock", mode=sidekeeper.Mode.WRITE) as stock, orders.guard():
            assert sidekeeper.tickets() == (orders.ticket(), stock.ticket())
        with sidekeeper.unguarded():
            assert sidekeeper.tickets() == ()
        with sidekeeper.Ticket("other", 7).guard():
            assert fence.headers() == {"sidekeeper-fence": f"orders={orders.fencing_token}, other=7"}


KINDS = ["unary_unary", "unary_stream", "stream_unary", "stream_stream"]
STALE = "lock orders: fencing token 5 is stale, since 7 has been seen: the lock was granted to another holder"


def _carried(context: Any) -> bytes:
    return fence.render(fence.tickets_of(context)).encode()


def _handlers() -> grpc.GenericRpcHandler:
    def one(_: Any, context: Any) -> bytes:
        return _carried(context)

    def several(_: Any, context: Any) -> Iterator[bytes]:
        yield _carried(context)

    return grpc.method_handlers_generic_handler(
        "shop",
        {kind: getattr(grpc, f"{kind}_rpc_method_handler")(several if kind.endswith("stream") else one) for kind in KINDS},
    )


def _aio_handlers() -> grpc.GenericRpcHandler:
    async def one(_: Any, context: Any) -> bytes:
        return _carried(context)

    async def several(_: Any, context: Any) -> AsyncIterator[bytes]:
        yield _carried(context)

    return grpc.method_handlers_generic_handler(
        "shop",
        {kind: getattr(grpc, f"{kind}_rpc_method_handler")(several if kind.endswith("stream") else one) for kind in KINDS},
    )


def _without_ticket(call: str) -> bool:
    return call == "/shop/unary_unary"


def test_calls_of_all_kinds_carry_tickets_and_are_refused(tmp_path: Path) -> None:
    gate = fence.Gate(_file(tmp_path), without_ticket=_without_ticket)
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=[_handlers()], interceptors=[fence.ServerInterceptor(gate)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as plain:
            channel = grpc.intercept_channel(plain, fence.ClientInterceptor())

            def told(kind: str, *tickets: sidekeeper.Ticket) -> str:
                call = getattr(channel, kind)(f"/shop/{kind}")
                with ExitStack() as guards:
                    for ticket in tickets:
                        guards.enter_context(ticket.guard())
                    try:
                        reply = call(iter([b""]) if kind.startswith("stream") else b"", timeout=10)
                        return str((next(reply) if kind.endswith("stream") else reply).decode())
                    except grpc.RpcError as error:
                        return f"{error.code().name} {error.details()}"

            for kind in KINDS:
                assert told(kind, sidekeeper.Ticket("orders", 7), sidekeeper.Ticket("stock", 3)) == "orders=7, stock=3"
                assert told(kind, sidekeeper.Ticket("orders", 5)) == f"FAILED_PRECONDITION {STALE}"
                assert told(kind, sidekeeper.Ticket("or ders", 5)) == "INVALID_ARGUMENT sidekeeper-fence: not lock=token"
            assert [told(kind) for kind in KINDS] == ["", *["FAILED_PRECONDITION sidekeeper-fence: no ticket"] * 3]
        server.stop(None).wait()


async def test_calls_of_asyncio_carry_tickets_and_are_refused(tmp_path: Path) -> None:
    gate = fence.AioGate(_file(tmp_path), without_ticket=_without_ticket)
    server = grpc.aio.server(handlers=[_aio_handlers()], interceptors=[fence.AioServerInterceptor(gate)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", interceptors=fence.aio_client_interceptors()) as channel:

        async def told(kind: str, *tickets: sidekeeper.Ticket, refused: bool = False) -> str:
            ended = asyncio.Event()

            async def request() -> AsyncIterator[bytes]:
                if refused:  # grpcio may tell of a write to a call that has ended, in place of how it has ended: grpc/grpc#36066
                    await ended.wait()
                else:
                    yield b""

            call = getattr(channel, kind)(f"/shop/{kind}")
            with ExitStack() as guards:
                for ticket in tickets:
                    guards.enter_context(ticket.guard())
                try:
                    reply = call(request() if kind.startswith("stream") else b"", timeout=10)
                    return str((await anext(aiter(reply)) if kind.endswith("stream") else await reply).decode())
                except grpc.aio.AioRpcError as error:
                    return f"{error.code().name} {error.details()}"
                finally:
                    ended.set()

        for kind in KINDS:
            assert await told(kind, sidekeeper.Ticket("orders", 7), sidekeeper.Ticket("stock", 3)) == "orders=7, stock=3"
            assert await told(kind, sidekeeper.Ticket("orders", 5), refused=True) == f"FAILED_PRECONDITION {STALE}"
        assert await told(KINDS[0]) == ""
        for kind in KINDS[1:]:
            assert await told(kind, refused=True) == "FAILED_PRECONDITION sidekeeper-fence: no ticket"
    await server.stop(None)


REQUESTS = [
    ("PUT", "orders=7", "200 orders=7"),
    ("PUT", "orders=5", f"412 {STALE}\n"),
    ("PUT", "orders", "400 sidekeeper-fence: not lock=token\n"),
    ("PUT", None, "428 sidekeeper-fence: no ticket\n"),
    ("GET", None, "200 "),
]


def _reads(call: str) -> bool:
    return call == "GET /shop/orders"


def test_requests_of_wsgi_are_refused(tmp_path: Path) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [fence.render(environ["sidekeeper.tickets"]).encode()]

    guarded = fence.WSGIMiddleware(app, fence.Gate(_file(tmp_path), without_ticket=_reads))
    for method, header, wanted in REQUESTS:
        environ: dict[str, Any] = {"REQUEST_METHOD": method, "SCRIPT_NAME": "/shop", "PATH_INFO": "/orders", "wsgi.input": io.BytesIO()}
        setup_testing_defaults(environ)
        if header is not None:
            environ["HTTP_SIDEKEEPER_FENCE"] = header
        statuses: list[str] = []
        body = b"".join(guarded(environ, lambda status, _, seen=statuses: seen.append(status)))
        assert statuses[0][:4] + body.decode() == wanted


async def test_requests_and_web_sockets_of_asgi_are_refused(tmp_path: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": fence.render(scope.get("sidekeeper.tickets", ())).encode()})

    async def answer(scope: dict[str, Any]) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("nothing is read of it")

        await guarded(scope, receive, send)
        return sent

    guarded = fence.ASGIMiddleware(app, fence.AioGate(_file(tmp_path), without_ticket=_reads))
    for method, header, wanted in REQUESTS:
        headers = [] if header is None else [(b"sidekeeper-fence", header.encode())]
        start, body = await answer({"type": "http", "method": method, "path": "/shop/orders", "headers": headers})
        assert f"{start['status']} {body['body'].decode()}" == wanted
    assert await answer({"type": "websocket", "path": "/", "headers": [(b"sidekeeper-fence", b"orders=5")]}) == [
        {"type": "websocket.close", "code": 1008, "reason": STALE}
    ]
    assert len(await answer({"type": "lifespan"})) == 2


async def test_what_is_held_is_asked_of_the_sidecar(client: aio.Client, sidecar: Sidecar, tmp_path: Path) -> None:
    gate = fence.AioGate(_file(tmp_path), locks=["orders"], verify=client.verify)
    async with client.lock("orders") as lock:
        held = [fence.render(sidekeeper.tickets())]
        assert await gate.admit("PUT /", held) == (lock.ticket(),)
        with pytest.raises(fence.RefusedError, match="is not held with fencing token 9223372036854775807, but with"):
            await gate.admit("PUT /", ["orders=9223372036854775807"])
        assert await gate.admit("PUT /", held) == (lock.ticket(),)
    with pytest.raises(fence.RefusedError, match="nor with any other"):
        await gate.admit("PUT /", held)
    sidecar.end()
    with pytest.raises(fence.RefusedError) as caught:
        async with asyncio.timeout(30):
            await gate.admit("PUT /", held)
    assert caught.value.reason is fence.Reason.UNDECIDED
