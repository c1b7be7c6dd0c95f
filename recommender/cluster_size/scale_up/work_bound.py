"""How many different pods one decision looks at, so that no tenant's pods can keep it from an end.

Pods that are alike cost as much as one. Every different one is asked against every node, and one that depends on other
pods against all others of that kind. Cluster Autoscaler bounds its time instead (`max-binpacking-time`); a bound of
the work gives the same answer on every machine.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.predicates.shapes import PodShape
    from adapter.cluster.predicates.snapshot import Snapshot
    from adapter.cluster.state import ClusterPod

MOST_SHAPES: Final = 2000
"""Different pods; fewer on clusters with more than 2,500 nodes."""
MOST_RELATED_SHAPES: Final = 300
"""Different pods with affinity, anti-affinity or spread constraints."""
_MOST_QUESTIONS: Final = 5_000_000
_LEAST_SHAPES: Final = 500
NOT_LOOKED_AT: Final = (
    "it is not looked at yet: so many different pods are pending that those of its namespace take turns"
)

_Alike: TypeAlias = "tuple[PodShape, list[ClusterPod]]"


def within_bound(pods: Iterable[ClusterPod], snapshot: Snapshot) -> tuple[list[ClusterPod], list[ClusterPod]]:
    """Return the pods that this decision looks at, and those that it does not, in their order.

    Where there are too many, each namespace has the same share, and pods of a higher priority come first in it.
    """
    order = list(pods)
    alike: dict[int, _Alike] = {}
    for pod in sorted(order, key=lambda pod: -pod.priority):
        shape = snapshot.shape(pod)
        alike.setdefault(id(shape), (shape, []))[1].append(pod)
    plain = [one for one in alike.values() if not _is_related(one[0])]
    related = [one for one in alike.values() if _is_related(one[0])]
    most = min(MOST_SHAPES, max(_LEAST_SHAPES, _MOST_QUESTIONS // max(1, len(snapshot.nodes))))
    beyond = {id(pod) for pod in (*_beyond(plain, most), *_beyond(related, MOST_RELATED_SHAPES))}
    return [pod for pod in order if id(pod) not in beyond], [pod for pod in order if id(pod) in beyond]


def _is_related(shape: PodShape) -> bool:
    constraints = shape.scheduling
    return bool(constraints.affinity or constraints.anti_affinity or constraints.spread)


def _beyond(alike: list[_Alike], most: int) -> list[ClusterPod]:
    """Return the pods of the shapes beyond the first ones, of which each namespace has one in turn."""
    if len(alike) <= most:
        return []
    turns: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[int, _Alike]] = []
    for one in alike:
        turns[one[0].namespace] += 1
        ranked.append((turns[one[0].namespace], one))
    ranked.sort(key=lambda each: each[0])
    return [pod for _, (_, pods) in ranked[most:] for pod in pods]
