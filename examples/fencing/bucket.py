"""Objects in S3, guarded by a fencing token and by the version that a change was computed from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from sidekeeper import Ticket, fence


class StaleError(Exception):
    """The object has changed since it was read, or was changed by a later holder."""


class Bucket:
    """A bucket whose objects say with which tickets they were written."""

    def __init__(self, s3: Any, name: str) -> None:
        self._s3 = s3
        self._name = name

    def create(self, key: str, content: bytes, ticket: Ticket) -> None:
        """Makes an object that is not there yet."""
        self._put(key, content, ticket, IfNoneMatch="*")

    def change(self, key: str, ticket: Ticket, edit: Callable[[bytes], bytes]) -> None:
        """Makes something else of an object's content. Raises StaleError, and changes nothing, if a later holder has been there, before
        edit begins or until it has ended."""
        found = self._s3.get_object(Bucket=self._name, Key=key)
        for seen in fence.parse([found["Metadata"].get(fence.HEADER, "")]):
            if seen.lock == ticket.lock and seen.fencing_token > ticket.fencing_token:
                raise StaleError(f"{key}: token {ticket.fencing_token} of {ticket.lock} is stale: {seen.fencing_token} has written")
        self._put(key, edit(found["Body"].read()), ticket, IfMatch=found["ETag"])

    def _put(self, key: str, content: bytes, ticket: Ticket, **condition: str) -> None:
        written = {fence.HEADER: fence.render([ticket])}
        try:
            self._s3.put_object(Bucket=self._name, Key=key, Body=content, Metadata=written, **condition)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412):  # 409: another write is under way
                raise
            raise StaleError(f"{key}: it has changed since it was read") from error
