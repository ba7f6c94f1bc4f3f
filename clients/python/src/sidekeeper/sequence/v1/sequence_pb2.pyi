from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ordering(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORDERING_UNSPECIFIED: _ClassVar[Ordering]
    ORDERING_STRICT: _ClassVar[Ordering]
    ORDERING_RELAXED: _ClassVar[Ordering]
ORDERING_UNSPECIFIED: Ordering
ORDERING_STRICT: Ordering
ORDERING_RELAXED: Ordering

class CreateRequest(_message.Message):
    __slots__ = ("name", "first")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    name: str
    first: int
    def __init__(self, name: _Optional[str] = ..., first: _Optional[int] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ("incarnation",)
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    def __init__(self, incarnation: _Optional[int] = ...) -> None: ...

class NextRequest(_message.Message):
    __slots__ = ("name", "count", "ordering", "guards")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ORDERING_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    ordering: Ordering
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., ordering: _Optional[_Union[Ordering, str]] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class NextResponse(_message.Message):
    __slots__ = ("first", "last", "incarnation")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    incarnation: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("last_issued", "incarnation")
    LAST_ISSUED_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    last_issued: int
    incarnation: int
    def __init__(self, last_issued: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class AdvanceToRequest(_message.Message):
    __slots__ = ("name", "last_issued", "guards")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_ISSUED_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    last_issued: int
    guards: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Guard]
    def __init__(self, name: _Optional[str] = ..., last_issued: _Optional[int] = ..., guards: _Optional[_Iterable[_Union[_hold_pb2.Guard, _Mapping]]] = ...) -> None: ...

class AdvanceToResponse(_message.Message):
    __slots__ = ("last_issued", "incarnation")
    LAST_ISSUED_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    last_issued: int
    incarnation: int
    def __init__(self, last_issued: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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
    __slots__ = ("sequences", "next_page_token")
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sequences: _containers.RepeatedCompositeFieldContainer[Sequence]
    next_page_token: str
    def __init__(self, sequences: _Optional[_Iterable[_Union[Sequence, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Sequence(_message.Message):
    __slots__ = ("name", "last_issued", "incarnation", "malformed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_ISSUED_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    MALFORMED_FIELD_NUMBER: _ClassVar[int]
    name: str
    last_issued: int
    incarnation: int
    malformed: bool
    def __init__(self, name: _Optional[str] = ..., last_issued: _Optional[int] = ..., incarnation: _Optional[int] = ..., malformed: bool = ...) -> None: ...
