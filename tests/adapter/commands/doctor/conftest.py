"""An installation for the doctor to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.doctor.installation import Installation
from tests.support.object_apiserver import ObjectApiServer
from tests.support.tls_endpoint import tls_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with ObjectApiServer() as cluster, tls_endpoint() as endpoint:
        yield Installation(cluster, tmp_path, endpoint)
