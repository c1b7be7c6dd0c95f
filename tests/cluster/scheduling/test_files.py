"""What files state about scheduling: constraints of pods, workloads, budgets, storage, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.files import read_contents, state_of
from adapter.cluster.scheduling.constraints import PodScheduling
from adapter.cluster.state import ClusterNeeds, ClusterState, Observed
from tests.cluster.test_files import written
from tests.support.cluster_objects import Json, node_object, pod_object

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1795327200.0
NEEDS = ClusterNeeds(nodes=True, pods=True, scheduling=True)


def state(folder: Path, *objects: Json, needs: ClusterNeeds = NEEDS, name: str = "all.json") -> ClusterState:
    path = written(folder / name, *objects)
    return state_of(read_contents(path, needs=needs), needs, NOW, path)


def test_pods_have_facts_only_where_scheduling_is_needed(tmp_path: Path) -> None:
    objects = (node_object("n1"), pod_object("a", node="n1", nodeSelector={"zone": "a"}))
    pods = state(tmp_path, *objects).pods
    assert isinstance(pods, Observed)
    facts = pods.value[0].facts
    assert facts is not None
    assert facts.scheduling == PodScheduling(node_selector=(("zone", "a"),))
    pods = state(tmp_path, *objects, needs=ClusterNeeds(nodes=True, pods=True)).pods
    assert isinstance(pods, Observed)
    assert pods.value[0].facts is None
