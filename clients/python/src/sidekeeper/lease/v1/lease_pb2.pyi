import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from sidekeeper.assignment.v1 import assignment_pb2 as _assignment_pb2
from sidekeeper.barrier.v1 import barrier_pb2 as _barrier_pb2
from sidekeeper.election.v1 import election_pb2 as _election_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from sidekeeper.lock.v1 import lock_pb2 as _lock_pb2
from sidekeeper.membership.v1 import membership_pb2 as _membership_pb2
from sidekeeper.once.v1 import once_pb2 as _once_pb2
from sidekeeper.schedule.v1 import schedule_pb2 as _schedule_pb2
from sidekeeper.semaphore.v1 import semaphore_pb2 as _semaphore_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    STATE_CONNECTED: _ClassVar[State]
    STATE_SUSPENDED: _ClassVar[State]
    STATE_SLEEPING: _ClassVar[State]
STATE_UNSPECIFIED: State
STATE_CONNECTED: State
STATE_SUSPENDED: State
STATE_SLEEPING: State

class OpenRequest(_message.Message):
    __slots__ = ("ttl", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TTL_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    ttl: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ("opened", "suspended", "resumed", "keepalive")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    keepalive: _hold_pb2.Keepalive
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("lease_id", "ttl", "resumable")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    RESUMABLE_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    ttl: _duration_pb2.Duration
    resumable: bool
    def __init__(self, lease_id: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., resumable: bool = ...) -> None: ...

class MultiplexRequest(_message.Message):
    __slots__ = ("open", "resume", "start", "stop", "check")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    open: OpenRequest
    resume: Resume
    start: Start
    stop: Stop
    check: CheckValidity
    def __init__(self, open: _Optional[_Union[OpenRequest, _Mapping]] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., check: _Optional[_Union[CheckValidity, _Mapping]] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("lease_id", "claims", "keepalive")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    keepalive: _duration_pb2.Duration
    def __init__(self, lease_id: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("start", "hold_id", "token")
    START_FIELD_NUMBER: _ClassVar[int]
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    start: Start
    hold_id: str
    token: int
    def __init__(self, start: _Optional[_Union[Start, _Mapping]] = ..., hold_id: _Optional[str] = ..., token: _Optional[int] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("request_id", "acquire", "join", "acquire_permits", "campaign", "acquire_all", "enter", "begin", "work", "share")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_PERMITS_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_ALL_FIELD_NUMBER: _ClassVar[int]
    ENTER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    acquire: _lock_pb2.AcquireRequest
    join: _membership_pb2.JoinRequest
    acquire_permits: _semaphore_pb2.AcquireRequest
    campaign: _election_pb2.CampaignRequest
    acquire_all: _lock_pb2.AcquireAllRequest
    enter: _barrier_pb2.EnterRequest
    begin: _once_pb2.BeginRequest
    work: _schedule_pb2.WorkRequest
    share: _assignment_pb2.JoinRequest
    def __init__(self, request_id: _Optional[int] = ..., acquire: _Optional[_Union[_lock_pb2.AcquireRequest, _Mapping]] = ..., join: _Optional[_Union[_membership_pb2.JoinRequest, _Mapping]] = ..., acquire_permits: _Optional[_Union[_semaphore_pb2.AcquireRequest, _Mapping]] = ..., campaign: _Optional[_Union[_election_pb2.CampaignRequest, _Mapping]] = ..., acquire_all: _Optional[_Union[_lock_pb2.AcquireAllRequest, _Mapping]] = ..., enter: _Optional[_Union[_barrier_pb2.EnterRequest, _Mapping]] = ..., begin: _Optional[_Union[_once_pb2.BeginRequest, _Mapping]] = ..., work: _Optional[_Union[_schedule_pb2.WorkRequest, _Mapping]] = ..., share: _Optional[_Union[_assignment_pb2.JoinRequest, _Mapping]] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    def __init__(self, request_id: _Optional[int] = ...) -> None: ...

class CheckValidity(_message.Message):
    __slots__ = ("check_id",)
    CHECK_ID_FIELD_NUMBER: _ClassVar[int]
    check_id: int
    def __init__(self, check_id: _Optional[int] = ...) -> None: ...

class MultiplexResponse(_message.Message):
    __slots__ = ("opened", "suspended", "resumed", "event", "ended", "checked", "keepalive")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    event: Event
    ended: Ended
    checked: Checked
    keepalive: _hold_pb2.Keepalive
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., checked: _Optional[_Union[Checked, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("request_id", "acquire", "join", "acquire_permits", "campaign", "acquire_all", "enter", "begin", "work", "share")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_PERMITS_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_ALL_FIELD_NUMBER: _ClassVar[int]
    ENTER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    acquire: _lock_pb2.AcquireResponse
    join: _membership_pb2.JoinResponse
    acquire_permits: _semaphore_pb2.AcquireResponse
    campaign: _election_pb2.CampaignResponse
    acquire_all: _lock_pb2.AcquireAllResponse
    enter: _barrier_pb2.EnterResponse
    begin: _once_pb2.BeginResponse
    work: _schedule_pb2.WorkResponse
    share: _assignment_pb2.JoinResponse
    def __init__(self, request_id: _Optional[int] = ..., acquire: _Optional[_Union[_lock_pb2.AcquireResponse, _Mapping]] = ..., join: _Optional[_Union[_membership_pb2.JoinResponse, _Mapping]] = ..., acquire_permits: _Optional[_Union[_semaphore_pb2.AcquireResponse, _Mapping]] = ..., campaign: _Optional[_Union[_election_pb2.CampaignResponse, _Mapping]] = ..., acquire_all: _Optional[_Union[_lock_pb2.AcquireAllResponse, _Mapping]] = ..., enter: _Optional[_Union[_barrier_pb2.EnterResponse, _Mapping]] = ..., begin: _Optional[_Union[_once_pb2.BeginResponse, _Mapping]] = ..., work: _Optional[_Union[_schedule_pb2.WorkResponse, _Mapping]] = ..., share: _Optional[_Union[_assignment_pb2.JoinResponse, _Mapping]] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("request_id", "code", "reason", "message", "metadata", "retry_delay")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    code: int
    reason: str
    message: str
    metadata: _containers.ScalarMap[str, str]
    retry_delay: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[int] = ..., code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Checked(_message.Message):
    __slots__ = ("check_id", "valid_for")
    CHECK_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    check_id: int
    valid_for: _duration_pb2.Duration
    def __init__(self, check_id: _Optional[int] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("lease_id",)
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    def __init__(self, lease_id: _Optional[str] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("valid_for",)
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    valid_for: _duration_pb2.Duration
    def __init__(self, valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("lease_id",)
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    def __init__(self, lease_id: _Optional[str] = ...) -> None: ...

class CloseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("leases", "next_page_token")
    LEASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[Lease]
    next_page_token: str
    def __init__(self, leases: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("owner", "metadata", "state", "age", "valid_for", "ttl", "possessions", "identity")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    POSSESSIONS_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    owner: str
    metadata: _containers.ScalarMap[str, str]
    state: State
    age: _duration_pb2.Duration
    valid_for: _duration_pb2.Duration
    ttl: _duration_pb2.Duration
    possessions: _containers.RepeatedCompositeFieldContainer[Possession]
    identity: str
    def __init__(self, owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., state: _Optional[_Union[State, str]] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., possessions: _Optional[_Iterable[_Union[Possession, _Mapping]]] = ..., identity: _Optional[str] = ...) -> None: ...

class Possession(_message.Message):
    __slots__ = ("kind", "name", "held")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    held: bool
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ..., held: bool = ...) -> None: ...
