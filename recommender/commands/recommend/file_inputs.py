"""Inputs out of the files of `--cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapter.cluster.files import ClusterFilesError, cluster_files, read_contents, state_of
from adapter.cluster.state import Observed
from adapter.sources.manifests import GroupKind, ManifestError, read_objects
from adapter.timing.file_contents import read_regular
from adapter.timing.pace import UNPACED
from recommender.configuration.needs import config_maps_of, needs_of, targets_of
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.running.target_states import target_input

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.configuration.model import Configuration

_LARGEST_BYTES = 512 << 20
_CONFIG_MAP = GroupKind("", "ConfigMap")


class _Meta(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion"}):
    resource_version: str = ""


class _ConfigMap(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] | None = None


def inputs_of_files(path: Path, configuration: Configuration, now: float) -> Inputs:
    """Return what a file or a folder states, as of `now`. Raises ClusterFilesError."""
    contents = read_contents(path)
    wanted = config_maps_of(configuration)
    config_maps = _config_maps(path) if wanted else {}
    return Inputs(
        state_of(contents, needs_of(configuration), now, path),
        config_maps={name: Observed(config_maps.get(name), now) for name in wanted},
        targets={target: target_input(contents.target(target, now)) for target in targets_of(configuration)},
    )


def _config_maps(path: Path) -> dict[tuple[str, str], ConfigMapData]:
    """Return the ConfigMaps; that the files can be read is known by now. Raises ClusterFilesError."""
    found: dict[tuple[str, str], ConfigMapData] = {}
    for file in cluster_files(path):
        try:
            found |= _config_maps_of(read_regular(file, _LARGEST_BYTES))
        except OSError as error:
            raise ClusterFilesError(f"{file}: the file cannot be read: {error.strerror}") from error
        except ManifestError as error:
            raise ClusterFilesError(f"{file}:{error.line or 1}: {error}") from error
    return found


def _config_maps_of(body: bytes) -> dict[tuple[str, str], ConfigMapData]:
    found: dict[tuple[str, str], ConfigMapData] = {}
    is_json = body.lstrip()[:1] == b"{"
    for part in read_objects(body, {_CONFIG_MAP: _ConfigMap}, is_json=is_json, pace=UNPACED):
        for each in part:
            if isinstance(each.whole, _ConfigMap):
                metadata = each.manifest.metadata
                found[metadata.namespace or "default", metadata.name] = ConfigMapData(
                    each.whole.data or {}, each.whole.metadata.resource_version
                )
    return found
