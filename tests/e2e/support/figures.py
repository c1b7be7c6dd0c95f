"""Figures that a test states without judging them: kept in pytest's report, and shown at the end even if all pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def state(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Return a function that states what was measured: `state("one replica killed", "3 of 900 requests failed")`."""

    def stated(what: str, figure: str) -> None:
        record_property(what, figure)

    return stated


def stated_in(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    """Yield what the tests of a run have stated, one line each, from all processes."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield from (f"{what}: {figure}" for what, figure in report.user_properties)
