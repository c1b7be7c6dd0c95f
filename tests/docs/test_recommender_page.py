"""The page of the recommender lists what the program knows, and its example works."""

from __future__ import annotations

import re

import pytest

from adapter.foundation.sources.prometheus.backends.backend_settings import PROMETHEUS
from recommender.configuration import entry, reading
from recommender.configuration.reading import read_configuration
from recommender.decisions.constraints.brakes import MAX_CHANGES, MAX_STEP, PAUSED, ROLLOUT
from recommender.decisions.record import Status, TargetAction
from tests.support.checkout import CHECKOUT

PAGE = (CHECKOUT / "docs" / "recommender.md").read_text()


@pytest.mark.parametrize(
    "key",
    [each.key for part in (reading.CONFIGURATION, entry.ENTRY, PROMETHEUS) for each in part.keys],
)
def test_every_key_has_a_row(key: str) -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert re.search(rf"[`.]{key}[`.]", " ".join(rows))


@pytest.mark.parametrize("value", [*Status, *TargetAction])
def test_every_status_and_action_has_a_row(value: str) -> None:
    assert f"\n| `{value}` |" in PAGE


def test_the_constraints_are_listed_in_their_order() -> None:
    assert ", ".join(f"`{name}`" for name in (ROLLOUT, MAX_STEP, MAX_CHANGES, PAUSED)) in " ".join(PAGE.split())


def test_the_example_is_valid() -> None:
    example = PAGE.partition("```yaml\n")[2].partition("```")[0]
    found = read_configuration(example, "recommender.yaml")
    assert [each.policy.name for each in found.recommendations] == ["coredns"]
    assert found.refused == ()
