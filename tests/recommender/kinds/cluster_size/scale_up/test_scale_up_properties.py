"""Properties of every scale-up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.scale_up.decide import scale_up
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import settings as sizes
from tests.recommender.kinds.cluster_size.scale_up.harnesses import situation, snapshot_of

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

ZONE = "topology.kubernetes.io/zone"
WEB = parse_selector("app=web")
CONSTRAINTS = (
    NO_CONSTRAINTS,
    NO_CONSTRAINTS,
    PodScheduling(node_selector=(("pool", "g0"),)),
    PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, WEB, frozenset({"default"})),)),
    PodScheduling(spread=(SpreadConstraint(ZONE, 1, WEB),)),
    PodScheduling(affinity=(PodTerm(ZONE, WEB, frozenset({"default"})),)),
)
EXPANDERS = st.sampled_from([("least-waste",), ("most-pods", "least-nodes"), ("price",), ("random",)])


@st.composite
def situations(draw: st.DrawFn) -> ClusterSituation:
    groups = []
    for number in range(draw(st.integers(1, 3))):
        zone = draw(st.sampled_from("xy"))
        shape = template(draw(st.sampled_from("248")), "8Gi", labels={"pool": f"g{number}", ZONE: zone})
        largest = draw(st.integers(0, 5))
        its = group(f"g{number}", size=draw(st.integers(0, 3)), max_size=largest, node_template=shape)
        groups.append(
            replace(its, price=draw(st.sampled_from([None, 1.0, 2.0])), min_size=draw(st.integers(0, largest)))
        )
    rows = draw(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 5), st.integers(0, 3)), max_size=14))
    pods = [
        pod(
            f"p{number}",
            f"{tenths * 100}m",
            "1Gi",
            labels={"app": "web"},
            scheduling=CONSTRAINTS[constraint],
            controller=f"c{owner}",
            priority=owner,
        )
        for number, (tenths, constraint, owner) in enumerate(rows)
    ]
    nodes = [node("present", "2", "8Gi", labels={ZONE: "x"})] if draw(st.booleans()) else []
    return situation(groups, nodes=nodes, pods=pods)


LIMITS = st.builds(SizeLimits, max_nodes=st.none() | st.integers(0, 6), max_cores=st.none() | st.integers(0, 30))


@settings(max_examples=70, deadline=None)
@given(
    its=situations(), limits=LIMITS, expanders=EXPANDERS, balance=st.booleans(), rounds=st.none() | st.integers(0, 2)
)
def test_sizes_stay_within_limits_and_every_pod_is_accounted_for(
    *, its: ClusterSituation, limits: SizeLimits, expanders: tuple[str, ...], balance: bool, rounds: int | None
) -> None:
    chosen = sizes(limits=limits, expanders=expanders, balance_similar_node_groups=balance, rounds=rounds)
    snapshot = snapshot_of(its)
    answer = scale_up(its, chosen, snapshot)
    for each in its.groups.groups:
        new = answer.increases.get(each.name, 0)
        assert 0 <= new <= max(0, each.max_size - each.target_size)
        assert each.name in answer.reasons
    added = Counter(name.rpartition("-new-")[0] for name in snapshot.nodes if "-new-" in name)
    assert added == answer.increases
    if added and limits.max_nodes is not None:
        assert len(snapshot.nodes) <= limits.max_nodes
    for info in snapshot.nodes.values():
        assert all(amount <= info.allocatable.get(resource, 0) for resource, amount in info.requested.items())
    left = sum(len(each.pods) for each in answer.unschedulable)
    assert answer.fitting_pods + answer.helped_pods + left == len(its.pods)
    if answer.bound is not None:
        assert answer.bound.bound <= answer.bound.nodes
    assert scale_up(its, chosen, snapshot_of(its)) == answer


@settings(max_examples=50, deadline=None)
@given(its=situations(), expanders=EXPANDERS, balance=st.booleans())
def test_no_pod_is_left_over_that_a_group_with_room_could_hold(
    *, its: ClusterSituation, expanders: tuple[str, ...], balance: bool
) -> None:
    snapshot = snapshot_of(its)
    answer = scale_up(its, sizes(expanders=expanders, balance_similar_node_groups=balance), snapshot)
    left = {str(name) for each in answer.unschedulable for name in each.pods}
    pods = [each for each in its.pods if f"{each.namespace}/{each.name}" in left]
    for each in its.groups.groups:
        if each.target_size + answer.increases.get(each.name, 0) >= each.max_size or each.template is None:
            continue
        probe = replace(each.template.node, name="probe", labels={**each.template.node.labels, HOSTNAME_LABEL: "probe"})
        mark = snapshot.checkpoint()
        info = snapshot.add_node(probe)
        assert [one.name for one in pods if PodFilter(snapshot, snapshot.shape(one)).fits(info)] == []
        snapshot.revert(mark)
