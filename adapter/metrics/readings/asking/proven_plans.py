"""Remembers the plans that are proven for each metric, and the metrics whose plans gave wrong values."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.effects import Remark
from adapter.metrics.rulebook.model import Metric, Plan, PlanKind
from adapter.metrics.rulebook.plans import plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.metrics.rulebook.model import Rule


class ProvenPlans:
    """The plans of metrics. Not thread-safe: the owner must lock."""

    def __init__(self) -> None:
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._users: Counter[tuple[object, ...]] = Counter()
        """Number of groups of requests by plan; those of objects with different selectors share one."""
        self._distrusted: dict[tuple[object, ...], Rule] = {}
        """The distrusted metrics by identity, each with its rule."""
        self._remarks: list[Remark] = []

    def plan(self, metric: Metric, labels: frozenset[str]) -> Plan:
        """Return the plan for requests that select by these labels; it is proven once while somebody uses it."""
        key = _key(metric, labels)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = plan_of(metric, labels)
            # Most plans are wide; any other is worth logging with its reason. The plan of an object is never wide.
            is_usual = plan.kind is PlanKind.WIDE or metric.rule.confinement is not None
            level = logging.DEBUG if is_usual else logging.INFO
            text = f"{metric.qualified} ({metric.rule.id}): {plan.kind} plan: {plan.reason}"
            self._remarks.append(Remark(level, text))
        return plan

    def use(self, metric: Metric, labels: frozenset[str]) -> None:
        """Note that one more group of requests uses the plan."""
        self._users[_key(metric, labels)] += 1

    def release(self, metric: Metric, labels: frozenset[str]) -> None:
        """Note that a group no longer uses the plan, and forget a plan without users.

        Requesters choose the labels, and metrics come and go with the series and objects that make them.
        """
        key = _key(metric, labels)
        self._users[key] -= 1
        if self._users[key] <= 0:
            del self._users[key]
            self._plans.pop(key, None)

    def distrust(self, metric: Metric) -> None:
        """Note that a wider plan of the metric gave other values than its exact query."""
        self._distrusted[identity_of(metric)] = metric.rule

    def distrusts(self, metric: Metric) -> bool:
        """Return whether a wider plan of the metric gave other values."""
        return bool(self._distrusted) and identity_of(metric) in self._distrusted

    def distrusted_rules(self) -> Counter[str]:
        """Return the number of distrusted metrics of each rule, by its id."""
        return Counter(rule.label_value for rule in self._distrusted.values())

    def keep_objects(self, rules: Iterable[Rule]) -> None:
        """Forget which metrics of MetricRule objects are distrusted, except those of these rules.

        A changed object is to its metrics what a reload is to those of the files.
        """
        if self._distrusted:
            kept = {(rule.id, rule.metrics_query.text) for rule in rules}
            self._distrusted = {
                key: rule
                for key, rule in self._distrusted.items()
                if rule.confinement is None or (rule.id, rule.metrics_query.text) in kept
            }

    def take_remarks(self) -> list[Remark]:
        """Return what should be logged about plans since the last call."""
        remarks, self._remarks = self._remarks, []
        return remarks

    def forget(self) -> None:
        """Forget all plans, and which metrics are distrusted."""
        self._plans.clear()
        self._users.clear()
        self._distrusted.clear()


def identity_of(metric: Metric) -> tuple[object, ...]:
    """Return what a plan depends on: two metrics with the same identity are one."""
    return (
        metric.rule.id,
        metric.rule.api,
        metric.qualified,
        metric.series,
        metric.object_label,
        metric.namespace_label,
        # A request that began before a reload may arrive after it, and then does not match the current rule.
        metric.rule.metrics_query.text,
        metric.rule.times_query,
        metric.rule.backend,
    )


def _key(metric: Metric, labels: frozenset[str]) -> tuple[object, ...]:
    return (*identity_of(metric), labels)
