"""The metrics that the APIs serve at one moment, as one immutable value."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.time.pace import UNPACED, Pace
from adapter.metrics.rulebook.model import Api, Metric, ResourceRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.objects.resources import Resource

NO_RESOURCE_RULES = ResourceRules()

_SORTED_A_SLICE = 500
_NAMESPACES = "namespaces"

K = TypeVar("K", str, tuple[str, bool, str])


class Catalogue:
    """All metrics by name. Never changed: another catalogue takes its place, with a higher generation."""

    __slots__ = ("_custom", "_external", "_narrowed", "_usage", "custom", "external", "generation", "resource")

    def __init__(
        self,
        metrics: Iterable[Metric] = (),
        generation: int = 0,
        pace: Pace = UNPACED,
        resource: ResourceRules = NO_RESOURCE_RULES,
    ) -> None:
        """Of several metrics with the same name, scope and kind of object, the last one stays.

        `pace` lets a process serve requests while thousands of metrics are sorted.
        """
        self.resource = resource
        """The rules of metrics.k8s.io; empty if there are none."""
        self._usage = {metric.qualified: metric for metric in resource.metrics}
        custom: dict[tuple[str, bool, str], Metric] = {}
        external: dict[str, Metric] = {}
        for part in pace.timed(_keyed_metrics(metrics)):
            for key, metric in part:
                if key is None:
                    external[metric.name] = metric
                else:
                    custom[key] = metric
        self._custom = custom
        self._external = external
        self._narrowed: dict[tuple[str, str], Metric | None] = {}
        self.custom: tuple[Metric, ...] = _sort_by_key(custom, pace)
        """The custom metrics, in ascending order of kind of object, scope and name."""
        self.external: tuple[Metric, ...] = _sort_by_key(external, pace)
        """The external metrics, in ascending order of their names."""
        self.generation = generation

    def find_custom(self, resource_qualified: str, namespaced: bool, name: str) -> Metric | None:  # noqa: FBT001 - part of the key
        """Return the metric of that name for `pods`, `deployments.apps`, …; None if no rule provides it.

        A metric of cluster-scoped objects also exists within namespaces: see `metric_in_namespace`.
        """
        found = self._custom.get((resource_qualified, namespaced, name))
        if found is not None or not namespaced:
            return found
        key = resource_qualified, name
        if key not in self._narrowed:
            whole = self._custom.get((resource_qualified, False, name))
            if whole is None:
                return None
            # One object for everybody who asks, made only for metrics that are requested: there may be thousands.
            self._narrowed.setdefault(key, metric_in_namespace(whole))
        return self._narrowed[key]

    def find_external(self, name: str) -> Metric | None:
        """Return the external metric of that name; None if no rule provides it."""
        return self._external.get(name)

    def usage_of(self, kind: Resource) -> tuple[Metric, ...]:
        """Return the served metrics of the resource usage of pods or nodes."""
        return tuple(metric for metric in self._usage.values() if metric.resource == kind)

    def current(self, metric: Metric) -> Metric | None:
        """Return the current version of a metric from an earlier catalogue; None if there is none."""
        if metric.rule.api is Api.RESOURCE:
            return self._usage.get(metric.qualified)
        if metric.rule.api is Api.EXTERNAL or metric.resource is None:
            return self._external.get(metric.name)
        return self.find_custom(metric.resource.qualified, metric.namespaced, metric.name)


def metric_in_namespace(metric: Metric) -> Metric | None:
    """Return a cluster-scoped metric restricted to the series of one namespace; None if no label has the namespace.

    An autoscaler requests the metric of any object, except that of a namespace itself, within its own namespace. Access
    is granted by namespace there, so series of other namespaces must not count; prometheus-adapter restricts the query
    in the same way.
    """
    if not can_be_narrowed(metric):
        return None
    return replace(metric, namespace_label=metric.narrowing_label, narrowed=True)


def can_be_narrowed(metric: Metric) -> bool:
    """Return whether `metric_in_namespace` returns a metric."""
    resource = metric.resource
    return metric.narrowing_label is not None and resource is not None and resource.qualified != _NAMESPACES


def same_metric(one: Metric, other: Metric) -> bool:
    """Return whether two metrics are the same apart from the place of their rule."""
    return one is other or (one == replace(other, rule=one.rule) and one.rule.content == other.rule.content)


def _keyed_metrics(metrics: Iterable[Metric]) -> Iterator[tuple[tuple[str, bool, str] | None, Metric]]:
    """Yield metrics with their keys; None for an external metric, whose key is its name."""
    for metric in metrics:
        resource = metric.resource
        yield None if resource is None else (resource.qualified, metric.namespaced, metric.name), metric


def _sort_by_key(metrics: Mapping[K, Metric], pace: Pace) -> tuple[Metric, ...]:
    """Return the metrics in ascending order of their keys.

    They are sorted in runs that are merged: one sort of 20,000 keys blocks the interpreter for 50 ms.
    """
    runs = [sorted(keys) for keys in pace.slices(metrics, _SORTED_A_SLICE)]
    ascending: list[Metric] = []
    for part in pace.timed(metrics[key] for key in heapq.merge(*runs)):
        ascending += part
    return tuple(ascending)
