import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from sidekeeper.once.v1 import once_pb2 as _once_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Misfire(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MISFIRE_UNSPECIFIED: _ClassVar[Misfire]
    MISFIRE_SKIP: _ClassVar[Misfire]
    MISFIRE_ONCE: _ClassVar[Misfire]

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    STATE_RUNNING: _ClassVar[State]
    STATE_LOST: _ClassVar[State]
    STATE_FAILED: _ClassVar[State]
    STATE_SUCCEEDED: _ClassVar[State]
    STATE_MISSED: _ClassVar[State]
MISFIRE_UNSPECIFIED: Misfire
MISFIRE_SKIP: Misfire
MISFIRE_ONCE: Misfire
STATE_UNSPECIFIED: State
STATE_RUNNING: State
STATE_LOST: State
STATE_FAILED: State
STATE_SUCCEEDED: State
STATE_MISSED: State

class PutRequest(_message.Message):
    __slots__ = ("name", "cron", "time_zone", "misfire", "start_within", "on_loss", "paused")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    MISFIRE_FIELD_NUMBER: _ClassVar[int]
    START_WITHIN_FIELD_NUMBER: _ClassVar[int]
    ON_LOSS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    name: str
    cron: str
    time_zone: str
    misfire: Misfire
    start_within: _duration_pb2.Duration
    on_loss: _once_pb2.Policy
    paused: bool
    def __init__(self, name: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., misfire: _Optional[_Union[Misfire, str]] = ..., start_within: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_loss: _Optional[_Union[_once_pb2.Policy, str]] = ..., paused: bool = ...) -> None: ...

class PutResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("name", "cron", "time_zone", "misfire", "start_within", "on_loss", "paused", "next", "next_too_far", "running", "waiting_runs", "last")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    MISFIRE_FIELD_NUMBER: _ClassVar[int]
    START_WITHIN_FIELD_NUMBER: _ClassVar[int]
    ON_LOSS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOO_FAR_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_RUNS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    name: str
    cron: str
    time_zone: str
    misfire: Misfire
    start_within: _duration_pb2.Duration
    on_loss: _once_pb2.Policy
    paused: bool
    next: _timestamp_pb2.Timestamp
    next_too_far: bool
    running: Outcome
    waiting_runs: int
    last: Outcome
    def __init__(self, name: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., misfire: _Optional[_Union[Misfire, str]] = ..., start_within: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_loss: _Optional[_Union[_once_pb2.Policy, str]] = ..., paused: bool = ..., next: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_too_far: bool = ..., running: _Optional[_Union[Outcome, _Mapping]] = ..., waiting_runs: _Optional[int] = ..., last: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("tick", "run_id", "state", "attempt", "missed", "owner", "identity", "fencing_token", "begun", "ended", "note")
    TICK_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    tick: _timestamp_pb2.Timestamp
    run_id: str
    state: State
    attempt: int
    missed: int
    owner: str
    identity: str
    fencing_token: int
    begun: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    note: str
    def __init__(self, tick: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., attempt: _Optional[int] = ..., missed: _Optional[int] = ..., owner: _Optional[str] = ..., identity: _Optional[str] = ..., fencing_token: _Optional[int] = ..., begun: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("schedules", "next_page_token")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[Schedule]
    next_page_token: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("name", "id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class RunResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class WorkRequest(_message.Message):
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

class WorkResponse(_message.Message):
    __slots__ = ("queued", "fire", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    FIRE_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: _hold_pb2.Queued
    fire: Fire
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[_hold_pb2.Queued, _Mapping]] = ..., fire: _Optional[_Union[Fire, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Fire(_message.Message):
    __slots__ = ("hold_id", "fencing_token", "tick", "attempt", "run_id")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TICK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    fencing_token: int
    tick: _timestamp_pb2.Timestamp
    attempt: int
    run_id: str
    def __init__(self, hold_id: _Optional[str] = ..., fencing_token: _Optional[int] = ..., tick: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ..., run_id: _Optional[str] = ...) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ("hold_id", "outcome", "note")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    outcome: _once_pb2.Outcome
    note: str
    def __init__(self, hold_id: _Optional[str] = ..., outcome: _Optional[_Union[_once_pb2.Outcome, str]] = ..., note: _Optional[str] = ...) -> None: ...

class FinishResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
