"""Two pools of nodes, and pods that select them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.recommender.kinds.cluster_size.builders import controller, pod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod


def pods(count: int, cpu: str = "1", name: str = "web", like: ClusterPod | None = None) -> list[ClusterPod]:
    """Return pods of one controller; `like` states what they share besides their CPU and 1 GiB."""
    shared = pod("x", cpu, "1Gi") if like is None else like
    return [replace(shared, name=f"{name}-{number}", controller=controller(name)) for number in range(count)]
