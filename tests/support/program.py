"""Fixtures for the running program, for suites that have a fixture `adapter` of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.serving import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.caller import Caller
    from tests.support.serving import Adapter


@pytest.fixture(scope="session")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    """Return the certificates of all parties, for all tests that change none of them."""
    return Trust.made_in(tmp_path_factory.mktemp("trust"))


@pytest.fixture
def caller(adapter: Adapter) -> Iterator[Caller]:
    """Yield a connection through the front proxy."""
    with adapter.caller() as caller:
        yield caller
