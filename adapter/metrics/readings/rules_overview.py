"""The state of all rules together at one moment, for the log and for the adapter's own metrics (pure)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adapter.metrics.readings.readings_telemetry import Overview

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.readings.asking.queries import QueryGroup
    from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
    from adapter.metrics.rulebook.model import ResourceRules, Rule, Rulebook


def rules_in_force(states: Iterable[DiscoveredRule], resource: ResourceRules) -> tuple[Rule, ...]:
    """Return all rules in force, each once, although a resource rule makes two metrics."""
    served = {metric.rule.id: metric.rule for metric in resource.metrics}
    return (*(state.rule for state in states), *served.values())


def last_answer(states: Iterable[DiscoveredRule], successes: Mapping[str, float]) -> float:
    """Return when Prometheus last answered anything, in Unix seconds; 0 if it never did.

    `successes` has, by rule, when the last reading of one of its queries was evaluated.
    """
    return max((*(state.succeeded_at or 0.0 for state in states), *successes.values()), default=0.0)


def by_backend(states: Iterable[DiscoveredRule]) -> dict[Backend | None, list[DiscoveredRule]]:
    """Return the rules by the Prometheus that they query; the Prometheus of the flags is always a key."""
    found: dict[Backend | None, list[DiscoveredRule]] = {None: []}
    for state in states:
        found.setdefault(state.rule.backend, []).append(state)
    return found


def overview(
    rulebook: Rulebook,
    states: Collection[DiscoveredRule],
    groups: Collection[QueryGroup],
    *,
    successes: Mapping[str, float],
    failing: frozenset[str],
) -> Overview:
    """Return the gauges about the rules in force and about the metrics that are requested.

    `successes` are those of `last_answer`. `failing` are the ids of rules that were last logged as failing.
    """
    rule_ids = {rule.id for rule in rulebook.resource.rules} | {state.rule.id for state in states}
    failing = failing & rule_ids | {state.rule.id for state in states if state.failure is not None}
    return Overview(
        demanded=len({group.metric.qualified for group in groups}),
        rule_states={
            "ok": len(rule_ids - failing - rulebook.retained.keys()),
            "refused": len(rulebook.refused),
            "failing": len(failing),
            "retained": len(rulebook.retained),
        },
        plans=Counter((group.metric.rule.label_value, kind) for group in groups for kind in group.kinds()),
        last_success=_last_successes(states, {rule: at for rule, at in successes.items() if rule in rule_ids}),
    )


def _last_successes(states: Iterable[DiscoveredRule], successes: Mapping[str, float]) -> dict[str, float]:
    """Return, by rule, when its look-up or one of its queries last succeeded."""
    found = {state.rule.id: state.succeeded_at for state in states if state.succeeded_at is not None}
    return found | {rule: max(moment, found.get(rule, 0.0)) for rule, moment in successes.items()}
