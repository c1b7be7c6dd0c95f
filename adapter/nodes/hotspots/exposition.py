"""`/hotspots` in Prometheus's text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.web.metric_text import family, label, sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.nodes.hotspots.crowded_workloads import CrowdedReplicas


def hot_text(nodes: Iterable[str], crowded: Iterable[CrowdedReplicas] = ()) -> bytes:
    """Return hot nodes, and controllers with many replicas on them, as families of samples."""
    samples = (sample("tidewatch_node_hot", label("node", name), 1) for name in nodes)
    shares = (
        sample(
            "tidewatch_replicas_on_hot_nodes_ratio",
            f"{label('controller', each.controller)},{label('controller_namespace', each.namespace)}",
            round(each.ratio, 4),
        )
        for each in crowded
    )
    about = "Share of a controller's replicas that are on hot nodes, where it is at least half of them and two."
    return (
        family("tidewatch_node_hot", "1 for each node that /hotspots lists.", samples)
        + family("tidewatch_replicas_on_hot_nodes_ratio", about, shares)
    ).encode()
