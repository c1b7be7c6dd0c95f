"""A cluster for replicas that keep their certificate."""

from __future__ import annotations

import pytest

from tests.adapter.metrics.identity.certificates.keeping_harness import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
