"""A TCP proxy that cuts what goes through it, as real ones do."""

from __future__ import annotations

import asyncio
from typing import Self

PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
HEADERS, RST_STREAM = 1, 3
INTERNAL_ERROR, CANCEL = 2, 8


class Connection:
    """One connection of a client, and the one to the sidecar that is for it."""

    def __init__(self, client: asyncio.StreamWriter, sidecar: asyncio.StreamWriter) -> None:
        self.client, self.sidecar = client, sidecar
        self.newest = 0
        """The HTTP/2 stream that the client has begun last."""
        self._unread = b""
        self._skip = PREFACE

    def note(self, sent: bytes) -> None:
        """Notes which streams the client begins."""
        self._unread += sent
        if self._skip:
            if len(self._unread) < self._skip:
                return
            self._unread, self._skip = self._unread[self._skip :], 0
        while len(self._unread) >= 9 and len(self._unread) >= (size := 9 + int.from_bytes(self._unread[:3])):
            if self._unread[3] == HEADERS:
                self.newest = max(self.newest, int.from_bytes(self._unread[5:9]))
            self._unread = self._unread[size:]

    def reset(self) -> None:
        """Ends the newest stream without a reason, as a proxy does that gives it up."""
        for writer, why in ((self.client, INTERNAL_ERROR), (self.sidecar, CANCEL)):
            writer.write(bytes((0, 0, 4, RST_STREAM, 0)) + self.newest.to_bytes(4) + why.to_bytes(4))

    def close(self) -> None:
        self.client.close()
        self.sidecar.close()


class Proxy:
    """Listens on a port, and passes all on to a Unix socket."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.address = ""
        self.connections: list[Connection] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.close_connections()

    def close_connections(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def reset_streams(self) -> None:
        for connection in self.connections:
            connection.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, sidecar = await asyncio.open_unix_connection(self._socket)
        connection = Connection(writer, sidecar)
        self.connections.append(connection)
        await asyncio.gather(self._pass(reader, sidecar, connection), self._pass(replies, writer, None), return_exceptions=True)
        connection.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection | None) -> None:
        while sent := await reader.read(1 << 16):
            writer.write(sent)
            if connection is not None:
                connection.note(sent)
            await writer.drain()
        writer.close()
