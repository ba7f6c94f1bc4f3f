"""Errors are made from domain and reason."""

from __future__ import annotations

import pickle

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc import error_details_pb2, status_pb2

import sidekeeper
from sidekeeper import fence
from sidekeeper._errors import BY_REASON, from_status
from sidekeeper.errors.v1 import errors_pb2


def test_each_reason_has_a_class_that_is_named_after_it() -> None:
    reasons = {name.removeprefix("REASON_") for name in errors_pb2.Reason.keys()} - {"UNSPECIFIED"}
    assert set(BY_REASON) == reasons
    for reason, kind in BY_REASON.items():
        assert kind.__name__ == "".join(map(str.capitalize, reason.split("_"))) + "Error"
        assert getattr(sidekeeper, kind.__name__) is kind
        assert kind.__name__ in sidekeeper.__all__


def _details(*messages: object) -> tuple[tuple[str, bytes], ...]:
    status = status_pb2.Status()
    for message in messages:
        packed = Any()
        packed.Pack(message)  # type: ignore[arg-type]
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def test_details_decide() -> None:
    info = error_details_pb2.ErrorInfo(reason="KEY_NOT_FOUND", domain="sidekeeper", metadata={"key": "a"})
    error = from_status(grpc.StatusCode.NOT_FOUND, "LOCK_HELD: no such key", _details(info))
    assert isinstance(error, sidekeeper.KeyNotFoundError)
    assert error.metadata == {"key": "a"}
    assert str(error) == "NOT_FOUND (KEY_NOT_FOUND): no such key"


def test_another_domain_does_not() -> None:
    info = error_details_pb2.ErrorInfo(reason="KEY_NOT_FOUND", domain="example.org")
    error = from_status(grpc.StatusCode.NOT_FOUND, "nothing there", _details(info))
    assert type(error) is sidekeeper.SidekeeperError
    assert error.reason == ""


def test_without_details_the_message_names_the_reason() -> None:
    error = from_status(grpc.StatusCode.FAILED_PRECONDITION, "LOCK_HELD: somebody holds it", None)
    assert isinstance(error, sidekeeper.LockHeldError)
    assert error.message == "somebody holds it"


def test_a_reason_of_a_newer_sidecar_is_an_error_like_any_other() -> None:
    info = error_details_pb2.ErrorInfo(reason="MOON_FULL", domain="sidekeeper")
    error = from_status(grpc.StatusCode.ABORTED, "MOON_FULL: try tomorrow", _details(info))
    assert type(error) is sidekeeper.SidekeeperError


def test_an_error_goes_from_one_process_to_another() -> None:
    refused = fence.RefusedError(fence.Reason.STALE, "it is stale", sidekeeper.Ticket("orders", sidekeeper.Token(5)), 7)
    again = pickle.loads(pickle.dumps(refused))
    assert (str(again), again.code, again.ticket, again.largest) == ("it is stale", refused.code, refused.ticket, 7)

    held = sidekeeper.LockHeldError(
        grpc.StatusCode.FAILED_PRECONDITION, "b has it", {"holder": "b"}, [sidekeeper.FieldError("name", "rule")]
    )
    for error in (held, sidekeeper.ForkedError("make another one"), sidekeeper.LostError("lock orders", held)):
        there = pickle.loads(pickle.dumps(error))
        assert (type(there), str(there)) == (type(error), str(error))
    assert (there.what, there.cause.code, there.cause.metadata, there.cause.fields) == (
        "lock orders",
        held.code,
        held.metadata,
        held.fields,
    )
