"""This project's predicates answer for the clusters that the judge is asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.files.contents import contents_of
from adapter.foundation.cluster.files.reading import state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState, Observed
from adapter.foundation.time.pace import UNPACED
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.e2e.judge.judging import ClusterVerdict

if TYPE_CHECKING:
    from tests.e2e.judge.judging import Objects

NEEDS: Final = ClusterNeeds(nodes=True, pods=True, scheduling=True)
PENDING: Final = "pending"
_TIME: Final = 1_800_000_000.0
_LISTS: Final = ("nodes", "pods", "namespaces", "claims", "volumes", "storageClasses", "csiNodes")


def our_verdict(cluster: Objects) -> ClusterVerdict:
    """Return the verdict on the pending pod, from the objects as they are read from a file."""
    state = _state(cluster)
    assert state.left_out == ()
    assert isinstance(state.nodes, Observed)
    assert isinstance(state.pods, Observed)
    assert isinstance(state.namespace_labels, Observed)
    pods = {pod.name: pod for pod in state.pods.value}
    pending = pods.pop(PENDING)
    snapshot = Snapshot(state.nodes.value, pods.values(), state.storage, state.namespace_labels.value)
    judged = PodFilter(snapshot, snapshot.shape(pending))
    if refused := judged.problem:
        return ClusterVerdict(frozenset({refused.reason}))
    found: dict[str, frozenset[str]] = {}
    for name, info in snapshot.nodes.items():
        refusals = judged.refusals(info)
        assert judged.fits(info) == (not refusals)
        assert judged.room(info, 1) == (not refusals)
        found[name] = frozenset(one.reason for one in refusals)
    return ClusterVerdict(nodes=found)


def _state(cluster: Objects) -> ClusterState:
    items = [one for key in _LISTS for one in cluster[key]]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, cluster["pod"]]}).encode()
    contents = contents_of(body, is_json=True, pace=UNPACED, needs=NEEDS)
    return state_of(contents, NEEDS, _TIME, Path("cluster.json"))
