import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DefineRequest(_message.Message):
    __slots__ = ("set", "items", "count", "drop")
    SET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    set: str
    items: _containers.RepeatedScalarFieldContainer[str]
    count: int
    drop: bool
    def __init__(self, set: _Optional[str] = ..., items: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ..., drop: bool = ...) -> None: ...

class DefineResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("set", "member", "capacity", "lease_id", "wait_timeout", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SET_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    set: str
    member: str
    capacity: int
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, set: _Optional[str] = ..., member: _Optional[str] = ..., capacity: _Optional[int] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("joined", "assigned", "suspended", "resumed", "keepalive")
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    joined: Joined
    assigned: Assigned
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    keepalive: _hold_pb2.Keepalive
    def __init__(self, joined: _Optional[_Union[Joined, _Mapping]] = ..., assigned: _Optional[_Union[Assigned, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Joined(_message.Message):
    __slots__ = ("incarnation",)
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    def __init__(self, incarnation: _Optional[int] = ...) -> None: ...

class Assigned(_message.Message):
    __slots__ = ("epoch", "items", "members", "total", "unassigned")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNASSIGNED_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    items: _containers.RepeatedScalarFieldContainer[str]
    members: int
    total: int
    unassigned: int
    def __init__(self, epoch: _Optional[int] = ..., items: _Optional[_Iterable[str]] = ..., members: _Optional[int] = ..., total: _Optional[int] = ..., unassigned: _Optional[int] = ...) -> None: ...

class SetCapacityRequest(_message.Message):
    __slots__ = ("set", "member", "capacity")
    SET_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    set: str
    member: str
    capacity: int
    def __init__(self, set: _Optional[str] = ..., member: _Optional[str] = ..., capacity: _Optional[int] = ...) -> None: ...

class SetCapacityResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("set", "holders")
    SET_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    set: str
    holders: bool
    def __init__(self, set: _Optional[str] = ..., holders: bool = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: View
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("set", "epoch", "age", "members", "items", "members_omitted", "short_for")
    SET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    SHORT_FOR_FIELD_NUMBER: _ClassVar[int]
    set: str
    epoch: int
    age: _duration_pb2.Duration
    members: _containers.RepeatedCompositeFieldContainer[Member]
    items: _containers.RepeatedCompositeFieldContainer[Item]
    members_omitted: int
    short_for: _duration_pb2.Duration
    def __init__(self, set: _Optional[str] = ..., epoch: _Optional[int] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., members_omitted: _Optional[int] = ..., short_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("member", "capacity", "items", "owner", "identity", "age", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    member: str
    capacity: int
    items: int
    owner: str
    identity: str
    age: _duration_pb2.Duration
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, member: _Optional[str] = ..., capacity: _Optional[int] = ..., items: _Optional[int] = ..., owner: _Optional[str] = ..., identity: _Optional[str] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("item", "member", "holder")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    item: str
    member: str
    holder: Holder
    def __init__(self, item: _Optional[str] = ..., member: _Optional[str] = ..., holder: _Optional[_Union[Holder, _Mapping]] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("owner", "member", "age", "fencing_token")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owner: str
    member: str
    age: _duration_pb2.Duration
    fencing_token: int
    def __init__(self, owner: _Optional[str] = ..., member: _Optional[str] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., fencing_token: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("set", "keepalive")
    SET_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    set: str
    keepalive: _duration_pb2.Duration
    def __init__(self, set: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("view", "stale", "keepalive")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    view: View
    stale: bool
    keepalive: _hold_pb2.Keepalive
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., stale: bool = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("sets", "next_page_token")
    SETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sets: _containers.RepeatedCompositeFieldContainer[Set]
    next_page_token: str
    def __init__(self, sets: _Optional[_Iterable[_Union[Set, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Set(_message.Message):
    __slots__ = ("set", "items", "members", "unassigned", "age", "short_for")
    SET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    UNASSIGNED_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    SHORT_FOR_FIELD_NUMBER: _ClassVar[int]
    set: str
    items: int
    members: int
    unassigned: int
    age: _duration_pb2.Duration
    short_for: _duration_pb2.Duration
    def __init__(self, set: _Optional[str] = ..., items: _Optional[int] = ..., members: _Optional[int] = ..., unassigned: _Optional[int] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., short_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("set",)
    SET_FIELD_NUMBER: _ClassVar[int]
    set: str
    def __init__(self, set: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
