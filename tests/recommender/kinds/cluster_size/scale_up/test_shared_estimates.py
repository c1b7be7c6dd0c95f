"""Groups whose new nodes are alike to the pods share one estimate, and that changes no decision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    HostPort,
    NodeSelectorTerm,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.cluster.values.storage import Storage, StorageClassFacts, VolumeClaim
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.scale_up import group_options, shared_estimates
from recommender.kinds.cluster_size.scale_up.shared_estimates import SharedEstimates
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer

ZONE = "topology.kubernetes.io/zone"
WEB, AGENT = parse_selector("app=web"), parse_selector("app=agent")
DEFAULT = frozenset({"default"})
IN_X = (NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("x",)),)),)
LATE = StorageClassFacts("late", "csi.example.com", binds_at_first_consumer=True, allowed_topologies=IN_X)
CLAIM = VolumeClaim("default", "data", "", "late", is_bound=False, request_bytes=1)
STORAGE = Storage(
    claims=Observed({("default", "data"): CLAIM}, 0),
    volumes=Observed({}, 0),
    classes=Observed({"late": LATE}, 0),
    csi_nodes=Observed({}, 0),
)
OVER_HOSTS = PodScheduling(spread=(SpreadConstraint(HOSTNAME_LABEL, 1, WEB),))
CONSTRAINTS = (
    NO_CONSTRAINTS,
    OVER_HOSTS,
    PodScheduling(spread=(SpreadConstraint(ZONE, 1, WEB),)),
    PodScheduling(affinity=(PodTerm(ZONE, WEB, DEFAULT),)),
    PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, WEB, DEFAULT),)),
    PodScheduling(anti_affinity=(PodTerm("pool", AGENT, DEFAULT),)),
    PodScheduling(node_selector=((ZONE, "x"),), host_ports=(HostPort("TCP", "0.0.0.0", 80),)),
    PodScheduling(node_terms=(NodeSelectorTerm(name_not_in=("g1-new-1",)),)),
    PodScheduling(claims=("data",)),
    PodScheduling(node_terms=(NodeSelectorTerm((Requirement(HOSTNAME_LABEL, Operator.NOT_IN, ("g1-new-1",)),)),)),
)
OWN = (
    (),
    (pod("agent", "500m", labels={"app": "agent"}),),
    (pod("agent", "500m", labels={"app": "web"}),),
    (pod("agent", "500m", scheduling=PodScheduling(anti_affinity=(PodTerm("pool", WEB, DEFAULT),))),),
    (pod("agent", "500m", scheduling=PodScheduling(host_ports=(HostPort("TCP", "10.0.0.1", 80),))),),
)


@st.composite
def situations(draw: st.DrawFn) -> ClusterSituation:
    kinds = draw(st.lists(st.tuples(st.sampled_from("xxy"), st.sampled_from(OWN)), min_size=2, max_size=2))
    some = draw(st.lists(st.sampled_from(CONSTRAINTS), min_size=1, max_size=2))  # All at once, no estimate is shared.
    groups: list[NodeGroup] = []
    for number in range(draw(st.integers(2, 5))):
        zone, own = draw(st.sampled_from(kinds))
        taints = draw(st.sampled_from([(), (), ("a=b:NoSchedule",)]))
        its = template(
            draw(st.sampled_from("4444448")), labels={"pool": f"g{number}", ZONE: zone}, taints=taints, pods=own
        )
        groups.append(group(f"g{number}", max_size=draw(st.sampled_from([2, 7, 8])), node_template=its))
    row = st.tuples(st.integers(1, 20), st.sampled_from(some), st.sampled_from([True, True, False]))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    copies = draw(st.integers(2, 8))
    pods = [
        pod(
            f"p{number}-{copy}",
            f"{tenths * 100}m",
            "1Gi",
            labels={"app": "web"} if is_web else {},
            scheduling=scheduling,
            controller=f"c{number}",
        )
        for number, (tenths, scheduling, is_web) in enumerate(rows)
        for copy in range(copies)
    ]
    host = draw(st.sampled_from(["present", "g0-new-0", "g1-new-0"]))
    nodes = [node("present", "1", labels={ZONE: "x", HOSTNAME_LABEL: host})] if draw(st.booleans()) else []
    bound = [pod("bound", node="present", labels={"app": "web"})] if nodes else []
    return situation(groups, nodes=nodes, pods=[*pods, *bound], storage=STORAGE)


def without_names(its: Estimate) -> tuple[object, ...]:
    nodes = [each.pods for each in its.new_nodes]
    return its.node_count, its.pods, nodes, its.placed_on_existing, its.limit, its.opened


class Compared(SharedEstimates):
    """Compares each estimate with one that is made for its group alone."""

    def __init__(self, snapshot: Snapshot, placer: Placer) -> None:
        super().__init__(snapshot, placer)
        self._here = snapshot

    def estimate(self, group: NodeGroup, pods: tuple[PodGroup, ...], max_nodes: int) -> Estimate:
        found = super().estimate(group, pods, max_nodes)
        assert group.template is not None
        prefix = f"{group.name}-new"
        own = estimate(self._here, pods, group.template, name_prefix=prefix, max_nodes=max_nodes)
        assert without_names(found) == without_names(own)
        return found


def alike(number: int, zone: str = "x", max_size: int = 10) -> NodeGroup:
    shape = template(labels={"pool": f"g{number}", ZONE: zone})
    return group(f"g{number}", max_size=max_size, node_template=shape)


def over_hosts(groups: list[NodeGroup], host: str) -> ClusterSituation:
    """Return a situation in which pods are spread over hosts, one of which has such a pod."""
    pods = [
        pod(f"p{number}", "500m", labels={"app": "web"}, controller="web", scheduling=OVER_HOSTS) for number in range(6)
    ]
    bound = pod("bound", node="present", labels={"app": "web"})
    there = node("present", "500m", labels={ZONE: "x", HOSTNAME_LABEL: host})
    return situation(groups, nodes=[there], pods=[*pods, bound], storage=STORAGE)


def with_pods(its: NodeGroup, pods: tuple[ClusterPod, ...]) -> NodeGroup:
    assert its.template is not None
    return replace(its, template=replace(its.template, pods=pods))


@settings(max_examples=200, deadline=None)
@given(its=situations(), expander=st.sampled_from(["least-waste", "most-pods", "random"]))
@example(its=over_hosts([alike(0), alike(1)], "g1-new-0"), expander="least-waste")
@example(its=over_hosts([with_pods(alike(n), OWN[n]) for n in (1, 2)], "present"), expander="least-waste")
def test_a_shared_estimate_is_the_one_that_each_group_would_get(its: ClusterSituation, expander: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_options, "SharedEstimates", Compared)
        compared = decided(its, expanders=(expander,))
        patch.setattr(SharedEstimates, "_of_alike_nodes", lambda *_: [])
        assert decided(its, expanders=(expander,)) == compared


def labelled(its: NodeGroup, **labels: str) -> NodeGroup:
    assert its.template is not None
    node_template = replace(its.template.node, labels={**its.template.node.labels, **labels})
    return replace(its, template=replace(its.template, node=node_template))


@pytest.mark.parametrize(
    ("groups", "scheduling", "made"),
    [
        ([alike(number) for number in range(20)], OVER_HOSTS, 1),
        ([alike(number, max_size=20 + number) for number in range(20)], OVER_HOSTS, 1),
        ([alike(number, max_size=1 + number % 2) for number in range(20)], OVER_HOSTS, 2),
        ([alike(number, "xy"[number % 2]) for number in range(20)], OVER_HOSTS, 1),
        ([alike(number, "xy"[number % 2]) for number in range(20)], CONSTRAINTS[2], 2),
        ([alike(number, "xy"[number % 2]) for number in range(20)], CONSTRAINTS[8], 1),
        ([alike(number) for number in range(20)], CONSTRAINTS[5], 20),
        ([labelled(alike(number), rack=f"r{number}") for number in range(20)], OVER_HOSTS, 1),
        ([alike(number) for number in range(20)], CONSTRAINTS[7], 20),
        ([alike(number) for number in range(20)], CONSTRAINTS[9], 20),
    ],
    ids=[
        "alike",
        "limits-that-are-not-reached",
        "limits-that-are-reached",
        "zones-that-no-pod-reads",
        "zones-that-pods-read",
        "zones-of-a-volume",
        "topology-that-differs",
        "labels-that-no-pod-reads",
        "names-that-pods-read",
        "hostnames-that-pods-read",
    ],
)
def test_groups_that_are_alike_to_the_pods_are_estimated_once(
    monkeypatch: pytest.MonkeyPatch, *, groups: list[NodeGroup], scheduling: PodScheduling, made: int
) -> None:
    prefixes: list[str] = []

    def counted(
        snapshot: Snapshot, groups: Sequence[PodGroup], template: NodeTemplate, *, name_prefix: str, max_nodes: int
    ) -> Estimate:
        prefixes.append(name_prefix)
        return estimate(snapshot, groups, template, name_prefix=name_prefix, max_nodes=max_nodes)

    monkeypatch.setattr(shared_estimates, "estimate", counted)
    pods = [
        pod(f"p{number}", "3", labels={"app": "web"}, controller="web", scheduling=scheduling) for number in range(4)
    ]
    answer = decided(situation(groups, pods=pods, storage=STORAGE), rounds=1)
    assert sum(answer.increases.values()) > 0
    assert len(prefixes) == made
