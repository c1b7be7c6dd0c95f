"""Complaints of users of Cluster Autoscaler that are resolved by the facts read from the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.files.reading import read_contents, state_of
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState, Observed
from tests.adapter.foundation.cluster.scheduling.objects import api_object, claim
from tests.adapter.foundation.cluster.test_files import NOW, written
from tests.support.cluster_objects import Json, node_object, pod_object

if TYPE_CHECKING:
    from pathlib import Path

NEEDS = ClusterNeeds(nodes=True, pods=True, scheduling=True)


def state(path: Path, *objects: Json) -> ClusterState:
    return state_of(read_contents(written(path, *objects), needs=NEEDS), NEEDS, NOW, path)


def web(number: int) -> Json:
    token = {"name": f"kube-api-access-ab{number:03}", "projected": {"sources": []}}
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod_object(f"web-{number}", labels={"app": "web"}, volumes=[token], affinity=affinity)


def test_pods_of_one_controller_share_their_constraints__autoscaler_7873(tmp_path: Path) -> None:
    pods = state(tmp_path / "all.json", *(web(number) for number in range(200))).pods
    assert isinstance(pods, Observed)
    shared = {
        (id(pod.facts.scheduling), id(pod.labels), id(pod.resources)) for pod in pods.value if pod.facts is not None
    }
    assert (len(pods.value), len(shared)) == (200, 1)


def test_storage_capacities_restrict_nothing__autoscaler_9700(tmp_path: Path) -> None:
    objects = (node_object("n1"), pod_object("a", volumes=[]), claim("data", storageClassName="local"))
    capacity = api_object(
        "storage.k8s.io/v1", "CSIStorageCapacity", "c", "shop", storageClassName="local", capacity="0"
    )
    without, found = (state(tmp_path / "all.json", *each) for each in (objects, (*objects, capacity)))
    assert replace(found, problems=()) == replace(without, problems=())
