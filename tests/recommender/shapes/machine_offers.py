"""Machines of a catalogue, pods, and the history that they make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS
from benchmarks.made_past import START, PastPlan, made_past
from recommender.shapes.catalogue import candidate, read_catalogue
from recommender.shapes.peaks import History, Peak

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.pods import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: MachineShapeCatalogue\nshapes:\n"
CATALOGUE = HEAD + (
    "- {name: small, price: 0.2, template: {cpu: 4, memory: 8Gi, pods: 12}, reserved: {cpu: 200m, memory: 512Mi}}\n"
    "- {name: large, price: 0.7, template: {cpu: 16, memory: 64Gi}}\n"
    "- {name: tainted, price: 0.1, template: {cpu: 64, memory: 64Gi, taints: ['a=b:NoSchedule']}}\n"
    "- {name: disks, price: 0.9, template: {cpu: 8, memory: 32Gi, labels: {disk: nvme}}}\n"
)
KIND = made_past(PastPlan(days=0.01, nodes=1)).pod_kinds[0]


def pod(number: int, cpu: int, memory: int, selector: Mapping[str, str] | None = None) -> ClusterPod:
    """Return a pod that requests CPU in milli and memory in MiB."""
    requests = {"cpu": cpu, "memory": memory << 20}
    scheduling = replace(NO_CONSTRAINTS, node_selector=tuple(sorted((selector or {}).items())))
    facts = KIND.facts
    assert facts is not None
    return replace(
        KIND,
        name=f"p{number}",
        resources=replace(KIND.resources, requests=requests, non_zero_requests=requests),
        facts=replace(facts, scheduling=scheduling),
    )


def daemon() -> ClusterPod:
    """Return the pod of a DaemonSet that runs on every node."""
    owner = KIND.controller
    assert owner is not None
    return replace(pod(0, 300, 256), name="logs-daemon", controller=replace(owner, kind="DaemonSet", name="logs"))


def groups_of(text: str = CATALOGUE, daemons: tuple[ClusterPod, ...] = ()) -> list[NodeGroup]:
    return [candidate(shape, daemons) for shape in read_catalogue(text, "shapes.yaml").shapes]


def history(*peaks: tuple[ClusterPod, ...]) -> History:
    every = tuple(one for peak in peaks for one in peak)
    return History("made", tuple(Peak(START, (), peak) for peak in peaks), every, ())


PODS = st.lists(
    st.tuples(st.integers(50, 4000), st.integers(16, 16_000), st.sampled_from([None, {"disk": "nvme"}])),
    min_size=1,
    max_size=40,
)
