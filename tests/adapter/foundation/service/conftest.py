from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapter.foundation.service.servers import Certificates, Server, make_certificates, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Server]:
    """Yield a server that the tests of a module share, and that they leave as they found it."""
    with running_server(tmp_path_factory.mktemp("server"), certificates) as running:
        yield running
