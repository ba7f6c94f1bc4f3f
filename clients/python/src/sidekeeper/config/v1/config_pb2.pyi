import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Consistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSISTENCY_UNSPECIFIED: _ClassVar[Consistency]
    CONSISTENCY_LOCAL: _ClassVar[Consistency]
    CONSISTENCY_LINEARIZABLE: _ClassVar[Consistency]
CONSISTENCY_UNSPECIFIED: Consistency
CONSISTENCY_LOCAL: Consistency
CONSISTENCY_LINEARIZABLE: Consistency

class Entry(_message.Message):
    __slots__ = ("key", "value", "text", "version", "revision", "created_revision")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATED_REVISION_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    text: str
    version: int
    revision: int
    created_revision: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ..., text: _Optional[str] = ..., version: _Optional[int] = ..., revision: _Optional[int] = ..., created_revision: _Optional[int] = ...) -> None: ...

class Precondition(_message.Message):
    __slots__ = ("version", "must_not_exist", "must_exist")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    version: int
    must_not_exist: bool
    must_exist: bool
    def __init__(self, version: _Optional[int] = ..., must_not_exist: bool = ..., must_exist: bool = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("key", "consistency", "as_text")
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    AS_TEXT_FIELD_NUMBER: _ClassVar[int]
    key: str
    consistency: Consistency
    as_text: bool
    def __init__(self, key: _Optional[str] = ..., consistency: _Optional[_Union[Consistency, str]] = ..., as_text: bool = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("key", "value", "text", "precondition", "guards")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    text: str
    precondition: Precondition
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ..., text: _Optional[str] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class PutResponse(_message.Message):
    __slots__ = ("version", "revision")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    version: int
    revision: int
    def __init__(self, version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("key", "precondition", "recursive", "guards")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    key: str
    precondition: Precondition
    recursive: bool
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, key: _Optional[str] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ..., recursive: bool = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: int
    def __init__(self, deleted: _Optional[int] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("prefix", "page_size", "page_token", "as_text")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_TEXT_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    page_size: int
    page_token: str
    as_text: bool
    def __init__(self, prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., as_text: bool = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("operations", "guards")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("put", "delete", "check")
    PUT_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    put: PutRequest
    delete: DeleteRequest
    check: CheckRequest
    def __init__(self, put: _Optional[_Union[PutRequest, _Mapping]] = ..., delete: _Optional[_Union[DeleteRequest, _Mapping]] = ..., check: _Optional[_Union[CheckRequest, _Mapping]] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("key", "precondition")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    key: str
    precondition: Precondition
    def __init__(self, key: _Optional[str] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ...) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("version", "revision")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    version: int
    revision: int
    def __init__(self, version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("keys", "prefix", "as_text", "keepalive")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    AS_TEXT_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    prefix: str
    as_text: bool
    keepalive: _duration_pb2.Duration
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., prefix: _Optional[str] = ..., as_text: bool = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("entries", "synced", "changes", "stale", "fresh", "keepalive")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    entries: Entries
    synced: Synced
    changes: Changes
    stale: _hold_pb2.Stale
    fresh: Fresh
    keepalive: _hold_pb2.Keepalive
    def __init__(self, entries: _Optional[_Union[Entries, _Mapping]] = ..., synced: _Optional[_Union[Synced, _Mapping]] = ..., changes: _Optional[_Union[Changes, _Mapping]] = ..., stale: _Optional[_Union[_hold_pb2.Stale, _Mapping]] = ..., fresh: _Optional[_Union[Fresh, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Entries(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    def __init__(self, entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ...) -> None: ...

class Synced(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Changes(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("put", "deleted")
    PUT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    put: Written
    deleted: Deleted
    def __init__(self, put: _Optional[_Union[Written, _Mapping]] = ..., deleted: _Optional[_Union[Deleted, _Mapping]] = ...) -> None: ...

class Written(_message.Message):
    __slots__ = ("entry", "coalesced", "recreated")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    COALESCED_FIELD_NUMBER: _ClassVar[int]
    RECREATED_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    coalesced: bool
    recreated: bool
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ..., coalesced: bool = ..., recreated: bool = ...) -> None: ...

class Deleted(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class Fresh(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
