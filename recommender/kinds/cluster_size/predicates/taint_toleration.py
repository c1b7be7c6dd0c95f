"""The plugin TaintToleration: taints NoSchedule and NoExecute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import TaintEffect
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.constraints import Toleration
    from adapter.foundation.cluster.values.state import ClusterNode, Taint

_REASON: Final = "node(s) had untolerated taint(s)"
_REFUSING: Final = frozenset({TaintEffect.NO_SCHEDULE.value, TaintEffect.NO_EXECUTE.value})


def is_tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Return whether one of the tolerations tolerates the taint.

    `Lt` and `Gt` tolerate nothing: the gate TaintTolerationComparisonOperators is off by default.
    """
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def untolerated_taint(node: ClusterNode, tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Return the first taint that keeps the pod from the node."""
    for taint in node.taints:
        if taint.effect in _REFUSING and not is_tolerated(taint, tolerations):
            return taint
    return None


def taint_refusals(node: ClusterNode, tolerations: tuple[Toleration, ...]) -> tuple[Refusal, ...]:
    """Return the refusal by taints, with the first of them as detail."""
    taint = untolerated_taint(node, tolerations)
    if taint is None:
        return ()
    value = f"={taint.value}" if taint.value else ""
    return (Refusal("TaintToleration", _REASON, f"{taint.key}{value}:{taint.effect}"),)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
