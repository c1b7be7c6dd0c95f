"""A group whose size must not be written keeps no pods waiting that another group could hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, RequestedNodes
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.answer import ScaleUp
    from recommender.kinds.cluster_size.model.groups import NodeGroup

PAUSED = "it is paused by the annotation cluster.x-k8s.io/paused"
POD = pod("p", "3")


def asked(*groups: NodeGroup, pods: tuple[ClusterPod, ...] = (POD,), writes: bool = True) -> ScaleUp:
    its = situation(groups, pods=pods, writes_sizes=writes)
    return decided(its, expanders=("price",))


def paused(name: str, price: float) -> NodeGroup:
    return replace(group(name, price=price), paused=PAUSED)


def test_another_group_grows_in_place_of_a_paused_one_that_would_be_better() -> None:
    assert asked(paused("cheap", 0.1), group("other", price=0.4)).increases == {"other": 1}


def test_pods_that_only_a_paused_group_can_hold_are_recommended_nodes_of_it() -> None:
    assert asked(paused("cheap", 0.1)).increases == {"cheap": 1}


def test_a_paused_group_holds_what_is_left_when_the_other_has_reached_its_maximum() -> None:
    pods = tuple(pod(name, "3") for name in ("p", "q"))
    assert asked(paused("cheap", 0.1), replace(group("other", price=0.4), max_size=1), pods=pods).increases == {
        "cheap": 1,
        "other": 1,
    }


def test_where_nothing_is_written_a_paused_group_is_recommended_like_the_others() -> None:
    assert asked(paused("cheap", 0.1), group("other", price=0.4), writes=False).increases == {"cheap": 1}


def test_nodes_that_were_requested_before_the_pause_are_waited_for() -> None:
    its = situation(
        [replace(paused("cheap", 0.1), target_size=1), group("other", price=0.4)],
        pods=[POD],
        memory=ClusterSizeMemory(requested={"cheap": RequestedNodes(1, NOW)}),
        writes_sizes=True,
    )
    assert decided(its, expanders=("price",)).increases == {}
