"""Converts the samples of the query of a load to loads of targets (pure)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.names import is_namespace_name, is_subdomain_name
from adapter.foundation.reports.counts import agreeing, count_of, first_names
from recommender.decisions.loads.load_inputs import PodConnections
from recommender.decisions.record import TargetReference
from recommender.decisions.targets.fair_order import in_fair_order
from recommender.running.loads.histories.sample_ring import LARGEST_SAMPLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from recommender.kinds.predictive.predictive_settings import Connections, ForEach

Target: TypeAlias = TargetReference | None
"""A target; None stands for the only target of a recommendation without `forEach`."""

POD_LABEL: Final = "pod"
_NAMED: Final = 3
"""The largest number of series or targets that a message names."""


class LoadSeriesError(Exception):
    """The series of a query do not fit the recommendation; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class TargetLoads:
    """The loads of targets in one answer of Prometheus."""

    values: Mapping[Target, float] = field(default_factory=dict)
    times: Mapping[Target, float] = field(default_factory=dict)
    """When the data of each value were observed, in Unix seconds."""
    unknown: Mapping[Target, str] = field(default_factory=dict)
    """Targets that have a series but no load, with the reason."""
    left_out: int = 0
    """Series that belong to no target, or to a target beyond the limit."""
    problems: tuple[str, ...] = ()
    """Why series are left out, in sentences that name some of them."""


def target_of(labels: Mapping[str, str], for_each: ForEach | None) -> Target:
    """Return the target of a series. Raises LoadSeriesError, which states what is wrong, if the series has no target.

    The names in labels are checked, since whoever writes the labels of a metric must not be able to choose the path of
    a request to the API server.
    """
    if for_each is None:
        return None
    namespace, name = labels.get(for_each.namespace_label, ""), labels.get(for_each.name_label, "")
    if not namespace or not name:
        raise LoadSeriesError(f"lack the label {for_each.name_label if namespace else for_each.namespace_label}")
    if not is_namespace_name(namespace):
        raise LoadSeriesError(f"have a label {for_each.namespace_label} that cannot be the name of a namespace")
    if for_each.only_namespace and namespace != for_each.only_namespace:
        raise LoadSeriesError(f"name another namespace than {for_each.only_namespace}, which has the object")
    if not is_subdomain_name(name):
        raise LoadSeriesError(f"have a label {for_each.name_label} that cannot be the name of a {for_each.kind}")
    return TargetReference(for_each.api_version, for_each.kind, namespace, name)


def loads_of(
    samples: Sequence[Sample], for_each: ForEach | None, query: str, known: Collection[Target] = frozenset()
) -> TargetLoads:
    """Return the loads of the targets. Raises LoadSeriesError if the answer as a whole cannot be used.

    If there are too many targets, those in `known` come first, so that new series do not take away a target's load. The
    other places are given to the namespaces in turn.
    """
    if for_each is None:
        if not samples:
            raise LoadSeriesError(f"{query} has no value at present: check that its series exist")
        if len(samples) != 1:
            raise LoadSeriesError(
                f"{query} has {len(samples)} values: write an expression that has exactly one, such as sum(…),"
                " or add forEach"
            )
        return _check_values({None: samples[0]}, {}, 0, ())
    found, without = _by_target(samples, for_each)
    problems = [
        f"series of {query} {reason}, and are left out: {len(labels)}, such as {first_names(labels, _NAMED)}"
        for reason, labels in without.items()
    ]
    twice = {
        target: f"{len(values)} series of {query} belong to it: aggregate them, such as by sum by (…)"
        for target, values in found.items()
        if len(values) > 1
    }
    if twice:
        problems.append(
            f"{count_of(len(twice), 'target')} {agreeing(len(twice), 'has', 'have')} several series, and no load: "
            f"{first_names(map(str, twice), _NAMED)}"
        )
    by_name = sorted(found, key=lambda target: (target.namespace, target.name))
    present = [target for target in by_name if target in known]
    ordered = in_fair_order(present) + in_fair_order(target for target in by_name if target not in known)
    surplus = ordered[for_each.max_targets :]
    if surplus:
        problems.append(_surplus_text(query, ordered, surplus, for_each.max_targets))
    too_many = f"it is over the limit of forEach.max, {for_each.max_targets:,} targets"
    values: dict[Target, Sample] = {}
    unknown: dict[Target, str] = {}
    for place, target in enumerate(ordered):
        if place >= for_each.max_targets:
            unknown[target] = too_many
        elif target in twice:
            unknown[target] = twice[target]
        else:
            values[target] = found[target][0]
    left_out = sum(map(len, without.values())) + len(surplus)
    return _check_values(values, unknown, left_out, tuple(problems))


def _surplus_text(query: str, targets: Sequence[TargetReference], surplus: Sequence[TargetReference], most: int) -> str:
    """Return the problem of a query with too many targets, which names the namespace that has the most of them."""
    ((namespace, number),) = Counter(target.namespace for target in targets).most_common(1)
    return (
        f"{query} has {len(targets):,} targets, and forEach.max allows {most:,}: {len(surplus):,} new ones are left"
        f" out, such as {surplus[0]}; namespace {namespace} has {number:,} of them"
    )


def pods_of(
    samples: Iterable[Sample], connections: Connections, for_each: ForEach | None
) -> Mapping[Target, tuple[PodConnections, ...]]:
    """Return the pods by target, ordered by name. Raises LoadSeriesError for a pod that occurs twice.

    A pod counts as ready unless its connections have reached the limit, which also decides its readiness probe. A pod
    whose sample is not a number counts as full; a pod without any sample is not known, and provides no room either.
    """
    found: dict[Target, dict[str, PodConnections]] = defaultdict(dict)
    for sample in samples:
        pod = sample.labels.get(POD_LABEL, "")
        if not pod:
            raise LoadSeriesError(f"{connections.metric} has a series without the label {POD_LABEL!r}: keep it")
        try:
            target = target_of(sample.labels, for_each)
        except LoadSeriesError:
            continue
        if pod in found[target]:
            raise LoadSeriesError(f"{connections.metric} has two series of pod {pod}: aggregate them by ({POD_LABEL})")
        connections_now = sample.value if _is_load(sample.value) else None
        is_ready = connections_now is None or connections_now < connections.limit
        found[target][pod] = PodConnections(connections_now, is_ready, pod)
    return {target: tuple(pods[name] for name in sorted(pods)) for target, pods in found.items()}


def _by_target(
    samples: Iterable[Sample], for_each: ForEach
) -> tuple[dict[TargetReference, list[Sample]], dict[str, list[str]]]:
    """Return the samples by target, and by reason the labels of the series without a target."""
    found: dict[TargetReference, list[Sample]] = defaultdict(list)
    without: dict[str, list[str]] = defaultdict(list)
    for sample in samples:
        try:
            target = target_of(sample.labels, for_each)
        except LoadSeriesError as error:
            pairs = (f'{key}="{shorten(value)}"' for key, value in sorted(sample.labels.items()))
            without[str(error)].append("{" + ", ".join(pairs) + "}")
            continue
        if target is not None:
            found[target].append(sample)
    return found, without


def _check_values(
    samples: Mapping[Target, Sample], unknown: Mapping[Target, str], left_out: int, problems: tuple[str, ...]
) -> TargetLoads:
    """Return the loads; targets whose value cannot be a load become unknown."""
    good = {target: each for target, each in samples.items() if _is_load(each.value)}
    bad = {
        target: f"its load is {each.value}, which is not a valid load"
        for target, each in samples.items()
        if target not in good
    }
    values = {target: each.value for target, each in good.items()}
    times = {target: each.timestamp for target, each in good.items()}
    return TargetLoads(values, times, {**unknown, **bad}, left_out, problems)


def _is_load(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= LARGEST_SAMPLE
