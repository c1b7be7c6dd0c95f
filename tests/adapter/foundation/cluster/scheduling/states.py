"""States that are read from files with objects of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterNode, ClusterPod, ClusterState, Observed
from tests.adapter.foundation.cluster.test_files import written
from tests.support.cluster_objects import Json, node_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


NOW = 1795327200.0
NEEDS = ClusterNeeds(nodes=True, pods=True, scheduling=True)
NODE = node_object("n1")


def state(folder: Path, *objects: Json, needs: ClusterNeeds = NEEDS, name: str = "all.json") -> ClusterState:
    path = written(folder / name, *objects)
    return state_of(read_contents(path, needs=needs), needs, NOW, path)


def pods_of(state: ClusterState) -> Mapping[str, ClusterPod]:
    assert isinstance(state.pods, Observed), state.pods
    return {pod.name: pod for pod in state.pods.value}


def node_of(state: ClusterState) -> ClusterNode:
    assert isinstance(state.nodes, Observed), state.nodes
    return state.nodes.value[0]
