import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateRequest(_message.Message):
    __slots__ = ("name", "limit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AcquireRequest(_message.Message):
    __slots__ = ("name", "permits", "lease_id", "wait_timeout", "owner", "metadata", "keepalive", "numbered", "quarantine")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    NUMBERED_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    name: str
    permits: int
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    numbered: bool
    quarantine: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., permits: _Optional[int] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., numbered: bool = ..., quarantine: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("queued", "granted", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: _hold_pb2.Queued
    granted: Granted
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[_hold_pb2.Queued, _Mapping]] = ..., granted: _Optional[_Union[Granted, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Granted(_message.Message):
    __slots__ = ("hold_id", "token", "number")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    token: int
    number: int
    def __init__(self, hold_id: _Optional[str] = ..., token: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("hold_ids",)
    HOLD_IDS_FIELD_NUMBER: _ClassVar[int]
    hold_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hold_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("holds",)
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[CheckedHold]
    def __init__(self, holds: _Optional[_Iterable[_Union[CheckedHold, _Mapping]]] = ...) -> None: ...

class CheckedHold(_message.Message):
    __slots__ = ("hold_id", "valid_for", "token", "reason")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    valid_for: _duration_pb2.Duration
    token: int
    reason: str
    def __init__(self, hold_id: _Optional[str] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., token: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("hold_id",)
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    def __init__(self, hold_id: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResizeRequest(_message.Message):
    __slots__ = ("name", "limit", "reason", "grace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ResizeResponse(_message.Message):
    __slots__ = ("asked",)
    ASKED_FIELD_NUMBER: _ClassVar[int]
    asked: int
    def __init__(self, asked: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: View
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("name", "limit", "held", "holders", "waiters", "waiters_omitted", "quarantines")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    QUARANTINES_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    held: int
    holders: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Contender]
    waiters: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Contender]
    waiters_omitted: int
    quarantines: _containers.RepeatedCompositeFieldContainer[Quarantine]
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., held: _Optional[int] = ..., holders: _Optional[_Iterable[_Union[_hold_pb2.Contender, _Mapping]]] = ..., waiters: _Optional[_Iterable[_Union[_hold_pb2.Contender, _Mapping]]] = ..., waiters_omitted: _Optional[int] = ..., quarantines: _Optional[_Iterable[_Union[Quarantine, _Mapping]]] = ...) -> None: ...

class Quarantine(_message.Message):
    __slots__ = ("number", "until")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    number: int
    until: _timestamp_pb2.Timestamp
    def __init__(self, number: _Optional[int] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("prefix", "page_size", "page_token")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    page_size: int
    page_token: str
    def __init__(self, prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("semaphores", "next_page_token")
    SEMAPHORES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    semaphores: _containers.RepeatedCompositeFieldContainer[Semaphore]
    next_page_token: str
    def __init__(self, semaphores: _Optional[_Iterable[_Union[Semaphore, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Semaphore(_message.Message):
    __slots__ = ("name", "limit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("name", "keepalive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("view", "stale", "keepalive")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    view: View
    stale: bool
    keepalive: _hold_pb2.Keepalive
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., stale: bool = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...
