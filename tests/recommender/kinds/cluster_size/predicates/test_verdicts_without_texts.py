"""Verdicts that state no reasons are the same as those that do, and reasons are built only where they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    HostPort,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.predicates import filters
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.node_resources_fit import resource_refusals
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape, Refusal

ZONE = "topology.kubernetes.io/zone"
WEB = parse_selector("app=web")
DEFAULT = frozenset({"default"})
CONSTRAINTS = (
    NO_CONSTRAINTS,
    PodScheduling(node_selector=((ZONE, "x"),)),
    PodScheduling(host_ports=(HostPort("TCP", "10.0.0.1", 80),)),
    PodScheduling(claims=("missing",)),
    PodScheduling(inline_volumes=("gcePersistentDisk/d",)),
    PodScheduling(resource_claims=("gpu",)),
    PodScheduling(spread=(SpreadConstraint(ZONE, 1, WEB), SpreadConstraint(HOSTNAME_LABEL, 1, WEB))),
    PodScheduling(affinity=(PodTerm(ZONE, WEB, DEFAULT),)),
    PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, WEB, DEFAULT),)),
)
PODS = st.lists(st.tuples(st.integers(1, 15), st.sampled_from(CONSTRAINTS), st.booleans(), st.integers(0, 3)))
NODES = st.lists(st.tuples(st.sampled_from(["x", "y", ""]), st.booleans(), st.integers(1, 3)), min_size=1, max_size=4)
PASSING = {"PodTopologySpread", "InterPodAffinity"}


@settings(max_examples=150, deadline=None)
@given(nodes=NODES, bound=PODS, asked=PODS)
def test_verdicts_agree_with_the_reasons(
    *,
    nodes: list[tuple[str, bool, int]],
    bound: list[tuple[int, PodScheduling, bool, int]],
    asked: list[tuple[int, PodScheduling, bool, int]],
) -> None:
    made = [
        node(f"n{number}", "2", "8Gi", most, labels={ZONE: zone} if zone else {}, taints=["a=b:NoSchedule"] * tainted)
        for number, (zone, tainted, most) in enumerate(nodes)
    ]
    pods = [
        pod(
            f"p{number}",
            f"{tenths * 100}m",
            "1Gi",
            labels={"app": "web"} if is_web else {},
            scheduling=scheduling,
            node=f"n{place}" if number < len(bound) else "",
        )
        for number, (tenths, scheduling, is_web, place) in enumerate([*bound, *asked])
    ]
    snapshot = Snapshot(made, pods)
    for each in pods:
        judge = PodFilter(snapshot, snapshot.shape(each))
        for info in snapshot.nodes.values():
            refusals = judge.refusals(info)
            assert judge.fits(info) is not bool(refusals)
            assert judge.refuses_for_good(info) is any(one.plugin not in PASSING for one in refusals)


@pytest.mark.parametrize(
    ("huge", "built"), [((), 0), (("9", "9"), 1)], ids=["every-pod-gets-a-place", "one-shape-of-pods-is-left"]
)
def test_texts_about_resources_are_built_only_for_pods_that_are_left(
    monkeypatch: pytest.MonkeyPatch, *, huge: tuple[str, ...], built: int
) -> None:
    asked: list[PodShape] = []

    def counted(info: NodeInfo, shape: PodShape) -> tuple[Refusal, ...]:
        asked.append(shape)
        return resource_refusals(info, shape)

    monkeypatch.setattr(filters, "resource_refusals", counted)
    spread = PodScheduling(spread=(SpreadConstraint(HOSTNAME_LABEL, 9, WEB),))
    pods = [
        pod(f"p{number}", cpu, "1Gi", labels={"app": "web"}, controller=cpu, scheduling=spread)
        for number, cpu in enumerate(["3", "1500m", "2500m"] * 4 + list(huge))
    ]
    answer = decided(situation([group("small", max_size=20)], pods=pods))
    assert answer.increases["small"] > 1
    assert sum(len(each.pods) for each in answer.unschedulable) == len(huge)
    assert len(asked) == built
