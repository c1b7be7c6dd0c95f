"""The metrics of the MetricRule objects of one namespace, and what is known of each object (pure).

Nothing here depends on another namespace: quotas are those of the namespace, and if two objects give a metric the same
name, the older one serves it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.metrics.readings.catalogue.catalogue import Catalogue, can_be_narrowed
from adapter.metrics.rulebook.objects.rule_object_verdict import (
    STATES,
    KnownObject,
    Reason,
    RuleRefusal,
    TakenName,
    too_many_rules,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.rulebook.model import Metric
    from adapter.metrics.rulebook.objects.rule_object import RuleObject

MOST_METRICS = 100
"""Limit on the metrics of one object. Those whose series vanished are kept for a while only as far as it allows."""
MOST_SERIES_METRICS = 1000
"""Limit on the metrics of one object that its series give, even if they have the same name: one for each name of a
series and each kind of object. As many more are kept for a while after their series have vanished."""
_LONGEST_NAME = 253
"""Longest name of a metric in characters, the same as for an object."""
_OF_FILES = "the rule files"
_NAMESPACES_A_SLICE = 20


@dataclass(frozen=True, slots=True)
class ObjectState:
    """One object with the results of its look-ups."""

    found: RuleObject
    discovered: DiscoveredRule | None = None
    """The state of its rule; None if the rule is refused."""
    series: int | None = None
    """Number of series in the last good look-up."""


@dataclass(frozen=True, slots=True)
class NamespaceObjects:
    """The objects of one namespace, the oldest first, and the catalogue of their metrics."""

    known: tuple[tuple[KnownObject, tuple[Metric, ...]], ...] = ()
    """Each object, with the metrics that it serves, except those whose names the files serve."""
    catalogue: Catalogue = Catalogue()  # noqa: RUF009 - never changed
    look_ups: tuple[LookUp, ...] = ()
    """The result of the last look-up of each rule's series."""

    def judge(self, files: Catalogue) -> Iterator[KnownObject]:
        """Yield what is known of each object; a name that the rule files serve counts as taken by them."""
        for known, metrics in self.known:
            taken = {metric.qualified for metric in metrics if _is_served(metric, files)}
            names = tuple(dict.fromkeys(metric.qualified for metric in metrics if metric.qualified not in taken))
            of_files = (TakenName(name, _OF_FILES) for name in sorted(taken))
            yield replace(known, metrics=names, taken=(*of_files, *known.taken))


def namespace_objects(states: Sequence[ObjectState], settings: ReadingSettings, generation: int) -> NamespaceObjects:
    """Return the objects of one namespace; `generation` is that of their catalogue."""
    known: list[tuple[KnownObject, tuple[Metric, ...]]] = []
    owners: dict[tuple[str, bool], str] = {}
    series = 0
    for number, state in enumerate(sorted(states, key=lambda each: each.found.content.age)):
        metrics = _metrics(state)
        refusal = _over_quota(state, number, series, metrics, settings)
        found = KnownObject(state.found, refusal, series=state.series, failed=_has_failed(state))
        if refusal is not None:
            known.append((found, ()))
            continue
        series += state.series or 0
        shown = state.found.content.shown
        own = tuple(metric for metric in metrics if owners.setdefault(_key(metric), shown) == shown)
        lost = sorted(
            {(metric.qualified, owners[_key(metric)]) for metric in metrics}
            - {(metric.qualified, shown) for metric in own}
        )
        taken = tuple(TakenName(name, owner) for name, owner in lost)
        known.append((replace(found, taken=taken), own))
    catalogue = Catalogue((metric for _, metrics in known for metric in metrics), generation)
    rules = (state.discovered for state in states if state.discovered is not None)
    look_ups = tuple(each.last_look_up for each in rules)
    return NamespaceObjects(tuple(known), catalogue, look_ups)


def states_of_objects(
    namespaces: Mapping[str, NamespaceObjects], unread: int, files: Catalogue, pace: Pace
) -> dict[str, int]:
    """Return how many objects of all namespaces are in each state; those unread because of a quota are refused."""
    states: Counter[str] = Counter({"refused": unread})
    for part in pace.slices(namespaces.values(), _NAMESPACES_A_SLICE):
        states.update(verdict_of(known).state for objects in part for known in objects.judge(files))
    return {state: states[state] for state in STATES}


def oldest_names(objects: Iterable[RuleObject], settings: ReadingSettings) -> frozenset[str]:
    """Return the names of those objects of a namespace that may be served: the oldest ones, if there are too many."""
    by_age = sorted(objects, key=lambda found: found.content.age)
    return frozenset(found.content.name for found in by_age[: settings.max_rule_objects_per_namespace])


def _metrics(state: ObjectState) -> tuple[Metric, ...]:
    """Return the metrics that an object can serve within its namespace, the last of several with a name being served.

    A metric whose series vanished leaves its name to one whose series are there, as after an upgrade that renames them.
    """
    discovered = state.discovered
    if discovered is None:
        return ()
    static = tuple(filter(_can_be_served, discovered.static.values()))
    present = tuple(filter(_can_be_served, discovered.present()))
    live = {metric.name for metric in (*static, *present)}
    # Names that nothing has any more must not count against those that replace them.
    kept = {*live, *_last_vanished_names(discovered, live, MOST_METRICS - len(live))}
    vanished = (metric for metric in discovered.vanished_metrics() if metric.name in kept and _can_be_served(metric))
    return (*static, *vanished, *present)


def _last_vanished_names(discovered: DiscoveredRule, live: set[str], most: int) -> list[str]:
    """Return the names, other than live ones, whose series vanished last; the same ones in each replica."""
    when: dict[str, float] = {}
    for key, metric in discovered.found.items():
        if key in discovered.vanished_at and metric.name not in live and _can_be_served(metric):
            when[metric.name] = max(discovered.vanished_at[key], when.get(metric.name, -math.inf))
    return sorted(when, key=lambda name: (-when[name], name))[: max(most, 0)]


def _can_be_served(metric: Metric) -> bool:
    return len(metric.name) <= _LONGEST_NAME and _is_in_namespaces(metric)


def _is_in_namespaces(metric: Metric) -> bool:
    return metric.resource is None or metric.resource.namespaced or can_be_narrowed(metric)


def _over_quota(
    state: ObjectState, number: int, series: int, metrics: Sequence[Metric], settings: ReadingSettings
) -> RuleRefusal | None:
    """Return which quota the object exceeds; `number` and `series` are how many older objects and series there are."""
    most = settings.max_rule_objects_per_namespace
    if number >= most:
        return too_many_rules(most)
    if state.discovered is not None and state.discovered.number_present > MOST_SERIES_METRICS:
        # Without their number: the look-up ends once there are more, at another one in each replica.
        message = (
            f"its series have more than {MOST_SERIES_METRICS:,} names, counted once for each kind of object that their "
            "labels name: narrow `seriesQuery`"
        )
        return RuleRefusal(Reason.TOO_MANY_METRICS, message)
    names = len({metric.name for metric in metrics})
    if names > MOST_METRICS:
        message = f"it would serve {names} metrics, but at most {MOST_METRICS} are allowed: narrow `seriesQuery`"
        return RuleRefusal(Reason.TOO_MANY_METRICS, message)
    most = settings.max_series_of_rule_objects_per_namespace
    if series + (state.series or 0) > most:
        message = (
            f"it selects {state.series:,} series, {series:,} are selected by older MetricRules, and a namespace may "
            f"have {most:,}: narrow `seriesQuery`"
        )
        return RuleRefusal(Reason.TOO_MANY_SERIES, message)
    return None


def _is_served(metric: Metric, files: Catalogue) -> bool:
    """Return whether the files serve a metric of that name to requests in a namespace."""
    if metric.resource is None:
        return files.find_external(metric.name) is not None
    return files.find_custom(metric.resource.qualified, True, metric.name) is not None  # noqa: FBT003 - in a namespace


def _has_failed(state: ObjectState) -> bool:
    return state.discovered is not None and state.discovered.failure is not None


def _key(metric: Metric) -> tuple[str, bool]:
    return metric.qualified, metric.resource is None
