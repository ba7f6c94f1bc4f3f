"""The example of an object store does what it says, on a server that speaks S3."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import sidekeeper

from conftest import PATIENT, ROOT, Sidecar


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of versitygw, which keeps objects in a folder."""
    program = ROOT / ".cache" / "versitygw"
    build = ["go", "-C", str(ROOT / "tools/versitygw"), "build", "-o", str(program), "github.com/versity/versitygw/cmd/versitygw"]
    subprocess.run(build, check=True)
    objects, meta = tmp_path_factory.mktemp("objects"), tmp_path_factory.mktemp("meta")
    address = f"127.0.0.1:{_free_port()}"
    command = [str(program), "--quiet", "--port", address, "posix", "--sidecar", str(meta), str(objects)]
    credentials = {"ROOT_ACCESS_KEY": "test", "ROOT_SECRET_KEY": "testtest"}
    with subprocess.Popen(command, env={**os.environ, **credentials}) as server:
        try:
            _answers(server, address)
            yield boto3.client(
                "s3",
                endpoint_url=f"http://{address}",
                aws_access_key_id="test",
                aws_secret_access_key="testtest",
                region_name="us-east-1",
                config=Config(connect_timeout=PATIENT, read_timeout=PATIENT),
            )
        finally:
            server.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _connects(host: str, port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex((host, port)) == 0


def _answers(server: subprocess.Popen[bytes], address: str) -> None:
    until = time.monotonic() + PATIENT
    host, port = address.split(":")
    while not _connects(host, int(port)):
        assert server.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "fencing"))
    import bucket  # type: ignore[import-not-found]

    module: ModuleType = bucket
    return module


def _status(s3: Any, **put: Any) -> int:
    try:
        status: int = s3.put_object(Bucket="facts", Key="stock", **put)["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status


def test_the_server_answers_as_the_page_on_fencing_says(s3: Any) -> None:
    s3.create_bucket(Bucket="facts")
    assert [_status(s3, Body=b"10", IfNoneMatch="*") for _ in range(2)] == [200, 412]
    version = s3.get_object(Bucket="facts", Key="stock")["ETag"]
    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda number: _status(s3, Body=str(number).encode(), IfMatch=version), range(16)))
    assert sorted(statuses) == [200] + [412] * 15
    s3.delete_object(Bucket="facts", Key="stock")
    assert _status(s3, Body=b"10", IfMatch=version) == 404


def _content(s3: Any) -> bytes:
    content: bytes = s3.get_object(Bucket="shop", Key="stock")["Body"].read()
    return content


def test_the_late_write_of_a_holder_that_was_frozen_is_refused_and_damages_without_a_condition(
    s3: Any, example: ModuleType, sidecar: Sidecar
) -> None:
    s3.create_bucket(Bucket="shop")
    shop = example.Bucket(s3, "shop")
    with sidekeeper.Client(sidecar.address) as first, sidekeeper.Client(sidecar.address) as second:
        frozen = first.acquire("orders")
        shop.create("stock", b"10", frozen.ticket())
        with pytest.raises(example.StaleError, match="has changed since"):
            shop.create("stock", b"11", frozen.ticket())

        def sells_one_after_a_pause(apples: bytes) -> bytes:
            sidecar.expire("orders")  # in the pause, another one has the lock
            with second.lock("orders") as lock:
                shop.change("stock", lock.ticket(), lambda content: str(int(content) - 5).encode())
            return str(int(apples) - 1).encode()

        with pytest.raises(example.StaleError, match="it has changed since it was read"):
            shop.change("stock", frozen.ticket(), sells_one_after_a_pause)
        assert _content(s3) == b"5"
        with pytest.raises(example.StaleError, match=f"token {frozen.fencing_token} of orders is stale"):
            shop.change("stock", frozen.ticket(), lambda content: content)  # who reads again is late all the same
        assert _content(s3) == b"5"

        s3.put_object(Bucket="shop", Key="stock", Body=b"9")  # as programs do that trust their lock
        assert _content(s3) == b"9", "five apples have been sold twice"
