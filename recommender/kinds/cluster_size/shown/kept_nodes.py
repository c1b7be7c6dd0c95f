"""Nodes that stay, grouped by reason: a large cluster has thousands of such nodes and few reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.cluster_size.model.answer import KeptNode


@dataclass(frozen=True, slots=True)
class KeptForReason:
    """Nodes that stay for the same reason."""

    reason: str
    """The identifier, such as `NotUnderutilized`."""
    nodes: tuple[str, ...]
    example: str
    """The whole reason of the first node, with its pod."""


def kept_by_reason(kept: Iterable[KeptNode]) -> tuple[KeptForReason, ...]:
    """Return the reasons, the most frequent first."""
    reasons = group_values((node.reason.partition(":")[0], node) for node in kept)
    return tuple(
        KeptForReason(reason, tuple(node.node for node in nodes), kept_reason(nodes[0]))
        for reason, nodes in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    )


def kept_reason(node: KeptNode) -> str:
    """Return why a node stays, with the pod that keeps it."""
    return node.reason if node.pod is None or str(node.pod) in node.reason else f"{node.reason} (pod {node.pod})"
