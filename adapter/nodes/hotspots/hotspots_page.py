"""`/hotspots`: the hot nodes, why they are hot, and which pods could move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.quantities import Format, milli_quantity, quantity_text
from adapter.foundation.time.timestamps import rfc3339
from adapter.foundation.web.http import Request, Response, json_line
from adapter.foundation.web.rendering import render_response
from adapter.foundation.web.routes import Route
from adapter.nodes.hotspots.crowded_workloads import CrowdedReplicas, anti_affinity, crowded_replicas
from adapter.nodes.hotspots.movable_pods import MovablePod, movable_pods
from adapter.nodes.hotspots.over_limits import HotNode, hot_nodes
from adapter.nodes.model.answers import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.nodes.hotspots.hot_nodes import HeatState
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import HotspotSettings

_MOST_PODS: Final = 20
"""At most this many pods of a node are in the document, unless more would have to leave."""
_MIB: Final = 2**20
_REPAIR: Final = (
    "put this affinity into the pod template, so that replicas avoid each other; where it cannot be changed, let the "
    "descheduler evict duplicates (policy-replicas.yaml)"
)


def hotspots_routes(
    snapshot: Callable[[], NodesSnapshot], heat: Callable[[], HeatState], settings: HotspotSettings
) -> tuple[Route, ...]:
    """Return the route of `/hotspots`."""

    def handle(request: Request) -> Response:
        current = snapshot()
        hot = hot_nodes(current, heat(), settings)
        uids = {node.name: node.uid for node in current.nodes}
        document = {
            "apiVersion": API_VERSION,
            "kind": "Hotspots",
            "window_end": rfc3339(current.loads.window_end) if current.loads else None,
            "limit_ratio": {str(resource): limit for resource, limit in settings.limits.items()},
            "hot": [_hot_document(current, node, uids.get(node.name, "")) for node in hot],
            "replicas": [_replicas_document(each) for each in crowded_replicas(current, [node.name for node in hot])],
        }
        return render_response(Response(200, json_line(document)), request)

    return (Route("/hotspots", handle, ("GET", "HEAD")),)


def _hot_document(snapshot: NodesSnapshot, node: HotNode, uid: str) -> dict[str, object]:
    pods = movable_pods(snapshot.pods_by_node.get(node.name, ()), node.excess, snapshot.daemon_sets, uid)
    last_match = max((place for place, pod in enumerate(pods) if pod.is_match), default=-1)
    return {
        "node": node.name,
        "reasons": node.reasons,
        "utilization_ratio": {str(resource): round(ratio, 4) for resource, ratio in node.utilization.items()},
        "estimated": [str(resource) for resource in node.estimated],
        "rounds": node.rounds,
        "excess": _amounts(node.excess),
        "movable_pods": len(pods),
        "pods": [_pod_document(pod) for pod in pods[: max(_MOST_PODS, last_match + 1)]],
    }


def _replicas_document(crowded: CrowdedReplicas) -> dict[str, object]:
    return {
        "namespace": crowded.namespace,
        "controller": crowded.controller,
        "on_hot_nodes": crowded.on_hot_nodes,
        "replicas": crowded.replicas,
        "nodes": crowded.nodes,
        "affinity": anti_affinity(crowded.labels),
        "repair": _REPAIR,
    }


def _pod_document(movable: MovablePod) -> dict[str, object]:
    pod, controller = movable.pod, movable.pod.controller
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "controller": f"{controller.kind}/{controller.name}" if controller else "",
        "priority": pod.priority,
        "requests": _amounts({name: pod.resources.requests.get(name, 0) for name in ("cpu", "memory")}),
        "matches_excess": movable.is_match,
    }


def _amounts(amounts: Mapping[str, float]) -> dict[str, str]:
    """Return amounts as quantities; memory is rounded up to whole MiB."""
    texts = {}
    for name, amount in amounts.items():
        if name == "cpu":
            texts[name] = milli_quantity(_rounded_up(amount))
        else:
            texts[name] = quantity_text(_rounded_up(amount / _MIB) * _MIB * 1000, Format.BINARY_SI)
    return texts


def _rounded_up(amount: float) -> int:
    """Return the amount rounded up to a whole number, ignoring the rounding error of floats."""
    return math.ceil(round(amount, 6))
