"""Inputs from a live cluster, read once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.foundation.time.clock import Clock
from recommender.configuration.needs import config_maps_of, needs_of, targets_of
from recommender.decisions.inputs import Inputs
from recommender.running.inputs.parameter_config_maps import ParameterConfigMaps
from recommender.running.inputs.target_lookups import TargetLookups

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference

_LISTS_SECONDS = 30.0
_LOOK_UP_SECONDS = 15.0
"""The time limit of all look-ups of targets together: series may name thousands, and there is no later poll."""


def inputs_of_cluster(
    client: KubernetesClient, configuration: Configuration, further_targets: frozenset[TargetReference] = frozenset()
) -> Inputs:
    """Return the current state of the cluster. Raises KubernetesError if it cannot be reached at all.

    `further_targets` are looked up like those that the configuration lists.
    """
    discovery = KindDiscovery(client)
    discovery.refresh()
    objects = ObjectClient(client)
    stop = threading.Event()
    try:
        needs = needs_of(configuration)
        watch = ClusterWatch(client, needs, _threads(stop))
        watch.await_first_lists(_LISTS_SECONDS)
        further = needs_of(configuration, watch.state())
        if further != needs:
            # Groups of Cluster API name the kinds of their templates.
            watch.change(further)
            watch.await_first_lists(_LISTS_SECONDS)
        config_maps = ParameterConfigMaps(objects, lambda _namespace, _name: None, lambda _seconds: False, Clock())
        lookups = TargetLookups(objects, discovery.resource, seconds=_LOOK_UP_SECONDS)
        # The watched facts come last: many look-ups take seconds.
        targets = lookups.look(targets_of(configuration) | further_targets)
        return Inputs(
            watch.state(),
            config_maps={name: config_maps.read(*name) for name in config_maps_of(configuration)},
            targets=targets,
        )
    finally:
        stop.set()


def _threads(stop: threading.Event) -> Callable[[str, Callable[[threading.Event], None]], None]:
    """Return a function that starts watches, in threads that do not keep the program from ending."""

    def start(name: str, run: Callable[[threading.Event], None]) -> None:
        threading.Thread(target=run, args=(stop,), name=name, daemon=True).start()

    return start
