from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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
