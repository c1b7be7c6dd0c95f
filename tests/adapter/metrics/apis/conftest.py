"""A server with metrics of each kind of object."""

from __future__ import annotations

import pytest

from tests.adapter.metrics.apis.fakes import FakeReadings, Server
from tests.adapter.metrics.apis.handler_harness import CATALOGUE


@pytest.fixture(name="server")
def _server() -> Server:
    return Server(FakeReadings(CATALOGUE))
