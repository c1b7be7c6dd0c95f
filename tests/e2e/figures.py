"""Figures that a test states and does not judge: they are shown though it passes, and kept in pytest's report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def state(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], None]:
    """State what was measured: `state("one replica killed", "3 of 900 requests failed")`."""

    def shown(what: str, figure: str) -> None:
        record_property(what, figure)
        with capsys.disabled():
            print(f"\n  {what}: {figure}")  # noqa: T201 - shown to whoever runs the suite

    return shown
