import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_EXCLUSIVE: _ClassVar[Mode]
    MODE_READ: _ClassVar[Mode]
    MODE_WRITE: _ClassVar[Mode]
MODE_UNSPECIFIED: Mode
MODE_EXCLUSIVE: Mode
MODE_READ: Mode
MODE_WRITE: Mode

class Guard(_message.Message):
    __slots__ = ("hold_id", "ticket")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    ticket: Ticket
    def __init__(self, hold_id: _Optional[str] = ..., ticket: _Optional[_Union[Ticket, _Mapping]] = ...) -> None: ...

class Ticket(_message.Message):
    __slots__ = ("lock", "fencing_token")
    LOCK_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lock: str
    fencing_token: int
    def __init__(self, lock: _Optional[str] = ..., fencing_token: _Optional[int] = ...) -> None: ...

class Contender(_message.Message):
    __slots__ = ("mode", "owner", "metadata", "token", "age", "foreign", "revocation_requested", "identity", "lock_delay", "permits", "claim", "number")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    LOCK_DELAY_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    mode: Mode
    owner: str
    metadata: _containers.ScalarMap[str, str]
    token: int
    age: _duration_pb2.Duration
    foreign: bool
    revocation_requested: bool
    identity: str
    lock_delay: _duration_pb2.Duration
    permits: int
    claim: Reservation
    number: int
    def __init__(self, mode: _Optional[_Union[Mode, str]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., token: _Optional[int] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., foreign: bool = ..., revocation_requested: bool = ..., identity: _Optional[str] = ..., lock_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., permits: _Optional[int] = ..., claim: _Optional[_Union[Reservation, _Mapping]] = ..., number: _Optional[int] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("reason", "until")
    REASON_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    reason: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, reason: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Queued(_message.Message):
    __slots__ = ("position", "holders", "lock_delay")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    LOCK_DELAY_FIELD_NUMBER: _ClassVar[int]
    position: int
    holders: _containers.RepeatedCompositeFieldContainer[Contender]
    lock_delay: _duration_pb2.Duration
    def __init__(self, position: _Optional[int] = ..., holders: _Optional[_Iterable[_Union[Contender, _Mapping]]] = ..., lock_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Suspended(_message.Message):
    __slots__ = ("remaining",)
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    remaining: _duration_pb2.Duration
    def __init__(self, remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Resumed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevocationRequested(_message.Message):
    __slots__ = ("requested_by", "reason", "grace")
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    requested_by: str
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, requested_by: _Optional[str] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Keepalive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Stale(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
