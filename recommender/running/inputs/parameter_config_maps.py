"""The ConfigMaps that hold parameters: read at every poll, and created from default parameters if they are missing.

They are read by GET, since the rights of cluster-proportional-autoscaler do not include watching them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.sources.kubernetes.errors import ConflictError, KubernetesError, NotFoundError
from recommender.decisions.inputs import ConfigMapData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import GetsAndWrites
    from adapter.foundation.time.clock import Clock

_log = logging.getLogger(__name__)

_READ_SECONDS = 5.0
_WRITE_SECONDS = 5.0


@dataclass(slots=True)
class ParameterConfigMaps:
    """Reads ConfigMaps. For any number of threads."""

    objects: GetsAndWrites
    default_params: Callable[[str, str], Mapping[str, str] | None]
    """Returns the data for a missing ConfigMap, given its namespace and name; None to create none."""
    may_create: Callable[[float], bool]
    """Returns whether this process may write for the given number of seconds."""
    clock: Clock
    is_dry_run: bool = False
    """A dry run creates nothing, and continues as if it had created the ConfigMap with the default parameters."""
    _states: StateLog = field(default_factory=lambda: StateLog(_log))

    def read(self, namespace: str, name: str) -> Observed[ConfigMapData | None] | Unknown:
        """Return the current content of a ConfigMap; None if it does not exist and is not created."""
        now = self.clock.wall()
        try:
            document = self.objects.get(_path(namespace, name), seconds=_READ_SECONDS).document
        except NotFoundError:
            return self._create_config_map(namespace, name, now)
        except KubernetesError as error:
            return Unknown(str(error))
        return Observed(_content(document), now)

    def _create_config_map(self, namespace: str, name: str, now: float) -> Observed[ConfigMapData | None] | Unknown:
        defaults = self.default_params(namespace, name)
        if defaults and self.is_dry_run:
            return Observed(ConfigMapData(dict(defaults), ""), now)
        if not defaults or not self.may_create(_WRITE_SECONDS):
            return Observed(None, now)
        key = f"{namespace}/{name}"
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name},
            "data": dict(defaults),
        }
        try:
            created = self.objects.create(_path(namespace), document, seconds=_WRITE_SECONDS)
        except ConflictError:
            return Unknown(f"ConfigMap {key} was created by another client at the same time: it is read next time")
        except KubernetesError as error:
            self._states.failed(key, f"ConfigMap {key} cannot be created from the default parameters: {error}")
            return Observed(None, now)
        self._states.recovered(key, f"ConfigMap {key} can be created now")
        _log.info("a ConfigMap is created from the default parameters", extra=fields(config_map=key))
        return Observed(_content(created), now)


def _path(namespace: str, name: str = "") -> str:
    collection = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{collection}/{name}" if name else collection


def _content(document: Mapping[str, Any]) -> ConfigMapData:
    data = document.get("data") or {}
    version = (document.get("metadata") or {}).get("resourceVersion") or ""
    return ConfigMapData({str(key): str(value) for key, value in data.items()}, str(version))
