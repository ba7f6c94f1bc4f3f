from sidekeeper.config.v1 import config_pb2 as _config_pb2
from sidekeeper.hold.v1 import hold_pb2 as _hold_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
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
