"""Removals that an earlier configuration began are undone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from recommender.running.sizes.removal_marks import REMOVAL
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterState


class StopAfter(threading.Event):
    """Is set after some steps, and does not wait in between."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as the standard library has it
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("mark", ["", "{"], ids=["readable", "not readable"])
def test_a_mark_that_is_left_over_is_removed_although_no_removal_is_configured_any_more(mark: str) -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    if mark:
        harness.api.nodes["n2"]["metadata"]["annotations"][REMOVAL] = mark
    harness.removals.is_configured, harness.stopped = lambda: False, "no recommendation is configured"
    harness.removals.run(StopAfter(steps=1))
    assert harness.is_usable("n2")
    harness.later(10)
    assert harness.group.changes == []


@pytest.mark.parametrize("is_configured", [True, False])
def test_removals_are_advanced_each_second_only_while_removals_are_configured(*, is_configured: bool) -> None:
    harness = ProviderHarness()
    harness.removals.is_configured = lambda: is_configured
    steps: list[ClusterState] = []

    def seen() -> ClusterState:
        steps.append(harness.api.seen())
        return steps[-1]

    harness.removals.cluster = seen
    harness.removals.run(StopAfter(steps=61))
    assert len(steps) == (61 if is_configured else 2)
