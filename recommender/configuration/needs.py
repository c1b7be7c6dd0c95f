"""Which facts a configuration needs, so that nothing else is watched, read or queried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.state import ClusterNeeds, CountQuery
from recommender.cluster_size.future.buffers import buffer_kinds
from recommender.cluster_size.model.settings import ClusterSizeSettings
from recommender.cluster_size.node_groups.discover import object_kinds
from recommender.decisions.settings import Output
from recommender.predictive.settings import PredictiveSettings
from recommender.proportional.parameters import DriverQuery, ProportionalSettings

if TYPE_CHECKING:
    from adapter.cluster.state import ClusterState
    from recommender.configuration.model import Configuration, Subject
    from recommender.decisions.record import TargetReference
    from recommender.predictive.settings import ForEach
    from recommender.proportional.parameters import ParametersConfigMap


def needs_of(configuration: Configuration, cluster: ClusterState | None = None) -> ClusterNeeds:
    """Return what has to be known of the cluster.

    `cluster` is what is known of it already: objects of Cluster API name others that are needed too.
    """
    subjects = [each.subject for each in configuration.recommendations]
    sized = [subject for subject in subjects if isinstance(subject, ClusterSizeSettings)]
    return ClusterNeeds(
        nodes=any(_needs_nodes(subject) for subject in subjects),
        # HPAs own targets, and their tolerance swallows metrics: both outputs need them.
        autoscaler_namespaces=frozenset(target.namespace for target in targets_of(configuration))
        # Which namespaces the series name is not known beforehand. Metrics of such targets need no look at HPAs, since
        # the present sizes of the targets are not looked up either.
        | {
            ""
            for each in configuration.recommendations
            if for_each_in(each.subject) and Output.SCALE in each.policy.outputs
        },
        counts=frozenset(
            driver.source
            for subject in subjects
            if isinstance(subject, ProportionalSettings)
            for driver in subject.drivers
            if isinstance(driver.source, CountQuery)
        ),
        pods=bool(sized),
        scheduling=bool(sized),
        objects=frozenset().union(
            *(object_kinds(subject.node_groups, cluster) for subject in sized),
            *(buffer_kinds(subject.buffer) for subject in sized if subject.buffer is not None),
        ),
    )


def targets_of(configuration: Configuration) -> frozenset[TargetReference]:
    """Return the objects whose sizes have to be known."""
    return frozenset(target for each in configuration.recommendations for target in each.policy.targets)


def queries_of(configuration: Configuration) -> frozenset[str]:
    """Return the queries for Prometheus that have one value each."""
    return frozenset().union(*(queries_in(each.subject) for each in configuration.recommendations))


def config_maps_of(configuration: Configuration) -> frozenset[tuple[str, str]]:
    """Return namespaces and names of the ConfigMaps that hold parameters."""
    found = (config_map_in(each.subject) for each in configuration.recommendations)
    priorities = (priorities_in(each.subject) for each in configuration.recommendations)
    return frozenset((config_map.namespace, config_map.name) for config_map in found if config_map) | frozenset(
        filter(None, priorities)
    )


def queries_in(subject: Subject) -> frozenset[str]:
    """Return the queries of one recommendation that have one value each, and that every poll asks.

    The load of a prediction is not among them: its history is kept elsewhere. `connections.metric` has a series for
    each pod.
    """
    if isinstance(subject, PredictiveSettings):
        return frozenset({subject.freeze_unless} if subject.freeze_unless else ())
    if isinstance(subject, ClusterSizeSettings):
        return frozenset()
    return frozenset(driver.source.expr for driver in subject.drivers if isinstance(driver.source, DriverQuery))


def has_queries(subject: Subject) -> bool:
    """Return whether Prometheus is needed at all."""
    if isinstance(subject, PredictiveSettings):
        metric = subject.connections.metric if subject.connections else None
        return any((subject.load, subject.freeze_unless, metric))
    return bool(queries_in(subject))


def for_each_in(subject: Subject) -> ForEach | None:
    """Return how series name the targets; None if the file lists them."""
    return subject.for_each if isinstance(subject, PredictiveSettings) else None


def config_map_in(subject: Subject) -> ParametersConfigMap | None:
    """Return the ConfigMap with the parameters of one recommendation, if there is one."""
    return subject.config_map if isinstance(subject, ProportionalSettings) else None


def priorities_in(subject: Subject) -> tuple[str, str] | None:
    """Return namespace and name of the ConfigMap with the priorities of node groups, if they come from one."""
    return subject.priorities_config_map if isinstance(subject, ClusterSizeSettings) else None


def _needs_nodes(subject: Subject) -> bool:
    """Whether nodes or cores can have a part in the result; what a ConfigMap holds is not known beforehand."""
    if isinstance(subject, ClusterSizeSettings):
        return True
    if isinstance(subject, PredictiveSettings):
        return False
    return subject.mode is not None or subject.config_map is not None or bool(subject.resources)
