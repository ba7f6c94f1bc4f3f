"""gRPC: interceptors, with threads and with asyncio."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import grpc
import grpc.aio

from sidekeeper._guard import Ticket, tickets
from sidekeeper.fence._gate import AioGate, Gate
from sidekeeper.fence._header import HEADER, parse, render
from sidekeeper.fence._refusal import RefusedError


def tickets_of(context: Any) -> tuple[Ticket, ...]:
    """The tickets of the call that a handler answers, which its gate has let pass. `ticket.guard()` guards with one what the handler writes
    through a client, and has it go along with further calls."""
    return parse(_values(context.invocation_metadata()))


def _values(metadata: Iterable[Any] | None) -> list[str]:
    return [value for name, value in metadata or () if name == HEADER]


class _Details(
    namedtuple("_Details", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")), grpc.ClientCallDetails
):
    pass


def _carrying(details: Any) -> Any:
    carried = tickets()
    if not carried:
        return details
    metadata = [*(details.metadata or ()), (HEADER, render(carried))]
    compression = getattr(details, "compression", None)
    return _Details(details.method, details.timeout, metadata, details.credentials, details.wait_for_ready, compression)


class ClientInterceptor(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Sends along the tickets of the locks that are held around a call, for `grpc.intercept_channel`. See `sidekeeper.tickets`."""

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(_carrying(client_call_details), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(_carrying(client_call_details), request)

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return continuation(_carrying(client_call_details), request_iterator)

    def intercept_stream_stream(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return continuation(_carrying(client_call_details), request_iterator)


def _aio_carrying(details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
    carried = tickets()
    if not carried:
        return details
    metadata = grpc.aio.Metadata(*(details.metadata or ()))
    metadata.add(HEADER, render(carried))
    return grpc.aio.ClientCallDetails(details.method, details.timeout, metadata, details.credentials, details.wait_for_ready)


class _AioUnaryUnary(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(_aio_carrying(client_call_details), request)


class _AioUnaryStream(grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(_aio_carrying(client_call_details), request)


class _AioStreamUnary(grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await continuation(_aio_carrying(client_call_details), request_iterator)


class _AioStreamStream(grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await continuation(_aio_carrying(client_call_details), request_iterator)


def aio_client_interceptors() -> list[Any]:
    """Do what ClientInterceptor does, for the `interceptors` of a channel of `grpc.aio`."""
    return [_AioUnaryUnary(), _AioUnaryStream(), _AioStreamUnary(), _AioStreamStream()]


_KINDS: dict[tuple[bool, bool], tuple[str, Callable[..., Any]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class ServerInterceptor(grpc.ServerInterceptor):
    """Refuses calls that do not pass the gate; streams when they begin: what they carry later is not looked at."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        kind, make = _KINDS[handler.request_streaming, handler.response_streaming]
        behavior = getattr(handler, kind)

        def admitted(request: Any, context: grpc.ServicerContext) -> Any:
            self._admit(handler_call_details, context)
            return behavior(request, context)

        return make(admitted, handler.request_deserializer, handler.response_serializer)

    def _admit(self, details: Any, context: grpc.ServicerContext) -> None:
        try:
            self._gate.admit(details.method, _values(details.invocation_metadata))
        except RefusedError as refusal:
            context.abort(refusal.code, str(refusal))


class AioServerInterceptor(grpc.aio.ServerInterceptor):
    """Does what ServerInterceptor does, for a server of `grpc.aio`."""

    def __init__(self, gate: AioGate) -> None:
        self._gate = gate

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        try:
            await self._gate.admit(handler_call_details.method, _values(handler_call_details.invocation_metadata))
        except RefusedError as refused:
            refusal = refused  # which the handler has when this clause is over
        else:
            return await continuation(handler_call_details)

        async def abort(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
            await context.abort(refusal.code, str(refusal))
            raise refusal

        return grpc.stream_stream_rpc_method_handler(abort)  # ends a call of whatever kind
