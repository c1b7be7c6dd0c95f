"""Clients of scripted servers, and of a real one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapter.foundation.sources.prometheus.asking_client import ClientOf
    from tests.support.prometheus import ScrapedPrometheus


@pytest.fixture
def client_of() -> Iterator[ClientOf]:
    """Yield a function that makes a client for an address; all are closed at the end of the test."""
    with ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(PrometheusClient(PrometheusSettings(url, **options)))


@pytest.fixture
def client(prometheus: ScrapedPrometheus) -> Iterator[PrometheusClient]:
    """Yield a client of the Prometheus that the test module starts; it is closed at the end of the test."""
    with PrometheusClient(PrometheusSettings(prometheus.url)) as client:
        yield client
