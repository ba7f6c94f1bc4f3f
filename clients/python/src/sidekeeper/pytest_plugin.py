"""A sidecar as a fixture of pytest. In conftest.py:

    pytest_plugins = ["sidekeeper.pytest_plugin"]

It does not register by itself: that would load gRPC into every run of pytest where the client is installed, before a conftest.py could
set what gRPC reads of the environment once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidekeeper._transport import ADDRESS_VARIABLE
from sidekeeper.testing import Sidecar


@pytest.fixture
def sidekeeper_sidecar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sidecar]:
    """A sidecar of the test's own, with nothing in it. Until the test ends SIDEKEEPER_ADDRESS says where it is, so that clients of the
    application find it."""
    with Sidecar() as sidecar:
        monkeypatch.setenv(ADDRESS_VARIABLE, sidecar.address)
        yield sidecar
