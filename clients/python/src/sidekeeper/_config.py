"""The configuration."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, ItemsView, Iterator, KeysView, Mapping, ValuesView
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sidekeeper import _clock, _fork, _transport
from sidekeeper._errors import SidekeeperError
from sidekeeper._guard import guards
from sidekeeper._options import Rule, check, check_by
from sidekeeper._types import ConfigChange, ConfigEvent, ConfigEventKind, Entry
from sidekeeper.config.v1 import config_pb2, config_pb2_grpc


@dataclass(frozen=True)
class Precondition:
    """A condition on a key; from if_version, if_missing or if_exists."""

    _wire: config_pb2.Precondition


_PRECONDITION = Rule(
    "what if_version, if_missing or if_exists has returned, or None", lambda value: isinstance(value, Precondition), None, True
)
_CONTENT = Rule("bytes or a str", lambda value: isinstance(value, bytes | str))


def if_version(version: int) -> Precondition:
    """The key must have this version."""
    check(version=version)
    return Precondition(config_pb2.Precondition(version=version))


def if_missing() -> Precondition:
    """The key must not exist."""
    return Precondition(config_pb2.Precondition(must_not_exist=True))


def if_exists() -> Precondition:
    """The key must exist."""
    return Precondition(config_pb2.Precondition(must_exist=True))


def _wire(precondition: Precondition | None) -> config_pb2.Precondition | None:
    check_by(_PRECONDITION, "precondition", precondition)
    return None if precondition is None else precondition._wire


def _put(key: str, value: bytes | str, precondition: Precondition | None) -> config_pb2.PutRequest:
    check(key=key)
    check_by(_CONTENT, "value", value)
    content = value.encode() if isinstance(value, str) else value
    return config_pb2.PutRequest(key=key, value=content, precondition=_wire(precondition))


class Commit:
    """A transaction: at most 100 operations, each on a different key, of which all or none are applied."""

    def __init__(self) -> None:
        self._operations: list[config_pb2.Operation] = []

    def put(self, key: str, value: bytes | str, precondition: Precondition | None = None) -> None:
        """Adds a write."""
        self._operations.append(config_pb2.Operation(put=_put(key, value, precondition)))

    def delete(self, key: str, precondition: Precondition | None = None) -> None:
        """Adds a deletion."""
        check(key=key)
        request = config_pb2.DeleteRequest(key=key, precondition=_wire(precondition))
        self._operations.append(config_pb2.Operation(delete=request))

    def check(self, key: str, precondition: Precondition) -> None:
        """Adds a condition on a key that is not written."""
        check(key=key)
        request = config_pb2.CheckRequest(key=key, precondition=_wire(precondition))
        self._operations.append(config_pb2.Operation(check=request))


class Config:
    """The configuration. Values are at most 1,000,000 bytes; text is written as UTF-8.

    What is written in the body of `Client.lock` is written only while the lock is held (see `Lock.guard`); otherwise it is GuardLostError.
    """

    def __init__(self, channel: _transport.Channel, client: object) -> None:
        self._client = client
        self._stub: Any = config_pb2_grpc.ConfigServiceStub(channel)

    async def get(self, key: str, *, linearizable: bool = False) -> Entry:
        """Reads a key as the sidecar last saw it; with linearizable, the result reflects every write that completed before
        this call. Raises KeyNotFoundError."""
        check(key=key, linearizable=linearizable)
        consistency = config_pb2.CONSISTENCY_LINEARIZABLE if linearizable else config_pb2.CONSISTENCY_UNSPECIFIED
        reply = await _transport.call_idempotent(self._stub.Get, config_pb2.GetRequest(key=key, consistency=consistency))
        return Entry._of(reply.entry)

    async def put(self, key: str, value: bytes | str, precondition: Precondition | None = None) -> Entry:
        """Writes a key and returns the entry without its value. Raises PreconditionFailedError; after OutcomeUnknownError it may have
        been written, or may be written later."""
        request = _put(key, value, precondition)
        request.guards.extend(guards(self._client))
        reply = await _transport.call_non_idempotent(self._stub.Put, request)
        return Entry(key, version=reply.version, revision=reply.revision)

    async def delete(self, key: str, precondition: Precondition | None = None) -> None:
        """Deletes a key. Raises KeyNotFoundError, PreconditionFailedError, KeyHasChildrenError."""
        check(key=key)
        request = config_pb2.DeleteRequest(key=key, precondition=_wire(precondition), guards=guards(self._client))
        await _transport.call_non_idempotent(self._stub.Delete, request)

    async def list(self, prefix: str = "") -> AsyncGenerator[Entry]:
        """All keys with their values, in the order of keys, or those at and below a prefix of whole segments."""
        check(prefix=prefix)
        async for entry in _transport.pages(self._stub.List, config_pb2.ListRequest(prefix=prefix), "entries"):
            yield Entry._of(entry)

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        """Applies a Commit and returns an entry without its value for each operation; only those of puts are filled in.

        If a precondition failed, nothing was applied, and the metadata of PreconditionFailedError contain the `operation`, counted from 0,
        the `key`, and its `version` if it is there.
        """
        request = config_pb2.CommitRequest(operations=commit._operations, guards=guards(self._client))
        reply = await _transport.call_non_idempotent(self._stub.Commit, request)
        return tuple(
            Entry(operation.put.key, version=result.version, revision=result.revision)
            for operation, result in zip(commit._operations, reply.results, strict=True)
        )

    def watch(self, *keys: str) -> AsyncIterator[ConfigEvent]:
        """Yields the state of some keys, then each change, also across restarts of the sidecar."""
        for key in keys:
            check(key=key)
        return _events(self._stub, config_pb2.WatchRequest(keys=keys))

    def watch_prefix(self, prefix: str = "") -> AsyncIterator[ConfigEvent]:
        """Yields the state of all keys at and below a prefix of whole segments, then each change, also across restarts of the
        sidecar."""
        check(prefix=prefix)
        return _events(self._stub, config_pb2.WatchRequest(prefix=prefix))

    @asynccontextmanager
    async def view(self, prefix: str = "") -> AsyncIterator[ConfigView]:
        """Keeps a copy of all keys at and below a prefix up to date while the body of `async with` runs. It is complete when the body
        begins."""
        view = ConfigView()
        keeping = asyncio.create_task(view._keep(self.watch_prefix(prefix)), name=f"sidekeeper: view {prefix}")
        try:
            complete = asyncio.create_task(view._complete.wait())
            await asyncio.wait({keeping, complete}, return_when=asyncio.FIRST_COMPLETED)
            complete.cancel()
            if keeping.done():
                await keeping
            yield view
        finally:
            if _fork.here() == view._home:
                keeping.cancel()
                with suppress(asyncio.CancelledError, SidekeeperError):
                    await keeping


async def _events(stub: Any, request: config_pb2.WatchRequest) -> AsyncGenerator[ConfigEvent]:
    state: list[ConfigChange] = []
    stale = False
    async for message in _transport.reopened(stub.Watch, request):
        if isinstance(message, _transport.Away):
            state = []
            if not stale:
                yield ConfigEvent(ConfigEventKind.STALE, age=message.silent)
            stale = True
            continue
        match message.WhichOneof("event"):
            case "entries":
                state.extend(ConfigChange(Entry._of(entry)) for entry in message.entries.entries)
            case "synced":
                yield ConfigEvent(ConfigEventKind.STATE, tuple(state))
                state, stale = [], False
            case "changes":
                yield ConfigEvent(ConfigEventKind.CHANGED, tuple(map(_change, message.changes.changes)))
            case "stale":
                stale = True
                yield ConfigEvent(ConfigEventKind.STALE)
            case "fresh":
                stale = False
                yield ConfigEvent(ConfigEventKind.FRESH)


def _change(wire: config_pb2.Change) -> ConfigChange:
    if wire.WhichOneof("change") == "deleted":
        return ConfigChange(Entry(wire.deleted.key), deleted=True)
    return ConfigChange(Entry._of(wire.put.entry), coalesced=wire.put.coalesced, recreated=wire.put.recreated)


class ConfigView(Mapping[str, Entry]):
    """A copy of part of the configuration that follows its changes and knows how old it may be.

    Any thread may look. `keys()`, `values()`, `items()` and an iteration each show one moment's state, which later changes leave alone.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}  # replaced, never changed
        self._complete = asyncio.Event()
        self._stale_since: float | None = None
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._home = _fork.here()

    def __getitem__(self, key: str) -> Entry:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> KeysView[str]:
        return self._entries.keys()

    def values(self) -> ValuesView[Entry]:
        return self._entries.values()

    def items(self) -> ItemsView[str, Entry]:
        return self._entries.items()

    def age(self) -> float:
        """For how many seconds contact with the ensemble or the sidecar has been lost; 0 while the copy is up to date. A silent sidecar is
        noticed after 15 seconds, and the age counts from when it was last heard. In a forked child it is infinite."""
        if _fork.here() != self._home:
            return math.inf
        return 0.0 if self._stale_since is None else _clock.now() - self._stale_since

    async def wait_changed(self) -> None:
        """Returns when something has changed since the last call. Raises SidekeeperError if the copy is no longer updated."""
        _fork.refuse_if_forked(self._home)
        if self._error is None:
            await self._changed.wait()
        self._changed.clear()
        if self._error is not None:
            raise self._error

    async def _keep(self, events: AsyncIterator[ConfigEvent]) -> None:
        try:
            async for event in events:
                self._take(event)
        except SidekeeperError as error:
            self._error = error
            self._stale_since = self._stale_since or _clock.before()
            self._changed.set()
            raise

    def _take(self, event: ConfigEvent) -> None:
        if event.kind is ConfigEventKind.STALE:
            self._stale_since = _clock.before() - event.age
            return
        entries = {} if event.kind is ConfigEventKind.STATE else dict(self._entries)
        for change in event.changes:
            if change.deleted:
                entries.pop(change.entry.key, None)
            else:
                entries[change.entry.key] = change.entry
        self._entries = entries
        self._complete.set()
        if event.kind is not ConfigEventKind.CHANGED:
            self._stale_since = None
        if event.kind is not ConfigEventKind.FRESH:
            self._changed.set()
