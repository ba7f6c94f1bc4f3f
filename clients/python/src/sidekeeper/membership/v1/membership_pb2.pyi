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

class OnConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_CONFLICT_UNSPECIFIED: _ClassVar[OnConflict]
    ON_CONFLICT_REJECT: _ClassVar[OnConflict]
    ON_CONFLICT_WAIT: _ClassVar[OnConflict]
    ON_CONFLICT_REPLACE: _ClassVar[OnConflict]
ON_CONFLICT_UNSPECIFIED: OnConflict
ON_CONFLICT_REJECT: OnConflict
ON_CONFLICT_WAIT: OnConflict
ON_CONFLICT_REPLACE: OnConflict

class JoinRequest(_message.Message):
    __slots__ = ("group", "member", "metadata", "owner", "lease_id", "on_conflict", "wait_timeout", "guards", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    group: str
    member: str
    metadata: _containers.ScalarMap[str, str]
    owner: str
    lease_id: str
    on_conflict: OnConflict
    wait_timeout: _duration_pb2.Duration
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    keepalive: _duration_pb2.Duration
    def __init__(self, group: _Optional[str] = ..., member: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., owner: _Optional[str] = ..., lease_id: _Optional[str] = ..., on_conflict: _Optional[_Union[OnConflict, str]] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("joined", "suspended", "resumed", "updated", "keepalive")
    JOINED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    joined: Joined
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    updated: Updated
    keepalive: _hold_pb2.Keepalive
    def __init__(self, joined: _Optional[_Union[Joined, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., updated: _Optional[_Union[Updated, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Joined(_message.Message):
    __slots__ = ("incarnation",)
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    def __init__(self, incarnation: _Optional[int] = ...) -> None: ...

class Updated(_message.Message):
    __slots__ = ("metadata",)
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METADATA_FIELD_NUMBER: _ClassVar[int]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("group", "member", "metadata", "lease_id", "guards")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    group: str
    member: str
    metadata: _containers.ScalarMap[str, str]
    lease_id: str
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, group: _Optional[str] = ..., member: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., lease_id: _Optional[str] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class UpdateResponse(_message.Message):
    __slots__ = ("incarnation",)
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    def __init__(self, incarnation: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: View
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("group", "members", "members_omitted", "permanent")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    group: str
    members: _containers.RepeatedCompositeFieldContainer[Member]
    members_omitted: int
    permanent: bool
    def __init__(self, group: _Optional[str] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., members_omitted: _Optional[int] = ..., permanent: bool = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("member", "incarnation", "owner", "metadata", "age", "foreign", "text", "identity")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    member: str
    incarnation: int
    owner: str
    metadata: _containers.ScalarMap[str, str]
    age: _duration_pb2.Duration
    foreign: bool
    text: str
    identity: str
    def __init__(self, member: _Optional[str] = ..., incarnation: _Optional[int] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., foreign: bool = ..., text: _Optional[str] = ..., identity: _Optional[str] = ...) -> None: ...

class MemberReference(_message.Message):
    __slots__ = ("member", "incarnation")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    member: str
    incarnation: int
    def __init__(self, member: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group", "members", "permanent")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    group: str
    members: int
    permanent: bool
    def __init__(self, group: _Optional[str] = ..., members: _Optional[int] = ..., permanent: bool = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("group", "keepalive")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    group: str
    keepalive: _duration_pb2.Duration
    def __init__(self, group: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("view", "joined", "left", "changed", "changes_omitted", "stale", "keepalive")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_OMITTED_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    view: View
    joined: _containers.RepeatedCompositeFieldContainer[MemberReference]
    left: _containers.RepeatedCompositeFieldContainer[MemberReference]
    changed: _containers.RepeatedCompositeFieldContainer[MemberReference]
    changes_omitted: bool
    stale: bool
    keepalive: _hold_pb2.Keepalive
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., joined: _Optional[_Iterable[_Union[MemberReference, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[MemberReference, _Mapping]]] = ..., changed: _Optional[_Iterable[_Union[MemberReference, _Mapping]]] = ..., changes_omitted: bool = ..., stale: bool = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("group", "force", "reason", "force_after")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FORCE_AFTER_FIELD_NUMBER: _ClassVar[int]
    group: str
    force: bool
    reason: str
    force_after: _duration_pb2.Duration
    def __init__(self, group: _Optional[str] = ..., force: bool = ..., reason: _Optional[str] = ..., force_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("forced",)
    FORCED_FIELD_NUMBER: _ClassVar[int]
    forced: int
    def __init__(self, forced: _Optional[int] = ...) -> None: ...
