"""Compared with an oracle that tries every order and node, at most one more node is used, and each pod has a place.

The oracle uses only the filters, which other tests compare with the scheduler's own. Clusters are so small that the
oracle finishes.
"""

from __future__ import annotations

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
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import settings as sizes
from tests.recommender.kinds.cluster_size.scale_up.harnesses import situation, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

ZONE = "topology.kubernetes.io/zone"
MOST_NEW = 5
APPS = [parse_selector(f"app=a{number}") for number in range(2)]
HERE = frozenset({"default"})
CONSTRAINTS = [
    NO_CONSTRAINTS,
    *(PodScheduling(anti_affinity=(PodTerm(key, app, HERE),)) for key in (HOSTNAME_LABEL, ZONE) for app in APPS),
    *(PodScheduling(affinity=(PodTerm(key, app, HERE),)) for key in (HOSTNAME_LABEL, ZONE) for app in APPS),
    *(PodScheduling(spread=(SpreadConstraint(key, 1, app),)) for key in (HOSTNAME_LABEL, ZONE) for app in APPS),
]
KINDS = st.tuples(
    st.sampled_from([500, 1000, 1500, 2500]), st.integers(0, 1), st.sampled_from(CONSTRAINTS), st.integers(0, 1)
)
DOWN = ScaleDownSettings(unneeded_seconds=0.0, delay_after_add_seconds=0.0)


@st.composite
def situations(draw: st.DrawFn) -> ClusterSituation:
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    zones = draw(st.lists(st.sampled_from(["x", "x", "y"]), max_size=3))
    taints = st.sampled_from([(), (), (), ("dedicated=batch:NoSchedule",)])
    nodes = [
        node(f"g-{number}", "4", "16Gi", labels={ZONE: zone, HOSTNAME_LABEL: f"g-{number}"}, taints=draw(taints))
        for number, zone in enumerate(zones)
    ]
    names = tuple(each.name for each in nodes)
    made = template("4", "16Gi", labels={ZONE: "x"})
    workers = replace(group("g", size=len(nodes), max_size=len(nodes) + MOST_NEW, node_template=made), nodes=names)
    bare = situation(
        [workers], nodes=nodes, assumed_controllers=frozenset({"ReplicaSet"}), namespace_labels={"default": {}}
    )
    snapshot, pods = snapshot_of(bare), []
    for number, kind in enumerate(draw(st.lists(st.integers(0, len(kinds) - 1), max_size=6))):
        cpu, app, scheduling, priority = kinds[kind]
        its = pod(
            f"p{number}",
            f"{cpu}m",
            "1Gi",
            labels={"app": f"a{app}"},
            scheduling=scheduling,
            controller=f"c{kind}",
            priority=priority,
        )
        chosen = draw(st.sampled_from([*names, ""]))
        if chosen and PodFilter(snapshot, snapshot.shape(its)).fits(snapshot.nodes[chosen]):
            its = replace(its, node=chosen, phase="Running")
            snapshot.place(its, chosen)
        pods.append(its)
    return replace(bare, pods=tuple(pods))


def most_placed(snapshot: Snapshot, pods: Sequence[ClusterPod]) -> int:
    """Return how many pods have a place, in the best order and on the best nodes."""
    best = 0
    for place, its in enumerate(pods):
        judge = PodFilter(snapshot, snapshot.shape(its))
        for name, info in list(snapshot.nodes.items()):
            if best < len(pods) and judge.fits(info):
                mark = snapshot.checkpoint()
                snapshot.place(its, name)
                best = max(best, 1 + most_placed(snapshot, [*pods[:place], *pods[place + 1 :]]))
                snapshot.revert(mark)
    return best


def with_new_nodes(its: ClusterSituation, count: int) -> Snapshot:
    snapshot = snapshot_of(its)
    add_new_nodes(snapshot, its.groups.groups[0], count)
    return snapshot


@settings(max_examples=60, deadline=None)
@given(its=situations())
def test_at_most_one_node_more_than_an_oracle_needs_is_requested(its: ClusterSituation) -> None:
    pending = [each for each in its.pods if not each.node][:4]
    its = replace(its, pods=(*(each for each in its.pods if each.node), *pending))
    [found] = decide_size(its, sizes(scale_down=replace(DOWN, enabled=False))).groups
    asked = found.recommended - (found.current or 0)
    most = most_placed(with_new_nodes(its, MOST_NEW), pending)
    least = next(count for count in range(MOST_NEW + 1) if most_placed(with_new_nodes(its, count), pending) == most)
    assert asked <= least + 1


@settings(max_examples=60, deadline=None)
@given(its=situations())
def test_pods_of_removed_nodes_fit_on_the_others(its: ClusterSituation) -> None:
    its = replace(its, pods=tuple(each for each in its.pods if each.node))
    snapshot = snapshot_of(its)
    moved: list[ClusterPod] = []
    for removal in decide_size(its, sizes(scale_down=DOWN)).removals:
        if removal.is_due:
            moved += snapshot.remove_node(removal.node)
    assert most_placed(snapshot, [replace(each, node="") for each in moved]) == len(moved)
