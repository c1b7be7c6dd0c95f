from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
from recommender.kinds.cluster_size.estimator.binpacking import estimate, order_by_score
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.estimator.clusters import MANY, ZONE
from tests.recommender.kinds.cluster_size.estimator.pod_by_pod import PodByPod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

APPS: Final = ("a", "b", "c")
keys = st.sampled_from([HOSTNAME_LABEL, ZONE])
selectors = st.sampled_from([parse_selector(f"app={app}") for app in APPS])
terms = st.builds(PodTerm, keys, selectors, st.just(frozenset({"default"})))
spreads = st.builds(SpreadConstraint, keys, st.integers(1, 2), selectors, min_domains=st.integers(1, 3))
schedulings = st.one_of(
    st.just(NO_CONSTRAINTS),
    st.just(PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),))),
    st.builds(lambda term: PodScheduling(anti_affinity=(term,)), terms),
    st.builds(lambda term: PodScheduling(affinity=(term,)), terms),
    st.builds(lambda spread: PodScheduling(spread=(spread,)), spreads),
    st.builds(lambda one, other: PodScheduling(spread=(one, other)), spreads, spreads),
)


@st.composite
def alike_pods(draw: st.DrawFn, name: str) -> list[ClusterPod]:
    cpu, memory, app = draw(st.integers(0, 12)), draw(st.integers(0, 12)), draw(st.sampled_from(APPS))
    scheduling = draw(schedulings)
    return [
        pod(
            f"{name}-{number}",
            cpu=f"{cpu}00m" if cpu else "",
            memory=f"{memory}Gi" if memory else "",
            labels={"app": app},
            controller=name,
            scheduling=scheduling,
        )
        for number in range(draw(st.integers(1, 6)))
    ]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Snapshot, list[ClusterPod], NodeTemplate, int]:
    nodes = [
        node(name, "1", "10Gi", pods=5, labels={ZONE: draw(st.sampled_from("xy"))})
        for name in ("old-0", "old-1")[: draw(st.integers(0, 2))]
    ]
    bound = [pod(f"bound-{each.name}", node=each.name, labels={"app": draw(st.sampled_from(APPS))}) for each in nodes]
    pending = [one for index in range(draw(st.integers(1, 4))) for one in draw(alike_pods(f"group-{index}"))]
    template = node("template", "1", "10Gi", pods=draw(st.integers(2, 6)), labels={ZONE: "x"})
    agents = (pod("agent", labels={"app": draw(st.sampled_from(APPS))}),)[: draw(st.integers(0, 1))]
    return Snapshot(nodes, bound), pending, NodeTemplate(template, agents), draw(st.integers(0, 6) | st.just(MANY))


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_the_estimate_places_each_pod_where_the_pod_by_pod_rule_does(
    cluster: tuple[Snapshot, list[ClusterPod], NodeTemplate, int],
) -> None:
    snapshot, pending, template, max_nodes = cluster
    groups = pod_groups(pending, snapshot)
    expected = PodByPod(snapshot, template, max_nodes).estimate(order_by_score(groups, template.node))
    found = estimate(snapshot, groups, template, name_prefix="new", max_nodes=max_nodes)
    places = {one.name: new.name for new in found.new_nodes for one in new.pods}
    places |= {one.name: name for one, name in found.placed_on_existing}
    assert places == expected
    assert found.node_count == len(set(expected.values()))
    assert {one.name for one in found.pods} == set(expected)
