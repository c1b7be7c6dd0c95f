"""The running kube-scheduler checks the predicates, and the scale-up decisions that rest on them.

`SIZED_CLUSTERS=300 SIZED_SCALE_UPS=50 make e2e suite=tests/e2e/cluster_size/test_cluster_size_scheduler.py` takes as
many random clusters; CI takes fewer. The seed is fixed; `SCHEDULING_SEED` sets another one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.e2e.cluster_size.placed_clusters import as_judged, path_of, placed_clusters
from tests.e2e.judge.our_filters import our_verdict
from tests.e2e.judge.scheduling_clusters import HOSTNAME, ZONE, clusters, crowded_clusters
from tests.e2e.support.figures import state
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.e2e.cluster_size.placed_clusters import PlacedClusters
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.judge.judging import ClusterVerdict, Objects

__all__ = ["state"]

CLUSTERS: Final = int(os.environ.get("SIZED_CLUSTERS", "30"))
SCALE_UPS: Final = int(os.environ.get("SIZED_SCALE_UPS", "10"))
SEED: Final = int(os.environ.get("SCHEDULING_SEED", "17"))
_PLACING_SECONDS: Final = 20.0

# Clusters are made one after another, each with its nodes and pods.
pytestmark = pytest.mark.timeout(120 + 4 * CLUSTERS + 30 * SCALE_UPS)

GROUP: Final = "e2e.tidewatch.io/group"
_STORAGE: Final = {"pods": "110", "ephemeral-storage": "15Gi"}
GROUPS: Final[dict[str, tuple[dict[str, str], dict[str, str], list[dict[str, str]]]]] = {
    "small": ({"cpu": "2", "memory": "4Gi", **_STORAGE}, {"pool": "a", ZONE: "z1"}, []),
    "large": ({"cpu": "8", "memory": "16Gi", **_STORAGE}, {"pool": "b", ZONE: "z2", "size": "5"}, []),
    "gpu": (
        {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", **_STORAGE},
        {"pool": "a", ZONE: "z3"},
        [{"key": "k1", "value": "v1", "effect": "NoSchedule"}],
    ),
}
"""The capacity of a node of each group, its labels, and its taints."""
_MOST_DECISIONS: Final = 4
_SETTLING_SECONDS: Final = 8.0


@pytest.fixture(scope="module")
def places(cluster: Cluster) -> Iterator[PlacedClusters]:
    """Yield the cluster in which all random clusters of this module are made."""
    with placed_clusters(cluster) as found:
        yield found


def message_of(verdict: ClusterVerdict) -> str:
    """Return what the scheduler says if no node can take a pod: reasons with their counts, in its order."""
    if verdict.refused:
        return ", ".join(sorted(verdict.refused))
    counts = Counter(reason for reasons in verdict.nodes.values() for reason in reasons)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def test_a_pod_stays_pending_if_no_node_fits_by_our_predicates_and_the_event_counts_the_same_reasons(
    places: PlacedClusters, state: Callable[[str, str], None]
) -> None:
    seen: Counter[str] = Counter()

    @seed(SEED)
    @settings(
        max_examples=CLUSTERS,
        deadline=None,
        database=None,
        # A smaller counterexample is not worth hundreds of clusters.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(clusters())
    def judge(made: Objects) -> None:
        with places.placed(made["nodes"], made["pods"]):
            places.add_pending(made["pod"])
            items = places.read()
            pending = next(one for one in items if one["kind"] == "Pod" and one["metadata"]["name"] == "pending")
            verdict = our_verdict(as_judged(items, pending))
            fitting = {name for name, reasons in verdict.nodes.items() if not reasons}
            places.release([pending])
            if fitting:
                seen["bound"] += 1
                assert place_of(places, pending) in fitting
            else:
                seen["pending"] += 1
                nodes = sum(one["kind"] == "Node" for one in items)
                wait_for_message(places, pending, f"0/{nodes} nodes are available: {message_of(verdict)}")

    judge()
    state("random clusters before kube-scheduler", f"{seen['bound']} with a place, {seen['pending']} without one")


def place_of(places: PlacedClusters, pod: Document) -> str:
    """Return the node that the scheduler chooses for a pod."""

    def place() -> str:
        return str(places.cluster.client.get(path_of(pod))["spec"].get("nodeName", ""))

    return places.cluster.wait_for("a node", place, _PLACING_SECONDS, why_not=lambda: places.refusals(pod))


def wait_for_message(places: PlacedClusters, pod: Document, message: str) -> None:
    """Wait until the scheduler refuses a pod with this message, and assert that the pod then has no node."""
    places.cluster.wait_for(
        f"the event {message!r}",
        lambda: message in places.refusals(pod),
        _PLACING_SECONDS,
        why_not=lambda: (places.refusals(pod), places.cluster.client.get(path_of(pod))["spec"].get("nodeName")),
    )
    assert "nodeName" not in places.cluster.client.get(path_of(pod))["spec"]


def test_every_pod_that_our_scale_up_helps_is_scheduled(
    places: PlacedClusters, tmp_path: Path, state: Callable[[str, str], None]
) -> None:
    """The scheduler spreads pods that the estimate packs, so a further decision may be needed, as in a real loop."""
    seen: Counter[str] = Counter()

    @seed(SEED)
    @settings(
        max_examples=SCALE_UPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(crowded_clusters(), st.sampled_from(("least-waste", "most-pods", "least-nodes", "random")))
    def apply(made: Objects, expander: str) -> None:
        with places.placed(made["nodes"], made["pods"]):
            places.add_pending(*made["pending"])
            asked = {pod["metadata"]["name"] for pod in made["pending"]}
            for decision in range(1, _MOST_DECISIONS + 1):
                answer = recommended(places.read(), asked, expander, tmp_path)
                asked -= refused_by(answer)
                new = list(new_nodes(answer, decision))
                seen["nodes"] += len(new)
                places.add_nodes(new)
                present = places.pods()
                places.release(present[name] for name in sorted(asked))
                if not still_pending(places, asked):
                    break
            else:
                raise AssertionError(f"pending after {decision} decisions: {left_of(places, asked)}")
        seen["helped"] += len(asked)
        seen[f"after {decision}"] += 1

    apply()
    counts = ", ".join(f"{seen[key]} {key}" for key in sorted(seen) if key.startswith("after"))
    text = f"{seen['helped']} pods on {seen['nodes']} new nodes; clusters without a pending one: {counts} decisions"
    state("scale-ups applied before kube-scheduler", text)


def recommended(items: Iterable[Document], names: set[str], expander: str, folder: Path) -> Document:
    """Return what `recommend` answers for the objects that were read, with only these pods waiting."""
    groups = [
        {
            "name": name,
            "max": 30,
            "selector": {GROUP: name},
            "template": {**capacity, "labels": labels, "taints": taints},
        }
        for name, (capacity, labels, taints) in GROUPS.items()
    ]
    kind = f"clusterSize: {json.dumps({'nodeGroups': groups, 'expander': expander, 'scaleDown': {'enabled': False}})}"
    (folder / "recommender.yaml").write_text(whole(entry("workers", kind=kind)))
    seen = [one for one in map(as_of_the_default_scheduler, items) if is_asked(one, names)]
    (folder / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": seen}))
    files = [f"--config={folder}/recommender.yaml", f"--cluster={folder}/cluster.json"]
    done = subprocess.run([PROGRAM, "recommend", *files, "--output=json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Document = json.loads(done.stdout)["items"][0]
    return found


def as_of_the_default_scheduler(one: Document) -> Document:
    """Return a pod for the default scheduler, which the recommender sizes for, without this test's scheduling gate."""
    if one["kind"] != "Pod":
        return one
    spec = {key: value for key, value in one["spec"].items() if key != "schedulingGates"}
    return {**one, "spec": {**spec, "schedulerName": "default-scheduler"}}


def is_asked(one: Document, names: set[str]) -> bool:
    """Return whether an object is part of the question."""
    return one["kind"] != "Pod" or "nodeName" in one["spec"] or one["metadata"]["name"] in names


def refused_by(answer: Document) -> set[str]:
    """Return the pods that no group can hold."""
    return {one["pod"].partition("/")[2] for one in answer["unschedulable"]}


def new_nodes(answer: Document, decision: int) -> Iterator[Document]:
    """Yield the nodes that are to be added, as the kubelets of new machines would register them."""
    for group in answer["node_groups"]:
        capacity, labels, taints = GROUPS[group["name"]]
        for number in range(group["recommended"] - group["current"]):
            name = f"{group['name']}-{decision}-{number}"
            machine = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
            ready = [{"type": "Ready", "status": "True"}]
            yield {
                "metadata": {"name": name, "labels": {**machine, **labels, GROUP: group["name"]}},
                "spec": {"taints": taints},
                "status": {"capacity": capacity, "allocatable": capacity, "conditions": ready},
            }


def still_pending(places: PlacedClusters, names: set[str]) -> bool:
    """Return whether a pod has no node after the time that the scheduler needs for all of them."""
    try:
        places.cluster.wait_for("a place for all", lambda: not left_of(places, names), _SETTLING_SECONDS)
    except AssertionError:
        return True
    return False


def left_of(places: PlacedClusters, names: set[str]) -> Mapping[str, Sequence[str]]:
    """Return the pods without a node, each with what the scheduler says."""
    found: dict[str, Any] = places.pods()
    return {name: places.refusals(found[name]) for name in sorted(names) if "nodeName" not in found[name]["spec"]}
