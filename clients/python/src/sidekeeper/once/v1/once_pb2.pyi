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

class Per(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PER_UNSPECIFIED: _ClassVar[Per]
    PER_NAME: _ClassVar[Per]
    PER_KEY: _ClassVar[Per]

class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_UNSPECIFIED: _ClassVar[Policy]
    POLICY_RETRY: _ClassVar[Policy]
    POLICY_SKIP: _ClassVar[Policy]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_SUCCEEDED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    STATE_RUNNING: _ClassVar[State]
    STATE_LOST: _ClassVar[State]
    STATE_FAILED: _ClassVar[State]
    STATE_SUCCEEDED: _ClassVar[State]
    STATE_MALFORMED: _ClassVar[State]
PER_UNSPECIFIED: Per
PER_NAME: Per
PER_KEY: Per
POLICY_UNSPECIFIED: Policy
POLICY_RETRY: Policy
POLICY_SKIP: Policy
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_SUCCEEDED: Outcome
OUTCOME_FAILED: Outcome
STATE_UNSPECIFIED: State
STATE_RUNNING: State
STATE_LOST: State
STATE_FAILED: State
STATE_SUCCEEDED: State
STATE_MALFORMED: State

class BeginRequest(_message.Message):
    __slots__ = ("name", "key", "per", "keep", "on_loss", "on_failure", "attempts", "lease_id", "wait_timeout", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ON_LOSS_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    per: Per
    keep: _duration_pb2.Duration
    on_loss: Policy
    on_failure: Policy
    attempts: int
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., per: _Optional[_Union[Per, str]] = ..., keep: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_loss: _Optional[_Union[Policy, str]] = ..., on_failure: _Optional[_Union[Policy, str]] = ..., attempts: _Optional[int] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class BeginResponse(_message.Message):
    __slots__ = ("queued", "begun", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: _hold_pb2.Queued
    begun: Begun
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[_hold_pb2.Queued, _Mapping]] = ..., begun: _Optional[_Union[Begun, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Begun(_message.Message):
    __slots__ = ("hold_id", "fencing_token", "attempt", "previous")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    fencing_token: int
    attempt: int
    previous: Attempt
    def __init__(self, hold_id: _Optional[str] = ..., fencing_token: _Optional[int] = ..., attempt: _Optional[int] = ..., previous: _Optional[_Union[Attempt, _Mapping]] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("state", "attempt", "owner", "identity", "note", "at")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    state: State
    attempt: int
    owner: str
    identity: str
    note: str
    at: _timestamp_pb2.Timestamp
    def __init__(self, state: _Optional[_Union[State, str]] = ..., attempt: _Optional[int] = ..., owner: _Optional[str] = ..., identity: _Optional[str] = ..., note: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ("hold_id", "outcome", "note")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    outcome: Outcome
    note: str
    def __init__(self, hold_id: _Optional[str] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., note: _Optional[str] = ...) -> None: ...

class FinishResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name", "key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: Record
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("key", "state", "attempt", "per", "owner", "identity", "note", "fencing_token", "at", "keep")
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    key: str
    state: State
    attempt: int
    per: Per
    owner: str
    identity: str
    note: str
    fencing_token: int
    at: _timestamp_pb2.Timestamp
    keep: _duration_pb2.Duration
    def __init__(self, key: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., attempt: _Optional[int] = ..., per: _Optional[_Union[Per, str]] = ..., owner: _Optional[str] = ..., identity: _Optional[str] = ..., note: _Optional[str] = ..., fencing_token: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., keep: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("records", "next_page_token")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    next_page_token: str
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("name", "key", "wait_timeout")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    wait_timeout: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
