"""Pods that are known only as a sum, and pods that are placed together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.kinds.cluster_size.model.size_situation import UnlistedPods
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

SMALL = {"cpu": 500, "memory": 1}


@pytest.mark.parametrize(
    ("unlisted", "fits"),
    [
        (UnlistedPods({"cpu": 3500}, 1), True),
        (UnlistedPods({"cpu": 3501}, 1), False),
        (UnlistedPods({}, 109), True),
        (UnlistedPods({}, 110), False),
    ],
)
def test_unlisted_pods_count_against_resources_and_pods_of_their_node(unlisted: UnlistedPods, *, fits: bool) -> None:
    one = node("n")
    snapshot = Snapshot([one, node("m")], [], unlisted={"n": unlisted})
    judge = PodFilter(snapshot, snapshot.shape(pod("p", requests=SMALL)))
    assert judge.fits(snapshot.nodes["n"]) == fits
    assert judge.fits(snapshot.nodes["m"])


def test_a_node_that_is_added_again_keeps_its_unlisted_pods() -> None:
    one = node("n")
    snapshot = Snapshot([one], [], unlisted={"n": UnlistedPods({"cpu": 3000}, 2)})
    snapshot.remove_node("n")
    info = snapshot.add_node(one, [pod("p", requests=SMALL)])
    assert (info.requested, info.pod_count) == ({"cpu": 3500, "memory": 1}, 3)


def test_pods_placed_together_have_the_same_effect_as_one_by_one() -> None:
    pods = [pod(name, requests=SMALL) for name in ("a", "b", "c")]
    together, apart = Snapshot([node("n")], []), Snapshot([node("n")], [])
    start = together.checkpoint()
    together.place_alike(pods, together.shape(pods[0]), together.nodes["n"])
    for one in pods:
        apart.place(one, "n")
    assert _content(together, pods) == _content(apart, pods)
    with pytest.raises(ValueError, match="evict it first"):
        together.place_alike(pods[:1], together.shape(pods[0]), together.nodes["n"])
    together.revert(start)
    assert _content(together, pods) == _content(Snapshot([node("n")], []), pods)


def _content(snapshot: Snapshot, pods: list[ClusterPod]) -> object:
    info = snapshot.nodes["n"]
    places = [found.node.name if (found := snapshot.node_of(one)) else None for one in pods]
    return info.requested, info.pod_count, list(info.pods.values()), places
