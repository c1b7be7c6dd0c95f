"""The plugin VolumeZone: zone and region labels of bound volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.shapes import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.storage import Volume
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo

_PLUGIN: Final = "VolumeZone"
_REASON: Final = "node(s) had no available volume zone"
_SUCCESSORS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS: Final = (*_SUCCESSORS, *_SUCCESSORS.values())
_SEPARATOR: Final = "__"


class ZoneFilter:
    """The zones and regions of the volumes of one shape."""

    def __init__(self, volumes: Iterable[Volume]) -> None:
        self._demands = tuple(
            (volume.name, label, zones)
            for volume in volumes
            for label in _LABELS
            if (zones := _zones(volume.labels.get(label)))
        )

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusal by the first volume of another zone. A node without any zone or region label has none."""
        labels = info.node.labels
        if not self._demands or not any(label in labels for label in _LABELS):
            return ()
        for volume, label, zones in self._demands:
            if _value(labels, label) not in zones:
                return (Refusal(_PLUGIN, _REASON, f"volume {volume}: {label} in {', '.join(sorted(zones))}"),)
        return ()


def _value(labels: Mapping[str, str], label: str) -> str | None:
    found = labels.get(label)
    return labels.get(_SUCCESSORS.get(label, label)) if found is None else found


def _zones(text: str | None) -> frozenset[str]:
    """Return the zones of a label, which separates several by `__`; none if the label is absent or broken."""
    zones = frozenset(zone.strip() for zone in text.split(_SEPARATOR)) if text is not None else frozenset()
    return frozenset() if "" in zones else zones
