"""Inputs from the files of `--cluster`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.cluster.files.reading import read_contents, read_whole_objects, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState, ObjectKind, Observed
from adapter.foundation.objects.decoders import convert
from recommender.configuration.needs import config_maps_of, needs_of, targets_of
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.running.inputs.target_states import target_input

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference

_CONFIG_MAPS: Final = ObjectKind("", "configmaps", "ConfigMap")


class _Meta(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion"}):
    name: str = ""
    namespace: str = "default"
    resource_version: str = ""


class _ConfigMap(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] | None = None


def inputs_of_files(
    path: Path, configuration: Configuration, now: float, further_targets: frozenset[TargetReference] = frozenset()
) -> Inputs:
    """Return the inputs in a file or a folder, as of `now`. Raises ClusterFilesError.

    `further_targets` are looked up like those that the configuration lists.
    """
    wanted = config_maps_of(configuration)
    needs = _all_needs(path, configuration, now)
    if wanted:
        needs = replace(needs, objects=needs.objects | {_CONFIG_MAPS})
    contents = read_contents(path, needs=needs)
    state = state_of(contents, needs, now, path)
    config_maps = _config_maps(state) if wanted else {}
    targets = targets_of(configuration) | further_targets
    return Inputs(
        state,
        config_maps={name: Observed(config_maps.get(name), now) for name in wanted},
        targets={target: target_input(contents.target(target, now)) for target in targets},
    )


def _all_needs(path: Path, configuration: Configuration, now: float) -> ClusterNeeds:
    """Return the facts that are needed from the files, including templates of Cluster API groups.

    The groups' objects name the kinds of their templates, so these objects alone are read first. That takes a small
    part of the time for reading a whole cluster.
    """
    needs = needs_of(configuration)
    if not needs.objects:
        return needs
    alone = ClusterNeeds(objects=needs.objects)
    return needs_of(configuration, state_of(read_whole_objects(path, needs.objects), alone, now, path))


def _config_maps(state: ClusterState) -> dict[tuple[str, str], ConfigMapData]:
    """Return the ConfigMaps; a ConfigMap that cannot be read counts as missing, and the state names it."""
    found: dict[tuple[str, str], ConfigMapData] = {}
    objects = state.objects.get(_CONFIG_MAPS)
    for document in objects.value if isinstance(objects, Observed) else ():
        try:
            config_map = convert(document, _ConfigMap)
        except msgspec.ValidationError:
            continue
        name = (config_map.metadata.namespace, config_map.metadata.name)
        found[name] = ConfigMapData(config_map.data or {}, config_map.metadata.resource_version)
    return found
