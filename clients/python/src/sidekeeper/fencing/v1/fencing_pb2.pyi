import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.config.v1 import config_pb2 as _config_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VerifyRequest(_message.Message):
    __slots__ = ("ticket", "consistency")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    ticket: _hold_pb2.Ticket
    consistency: _config_pb2.Consistency
    def __init__(self, ticket: _Optional[_Union[_hold_pb2.Ticket, _Mapping]] = ..., consistency: _Optional[_Union[_config_pb2.Consistency, str]] = ...) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("held", "current_token")
    HELD_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    held: bool
    current_token: int
    def __init__(self, held: bool = ..., current_token: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("locks", "keepalive")
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedScalarFieldContainer[str]
    keepalive: _duration_pb2.Duration
    def __init__(self, locks: _Optional[_Iterable[str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("tokens", "keepalive")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[CurrentToken]
    keepalive: _hold_pb2.Keepalive
    def __init__(self, tokens: _Optional[_Iterable[_Union[CurrentToken, _Mapping]]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class CurrentToken(_message.Message):
    __slots__ = ("lock", "fencing_token", "stale")
    LOCK_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    lock: str
    fencing_token: int
    stale: bool
    def __init__(self, lock: _Optional[str] = ..., fencing_token: _Optional[int] = ..., stale: bool = ...) -> None: ...
