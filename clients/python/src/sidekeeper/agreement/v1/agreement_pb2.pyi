import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_UNSPECIFIED: _ClassVar[Decision]
    DECISION_COMMIT: _ClassVar[Decision]
    DECISION_ABORT: _ClassVar[Decision]
DECISION_UNSPECIFIED: Decision
DECISION_COMMIT: Decision
DECISION_ABORT: Decision

class BeginRequest(_message.Message):
    __slots__ = ("name", "participants", "timeout", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    participants: _containers.RepeatedScalarFieldContainer[str]
    timeout: _duration_pb2.Duration
    value: bytes
    def __init__(self, name: _Optional[str] = ..., participants: _Optional[_Iterable[str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., value: _Optional[bytes] = ...) -> None: ...

class BeginResponse(_message.Message):
    __slots__ = ("agreement",)
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    agreement: str
    def __init__(self, agreement: _Optional[str] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("name", "agreement", "participant", "lease_id", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    agreement: str
    participant: str
    lease_id: str
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., agreement: _Optional[str] = ..., participant: _Optional[str] = ..., lease_id: _Optional[str] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class VoteResponse(_message.Message):
    __slots__ = ("voted", "suspended", "resumed", "decided", "keepalive")
    VOTED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    voted: Voted
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    decided: Decided
    keepalive: _hold_pb2.Keepalive
    def __init__(self, voted: _Optional[_Union[Voted, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., decided: _Optional[_Union[Decided, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Voted(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Decided(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    def __init__(self, decision: _Optional[_Union[Decision, str]] = ...) -> None: ...

class AbortRequest(_message.Message):
    __slots__ = ("name", "agreement")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    agreement: str
    def __init__(self, name: _Optional[str] = ..., agreement: _Optional[str] = ...) -> None: ...

class AbortResponse(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    def __init__(self, decision: _Optional[_Union[Decision, str]] = ...) -> None: ...

class AwaitRequest(_message.Message):
    __slots__ = ("name", "agreement", "keepalive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    agreement: str
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., agreement: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AwaitResponse(_message.Message):
    __slots__ = ("decision", "keepalive")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    keepalive: _hold_pb2.Keepalive
    def __init__(self, decision: _Optional[_Union[Decision, str]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("agreements",)
    AGREEMENTS_FIELD_NUMBER: _ClassVar[int]
    agreements: _containers.RepeatedCompositeFieldContainer[Agreement]
    def __init__(self, agreements: _Optional[_Iterable[_Union[Agreement, _Mapping]]] = ...) -> None: ...

class Agreement(_message.Message):
    __slots__ = ("agreement", "participants", "value", "deadline", "voted", "decision")
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    VOTED_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    agreement: str
    participants: _containers.RepeatedScalarFieldContainer[str]
    value: bytes
    deadline: _timestamp_pb2.Timestamp
    voted: _containers.RepeatedScalarFieldContainer[str]
    decision: Decision
    def __init__(self, agreement: _Optional[str] = ..., participants: _Optional[_Iterable[str]] = ..., value: _Optional[bytes] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., voted: _Optional[_Iterable[str]] = ..., decision: _Optional[_Union[Decision, str]] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("name", "agreement")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    agreement: str
    def __init__(self, name: _Optional[str] = ..., agreement: _Optional[str] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
