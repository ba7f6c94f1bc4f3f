import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutRequest(_message.Message):
    __slots__ = ("name", "value", "priority", "delay", "max_items")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    priority: int
    delay: _duration_pb2.Duration
    max_items: int
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ..., priority: _Optional[int] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_items: _Optional[int] = ...) -> None: ...

class PutResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeRequest(_message.Message):
    __slots__ = ("name", "lease_id", "wait_timeout", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TakeResponse(_message.Message):
    __slots__ = ("queued", "delivered", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: _hold_pb2.Queued
    delivered: Delivered
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[_hold_pb2.Queued, _Mapping]] = ..., delivered: _Optional[_Union[Delivered, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Delivered(_message.Message):
    __slots__ = ("hold_id", "fencing_token", "values", "deliveries")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    fencing_token: int
    values: _containers.RepeatedScalarFieldContainer[bytes]
    deliveries: int
    def __init__(self, hold_id: _Optional[str] = ..., fencing_token: _Optional[int] = ..., values: _Optional[_Iterable[bytes]] = ..., deliveries: _Optional[int] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("hold_ids",)
    HOLD_IDS_FIELD_NUMBER: _ClassVar[int]
    hold_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hold_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("deliveries",)
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[CheckedDelivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[CheckedDelivery, _Mapping]]] = ...) -> None: ...

class CheckedDelivery(_message.Message):
    __slots__ = ("hold_id", "valid_for", "fencing_token", "reason")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    valid_for: _duration_pb2.Duration
    fencing_token: int
    reason: str
    def __init__(self, hold_id: _Optional[str] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., fencing_token: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class DoneRequest(_message.Message):
    __slots__ = ("hold_id",)
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    def __init__(self, hold_id: _Optional[str] = ...) -> None: ...

class DoneResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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
    __slots__ = ("queues", "next_page_token")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    next_page_token: str
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "items", "taken", "delayed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    name: str
    items: int
    taken: int
    delayed: int
    def __init__(self, name: _Optional[str] = ..., items: _Optional[int] = ..., taken: _Optional[int] = ..., delayed: _Optional[int] = ...) -> None: ...
