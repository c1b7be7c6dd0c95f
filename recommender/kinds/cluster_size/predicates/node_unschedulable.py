"""The plugin NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.cluster.values.state import Taint
from recommender.kinds.cluster_size.predicates.shapes import Refusal
from recommender.kinds.cluster_size.predicates.taint_toleration import is_tolerated

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.constraints import Toleration
    from adapter.foundation.cluster.values.state import ClusterNode

CORDON_TAINT: Final = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
"""What a pod must tolerate to run on a cordoned node, whether or not the node has the taint yet."""

_REFUSED: Final = (Refusal("NodeUnschedulable", "node(s) were unschedulable"),)


def unschedulable_refusals(node: ClusterNode, tolerations: tuple[Toleration, ...]) -> tuple[Refusal, ...]:
    """Return why a node takes no new pods; empty if it does, or if the pod tolerates the taint of cordoned nodes."""
    return _REFUSED if node.unschedulable and not is_tolerated(CORDON_TAINT, tolerations) else ()
