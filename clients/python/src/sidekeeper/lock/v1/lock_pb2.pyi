import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AcquireRequest(_message.Message):
    __slots__ = ("name", "mode", "lease_id", "wait_timeout", "owner", "metadata", "lock_delay", "detect_deadlock", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LOCK_DELAY_FIELD_NUMBER: _ClassVar[int]
    DETECT_DEADLOCK_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    mode: _hold_pb2.Mode
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    lock_delay: _duration_pb2.Duration
    detect_deadlock: bool
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., mode: _Optional[_Union[_hold_pb2.Mode, str]] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., lock_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., detect_deadlock: bool = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("queued", "granted", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: _hold_pb2.Queued
    granted: Granted
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[_hold_pb2.Queued, _Mapping]] = ..., granted: _Optional[_Union[Granted, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class Granted(_message.Message):
    __slots__ = ("hold_id", "fencing_token")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    fencing_token: int
    def __init__(self, hold_id: _Optional[str] = ..., fencing_token: _Optional[int] = ...) -> None: ...

class AcquireAllRequest(_message.Message):
    __slots__ = ("locks", "lease_id", "wait_timeout", "owner", "metadata", "keepalive")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[WantedLock]
    lease_id: str
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    keepalive: _duration_pb2.Duration
    def __init__(self, locks: _Optional[_Iterable[_Union[WantedLock, _Mapping]]] = ..., lease_id: _Optional[str] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WantedLock(_message.Message):
    __slots__ = ("name", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    mode: _hold_pb2.Mode
    def __init__(self, name: _Optional[str] = ..., mode: _Optional[_Union[_hold_pb2.Mode, str]] = ...) -> None: ...

class AcquireAllResponse(_message.Message):
    __slots__ = ("queued", "granted", "suspended", "resumed", "revocation_requested", "keepalive")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    queued: AllQueued
    granted: AllGranted
    suspended: _hold_pb2.Suspended
    resumed: _hold_pb2.Resumed
    revocation_requested: _hold_pb2.RevocationRequested
    keepalive: _hold_pb2.Keepalive
    def __init__(self, queued: _Optional[_Union[AllQueued, _Mapping]] = ..., granted: _Optional[_Union[AllGranted, _Mapping]] = ..., suspended: _Optional[_Union[_hold_pb2.Suspended, _Mapping]] = ..., resumed: _Optional[_Union[_hold_pb2.Resumed, _Mapping]] = ..., revocation_requested: _Optional[_Union[_hold_pb2.RevocationRequested, _Mapping]] = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...

class AllQueued(_message.Message):
    __slots__ = ("locks",)
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[QueuedLock]
    def __init__(self, locks: _Optional[_Iterable[_Union[QueuedLock, _Mapping]]] = ...) -> None: ...

class QueuedLock(_message.Message):
    __slots__ = ("name", "position")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    position: int
    def __init__(self, name: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class AllGranted(_message.Message):
    __slots__ = ("hold_id", "locks")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    locks: _containers.RepeatedCompositeFieldContainer[GrantedLock]
    def __init__(self, hold_id: _Optional[str] = ..., locks: _Optional[_Iterable[_Union[GrantedLock, _Mapping]]] = ...) -> None: ...

class GrantedLock(_message.Message):
    __slots__ = ("name", "fencing_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    fencing_token: int
    def __init__(self, name: _Optional[str] = ..., fencing_token: _Optional[int] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("hold_ids", "claim_ids")
    HOLD_IDS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_IDS_FIELD_NUMBER: _ClassVar[int]
    hold_ids: _containers.RepeatedScalarFieldContainer[str]
    claim_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hold_ids: _Optional[_Iterable[str]] = ..., claim_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("holds", "claims")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[CheckedHold]
    claims: _containers.RepeatedCompositeFieldContainer[CheckedClaim]
    def __init__(self, holds: _Optional[_Iterable[_Union[CheckedHold, _Mapping]]] = ..., claims: _Optional[_Iterable[_Union[CheckedClaim, _Mapping]]] = ...) -> None: ...

class CheckedHold(_message.Message):
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

class ReleaseRequest(_message.Message):
    __slots__ = ("hold_id", "claim_id")
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_ID_FIELD_NUMBER: _ClassVar[int]
    hold_id: str
    claim_id: str
    def __init__(self, hold_id: _Optional[str] = ..., claim_id: _Optional[str] = ...) -> None: ...

class CheckedClaim(_message.Message):
    __slots__ = ("fencing_token", "until", "valid_for", "reason")
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    fencing_token: int
    until: _timestamp_pb2.Timestamp
    valid_for: _duration_pb2.Duration
    reason: str
    def __init__(self, fencing_token: _Optional[int] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class ClaimRequest(_message.Message):
    __slots__ = ("name", "claim_id", "mode", "reserve_for", "wait_timeout", "owner", "metadata", "reason")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLAIM_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FOR_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    claim_id: str
    mode: _hold_pb2.Mode
    reserve_for: _duration_pb2.Duration
    wait_timeout: _duration_pb2.Duration
    owner: str
    metadata: _containers.ScalarMap[str, str]
    reason: str
    def __init__(self, name: _Optional[str] = ..., claim_id: _Optional[str] = ..., mode: _Optional[_Union[_hold_pb2.Mode, str]] = ..., reserve_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., owner: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ClaimResponse(_message.Message):
    __slots__ = ("fencing_token", "until")
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    fencing_token: int
    until: _timestamp_pb2.Timestamp
    def __init__(self, fencing_token: _Optional[int] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExtendRequest(_message.Message):
    __slots__ = ("claim_id", "reserve_for")
    CLAIM_ID_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FOR_FIELD_NUMBER: _ClassVar[int]
    claim_id: str
    reserve_for: _duration_pb2.Duration
    def __init__(self, claim_id: _Optional[str] = ..., reserve_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExtendResponse(_message.Message):
    __slots__ = ("until", "valid_for")
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    VALID_FOR_FIELD_NUMBER: _ClassVar[int]
    until: _timestamp_pb2.Timestamp
    valid_for: _duration_pb2.Duration
    def __init__(self, until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevokeRequest(_message.Message):
    __slots__ = ("name", "reason", "grace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RevokeResponse(_message.Message):
    __slots__ = ("asked",)
    ASKED_FIELD_NUMBER: _ClassVar[int]
    asked: int
    def __init__(self, asked: _Optional[int] = ...) -> None: ...

class BreakRequest(_message.Message):
    __slots__ = ("name", "fencing_token", "reason", "force_after")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FORCE_AFTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    fencing_token: int
    reason: str
    force_after: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., fencing_token: _Optional[int] = ..., reason: _Optional[str] = ..., force_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class BreakResponse(_message.Message):
    __slots__ = ("forced",)
    FORCED_FIELD_NUMBER: _ClassVar[int]
    forced: bool
    def __init__(self, forced: bool = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: View
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("name", "holders", "waiters", "waiters_omitted", "lost_hold")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    LOST_HOLD_FIELD_NUMBER: _ClassVar[int]
    name: str
    holders: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Contender]
    waiters: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Contender]
    waiters_omitted: int
    lost_hold: LostHold
    def __init__(self, name: _Optional[str] = ..., holders: _Optional[_Iterable[_Union[_hold_pb2.Contender, _Mapping]]] = ..., waiters: _Optional[_Iterable[_Union[_hold_pb2.Contender, _Mapping]]] = ..., waiters_omitted: _Optional[int] = ..., lost_hold: _Optional[_Union[LostHold, _Mapping]] = ...) -> None: ...

class LostHold(_message.Message):
    __slots__ = ("fencing_token", "lock_delay")
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOCK_DELAY_FIELD_NUMBER: _ClassVar[int]
    fencing_token: int
    lock_delay: _duration_pb2.Duration
    def __init__(self, fencing_token: _Optional[int] = ..., lock_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("name", "lease")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    lease: str
    def __init__(self, name: _Optional[str] = ..., lease: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("locks", "cycles", "incomplete")
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[ExplainedLock]
    cycles: _containers.RepeatedCompositeFieldContainer[Cycle]
    incomplete: bool
    def __init__(self, locks: _Optional[_Iterable[_Union[ExplainedLock, _Mapping]]] = ..., cycles: _Optional[_Iterable[_Union[Cycle, _Mapping]]] = ..., incomplete: bool = ...) -> None: ...

class ExplainedLock(_message.Message):
    __slots__ = ("name", "holders", "waiters", "waiters_omitted", "usual_hold")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    USUAL_HOLD_FIELD_NUMBER: _ClassVar[int]
    name: str
    holders: _containers.RepeatedCompositeFieldContainer[Party]
    waiters: _containers.RepeatedCompositeFieldContainer[Party]
    waiters_omitted: int
    usual_hold: UsualHold
    def __init__(self, name: _Optional[str] = ..., holders: _Optional[_Iterable[_Union[Party, _Mapping]]] = ..., waiters: _Optional[_Iterable[_Union[Party, _Mapping]]] = ..., waiters_omitted: _Optional[int] = ..., usual_hold: _Optional[_Union[UsualHold, _Mapping]] = ...) -> None: ...

class UsualHold(_message.Message):
    __slots__ = ("holds", "median", "longest")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    holds: int
    median: _duration_pb2.Duration
    longest: _duration_pb2.Duration
    def __init__(self, holds: _Optional[int] = ..., median: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., longest: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Party(_message.Message):
    __slots__ = ("contender", "lease", "waits_for", "suspended")
    CONTENDER_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    contender: _hold_pb2.Contender
    lease: str
    waits_for: _containers.RepeatedScalarFieldContainer[str]
    suspended: bool
    def __init__(self, contender: _Optional[_Union[_hold_pb2.Contender, _Mapping]] = ..., lease: _Optional[str] = ..., waits_for: _Optional[_Iterable[str]] = ..., suspended: bool = ...) -> None: ...

class Cycle(_message.Message):
    __slots__ = ("links",)
    LINKS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[Link]
    def __init__(self, links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("lease", "owner", "waits_for", "fencing_token", "age")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGE_FIELD_NUMBER: _ClassVar[int]
    lease: str
    owner: str
    waits_for: str
    fencing_token: int
    age: _duration_pb2.Duration
    def __init__(self, lease: _Optional[str] = ..., owner: _Optional[str] = ..., waits_for: _Optional[str] = ..., fencing_token: _Optional[int] = ..., age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("locks", "next_page_token")
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[Lock]
    next_page_token: str
    def __init__(self, locks: _Optional[_Iterable[_Union[Lock, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Lock(_message.Message):
    __slots__ = ("name", "contenders", "claims")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENDERS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    name: str
    contenders: int
    claims: int
    def __init__(self, name: _Optional[str] = ..., contenders: _Optional[int] = ..., claims: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("name", "keepalive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    keepalive: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., keepalive: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("view", "stale", "keepalive")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    view: View
    stale: bool
    keepalive: _hold_pb2.Keepalive
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., stale: bool = ..., keepalive: _Optional[_Union[_hold_pb2.Keepalive, _Mapping]] = ...) -> None: ...
