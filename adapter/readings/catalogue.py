"""The metrics that the APIs serve at one moment, as one immutable value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.rulebook.model import Api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.rulebook.model import Metric, Rule


class Catalogue:
    """All metrics by name. Never changed: another catalogue takes its place, with a higher generation."""

    __slots__ = ("_custom", "_external", "custom", "external", "generation")

    def __init__(self, metrics: Iterable[Metric] = (), generation: int = 0) -> None:
        """Of several metrics with one name, scope and kind of object the last one stays."""
        custom: dict[tuple[str, bool, str], Metric] = {}
        external: dict[str, Metric] = {}
        for metric in metrics:
            if metric.resource is None:
                external[metric.name] = metric
            else:
                custom[metric.resource.qualified, metric.namespaced, metric.name] = metric
        self._custom = custom
        self._external = external
        self.custom: tuple[Metric, ...] = tuple(custom[key] for key in sorted(custom))
        """Ascending by kind of object, scope and name."""
        self.external: tuple[Metric, ...] = tuple(external[key] for key in sorted(external))
        """Ascending by name."""
        self.generation = generation

    def find_custom(self, resource_qualified: str, namespaced: bool, name: str) -> Metric | None:  # noqa: FBT001 - part of the key
        """Return the metric of that name for `pods`, `deployments.apps`, …; None where no rule gives it."""
        return self._custom.get((resource_qualified, namespaced, name))

    def find_external(self, name: str) -> Metric | None:
        """Return the external metric of that name; None where no rule gives it."""
        return self._external.get(name)

    def current(self, metric: Metric) -> Metric | None:
        """Return what has the place of a metric that an earlier catalogue gave; None where nothing has."""
        if metric.rule.api is Api.EXTERNAL or metric.resource is None:
            return self._external.get(metric.name)
        return self._custom.get((metric.resource.qualified, metric.namespaced, metric.name))


def same_rule(one: Rule, other: Rule) -> bool:
    """Tell whether two rules say the same, wherever they stand in the files."""
    return one == replace(other, id=one.id, file=one.file, line=one.line)


def same_metric(one: Metric, other: Metric) -> bool:
    """Tell whether two metrics are the same but for the place of their rule."""
    return one is other or (one == replace(other, rule=one.rule) and same_rule(one.rule, other.rule))
