import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CampaignRequest(_message.Message):
    __slots__ = ("name", "candidate", "value", "lease_id", "wait_timeout", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    candidate: str
    value: str
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., candidate: _Optional[str] = ..., value: _Optional[str] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CampaignResponse(_message.Message):
    __slots__ = ("candidate", "elected", "suspended", "resumed", "yield_requested", "keepalive")
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    ELECTED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    YIELD_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    candidate: Candidacy
    elected: Elected
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    yield_requested: YieldRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, candidate: _Optional[_Union[Candidacy, _Mapping]] = ..., elected: _Optional[_Union[Elected, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., yield_requested: _Optional[_Union[YieldRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Candidacy(_message.Message):
    __slots__ = ("position", "leader")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    position: int
    leader: Leader
    def __init__(self, position: _Optional[int] = ..., leader: _Optional[_Union[Leader, _Mapping]] = ...) -> None: ...

class Elected(_message.Message):
    __slots__ = ("hold_id", "ticket")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    ticket: _hold_pb2.Ticket
    def __init__(self, hold_id: _Optional[str] = ..., ticket: _Optional[_Union[_hold_pb2.Ticket, _Mapping]] = ...) -> None: ...

class YieldRequested(_message.Message):
    __slots__ = ("to", "requested_by", "reason", "grace")
    TO_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    to: str
    requested_by: str
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, to: _Optional[str] = ..., requested_by: _Optional[str] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Leader(_message.Message):
    __slots__ = ("candidate", "value", "ticket", "metadata", "identity", "foreign", "yield_requested")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    YIELD_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    candidate: str
    value: str
    ticket: _hold_pb2.Ticket
    metadata: _containers.ScalarMap[str, str]
    identity: str
    foreign: bool
    yield_requested: bool
    def __init__(self, candidate: _Optional[str] = ..., value: _Optional[str] = ..., ticket: _Optional[_Union[_hold_pb2.Ticket, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., identity: _Optional[str] = ..., foreign: bool = ..., yield_requested: bool = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("candidate", "value", "metadata", "identity", "foreign", "age")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    candidate: str
    value: str
    metadata: _containers.ScalarMap[str, str]
    identity: str
    foreign: bool
    age: _duration_pb2.Duration
    def __init__(self, candidate: _Optional[str] = ..., value: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., identity: _Optional[str] = ..., foreign: bool = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ProclaimRequest(_message.Message):
    __slots__ = ("ticket", "value")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ticket: _hold_pb2.Ticket
    value: str
    def __init__(self, ticket: _Optional[_Union[_hold_pb2.Ticket, _Mapping]] = ..., value: _Optional[str] = ...) -> None: ...

class ProclaimResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResignRequest(_message.Message):
    __slots__ = ("hold_id",)
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    def __init__(self, hold_id: _Optional[str] = ...) -> None: ...

class ResignResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("name", "to", "reason", "grace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    to: str
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., to: _Optional[str] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TransferResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("leader", "candidates", "candidates_omitted")
    LEADER_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_OMITTED_FIELD_NUMBER: _ClassVar[int]
    leader: Leader
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    candidates_omitted: int
    def __init__(self, leader: _Optional[_Union[Leader, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., candidates_omitted: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("name", "keepalive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("leader", "vacant", "stale", "keepalive")
    LEADER_FIELD_NUMBER: _ClassVar[int]
    VACANT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    leader: Leader
    vacant: Vacant
    stale: _hold_pb2.Stale
    keepalive: _hold_pb2.Keepalive
    def __init__(self, leader: _Optional[_Union[Leader, _Mapping]] = ..., vacant: _Optional[_Union[Vacant, _Mapping]] = ..., stale: _Optional[_Union[_hold_pb2.Stale, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Vacant(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
