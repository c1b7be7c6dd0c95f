"""The overview of all rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
from adapter.metrics.readings.rules_overview import last_answer, overview, rules_in_force
from tests.support.readings import rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Rulebook

USAGE = """
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (cpu_used{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_cpu_used{<<.LabelMatchers>>})
    resources: {overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
"""


@pytest.fixture
def rulebook() -> Rulebook:
    """Return the rules of other tests, and one resource rule."""
    return replace(rulebook_of(), resource=rulebook_of(USAGE).resource)


def states_of(rulebook: Rulebook) -> list[DiscoveredRule]:
    return [DiscoveredRule(rule, {}) for rule in rulebook.rules]


def test_a_resource_rule_for_pods_and_nodes_counts_as_one_rule(rulebook: Rulebook) -> None:
    ids = [rule.id for rule in rules_in_force(states_of(rulebook), rulebook.resource)]
    assert ids == [*(rule.id for rule in rulebook.rules), "resourceRules.cpu"]


@pytest.mark.parametrize(
    ("look_up", "successes", "last"),
    [(None, {}, 0.0), (7.0, {}, 7.0), (7.0, {"rules[0]": 9.0}, 9.0), (7.0, {"rules[0]": 5.0}, 7.0)],
)
def test_the_last_answer_is_the_later_one_of_look_ups_and_queries(
    rulebook: Rulebook, look_up: float | None, successes: dict[str, float], last: float
) -> None:
    first, *others = states_of(rulebook)
    first.succeeded_at = look_up
    assert last_answer([first, *others], successes) == last


def test_rules_are_counted_by_state_and_removed_ones_are_not_counted(rulebook: Rulebook) -> None:
    first, second, *others = states_of(rulebook)
    first.failure, first.succeeded_at, second.succeeded_at = "no", 3.0, 4.0
    overview_ = overview(
        rulebook,
        [first, second, *others],
        [],
        successes={first.rule.id: 5.0, second.rule.id: 1.0, "rules[99]": 6.0, "resourceRules.cpu": 2.0},
        failing=frozenset({"resourceRules.cpu", "rules[99]"}),
    )
    number = len(rulebook.rules) + 1
    assert overview_.rule_states == {"ok": number - 2, "refused": 0, "failing": 2, "retained": 0}
    assert overview_.last_success == {first.rule.id: 5.0, second.rule.id: 4.0, "resourceRules.cpu": 2.0}
