"""Which facts a configuration needs, so that nothing else is watched, read or queried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.state import ClusterNeeds, CountQuery
from recommender.proportional.parameters import DriverQuery

if TYPE_CHECKING:
    from recommender.configuration.model import Configuration, Subject
    from recommender.decisions.record import TargetReference


def needs_of(configuration: Configuration) -> ClusterNeeds:
    """Return what has to be known of the cluster."""
    subjects = [each.subject for each in configuration.recommendations]
    return ClusterNeeds(
        nodes=any(_needs_nodes(subject) for subject in subjects),
        # HPAs own targets, and their tolerance swallows metrics: both outputs need them.
        autoscaler_namespaces=frozenset(target.namespace for target in targets_of(configuration)),
        counts=frozenset(
            driver.source for subject in subjects for driver in subject.drivers if isinstance(driver.source, CountQuery)
        ),
    )


def targets_of(configuration: Configuration) -> frozenset[TargetReference]:
    """Return the objects whose sizes have to be known."""
    return frozenset(target for each in configuration.recommendations for target in each.policy.targets)


def queries_of(configuration: Configuration) -> frozenset[str]:
    """Return the queries for Prometheus."""
    return frozenset().union(*(queries_in(each.subject) for each in configuration.recommendations))


def config_maps_of(configuration: Configuration) -> frozenset[tuple[str, str]]:
    """Return namespaces and names of the ConfigMaps that hold parameters."""
    found = (each.subject.config_map for each in configuration.recommendations)
    return frozenset((config_map.namespace, config_map.name) for config_map in found if config_map)


def queries_in(subject: Subject) -> frozenset[str]:
    """Return the queries of one recommendation."""
    return frozenset(driver.source.expr for driver in subject.drivers if isinstance(driver.source, DriverQuery))


def _needs_nodes(subject: Subject) -> bool:
    """Whether nodes or cores can have a part in the result; what a ConfigMap holds is not known beforehand."""
    return subject.mode is not None or subject.config_map is not None or bool(subject.resources)
