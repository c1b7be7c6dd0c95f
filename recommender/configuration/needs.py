"""Determines which facts a configuration needs, so that nothing else is watched, read or queried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState
from recommender.decisions.policy_settings import Output
from recommender.decisions.targets.scaled_objects import scaled_object_kinds
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference
    from recommender.kinds.kind import Needs, Recommendation


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query with a single value, and the backend to which it is sent."""

    text: str
    """PromQL."""
    backend: str = ""
    """The name of the backend as `Configuration.backend_of` returns it."""
    source: str = ""
    """Identifies the data of the backend, so that a late answer to the same query from another source is ignored."""


def needs_of_one(recommendation: Recommendation, cluster: ClusterState | None = None) -> Needs:
    """Return the facts that the decision of one recommendation needs."""
    return kind_of(recommendation.policy.type).needs(recommendation, cluster)


def needs_of(configuration: Configuration, cluster: ClusterState | None = None) -> ClusterNeeds:
    """Return the facts of the cluster that the configuration needs.

    `cluster` holds the facts that are already known, since Cluster API objects refer to other objects that are needed.
    """
    found = [needs_of_one(each, cluster) for each in configuration.recommendations]
    parts = [needs.cluster for needs in found]
    scaled_by_series = any(
        needs.for_each is not None and Output.SCALE in each.policy.outputs
        for each, needs in zip(configuration.recommendations, found, strict=True)
    )
    return ClusterNeeds(
        # Objects come and go: a watch of the nodes that ended with the last object would begin again with the next.
        nodes=configuration.objects.enabled or any(part.nodes for part in parts),
        # HPAs own targets, and their tolerance suppresses small changes: both outputs need them. The namespaces that
        # series name are not known beforehand. Metrics of such targets need no look at HPAs, since the current sizes of
        # the targets are not looked up either. Namespaces of objects come and go: one watch serves all of them.
        autoscaler_namespaces=frozenset(target.namespace for target in targets_of(configuration)).union(
            {""} if scaled_by_series or configuration.objects.enabled else (),
            *(part.autoscaler_namespaces for part in parts),
        ),
        counts=frozenset().union(*(part.counts for part in parts)),
        pods=any(part.pods for part in parts),
        scheduling=any(part.scheduling for part in parts),
        objects=scaled_object_kinds(_namespaces_scaled(configuration, scaled_by_series=scaled_by_series)).union(
            *(part.objects for part in parts)
        ),
    )


def _namespaces_scaled(configuration: Configuration, *, scaled_by_series: bool) -> Iterator[str]:
    """Yield the namespaces in which KEDA may own a scaled target; an empty name means all namespaces."""
    objects = configuration.objects
    if scaled_by_series or (objects.enabled and Output.SCALE in objects.outputs):
        yield ""
    for each in configuration.recommendations:
        policy = each.policy
        if Output.SCALE in policy.outputs and policy.owners.autoscalers_required and not policy.namespace:
            yield from (target.namespace for target in policy.targets)


def targets_of(configuration: Configuration) -> frozenset[TargetReference]:
    """Return the targets of the entries of the file, whose sizes must be known at every poll."""
    entries = (each for each in configuration.recommendations if not each.policy.namespace)
    return frozenset(target for each in entries for target in each.policy.targets)


def targets_of_objects(configuration: Configuration) -> frozenset[TargetReference]:
    """Return the targets of Recommendation objects. They may be too many for one poll, and are looked up in turn."""
    objects = (each for each in configuration.recommendations if each.policy.namespace)
    return frozenset(target for each in objects for target in each.policy.targets)


def queries_of(configuration: Configuration) -> frozenset[AskedQuery]:
    """Return the Prometheus queries that have a single value each."""
    return frozenset(payers_of(configuration))


def sizing_queries_of(configuration: Configuration) -> frozenset[AskedQuery]:
    """Return those of the queries whose value a size follows."""
    return frozenset(
        _asked_query(query, each, configuration)
        for each in configuration.recommendations
        for query in needs_of_one(each).sizing_queries
    )


def _asked_query(query: str, recommendation: Recommendation, configuration: Configuration) -> AskedQuery:
    backend = configuration.backend_of(recommendation.policy.backend)
    return AskedQuery(query, backend, configuration.source_of(backend))


def payers_of(configuration: Configuration) -> dict[AskedQuery, str]:
    """Return, for each query, the namespace of the first recommendation that needs it.

    The namespace is empty for an entry of the file; such entries come first.
    """
    found: dict[AskedQuery, str] = {}
    for each in configuration.recommendations:
        for query in needs_of_one(each).queries:
            found.setdefault(_asked_query(query, each, configuration), each.policy.namespace)
    return found


def backends_asked_by(configuration: Configuration) -> frozenset[str]:
    """Return the names of the backends that recommendations query; an empty name means the default backend."""
    asking = (each.policy for each in configuration.recommendations if needs_of_one(each).has_queries)
    return frozenset(configuration.backend_of(policy.backend) for policy in asking)


def config_maps_of(configuration: Configuration) -> frozenset[tuple[str, str]]:
    """Return the namespace and the name of each ConfigMap that holds parameters."""
    return frozenset().union(*(needs_of_one(each).config_maps for each in configuration.recommendations))
