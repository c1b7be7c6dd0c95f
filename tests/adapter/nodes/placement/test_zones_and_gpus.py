"""Zones of nodes, and which GPUs pods leave free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.nodes.placement.gpus import GpuAllocationError, gpu_left, gpu_shares
from adapter.nodes.placement.node_columns import zone_key, zone_numbers
from tests.adapter.nodes.placement.objects import a_pod, resources

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

NEW, OLD = "topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/"
ZONES: dict[str, tuple[dict[str, str], str]] = {
    "region and zone": ({f"{NEW}region": "r", f"{NEW}zone": "z"}, "r:\x00:z"),
    "the older labels win": ({f"{OLD}zone": "old", f"{NEW}zone": "new"}, ":\x00:old"),
    "a region alone": ({f"{NEW}region": "r"}, "r:\x00:"),
    "neither": ({"zone": "z"}, ""),
    "both empty": ({f"{NEW}region": "", f"{NEW}zone": ""}, ""),
}


@pytest.mark.parametrize(("labels", "key"), ZONES.values(), ids=ZONES.keys())
def test_the_zone_key_comes_from_the_region_and_zone_labels(labels: dict[str, str], key: str) -> None:
    assert zone_key(labels) == key


def test_zones_are_numbered_as_they_appear() -> None:
    assert zone_numbers(["b", "", "a", "b"]).tolist() == [0, -1, 1, 0]


LEFT = {
    "no pods": (2, [], (1000, 1000)),
    "whole ones": (3, [a_pod("one", asks=resources(gpus=2))], (0, 0, 1000)),
    "shares": (4, [a_pod("one", gpus="0:800"), a_pod("two", gpus="3:500")], (200, 1000, 1000, 500)),
    "shares of one GPU add up": (1, [a_pod("one", gpus="0:300"), a_pod("two", gpus="0:300")], (400,)),
    "whole ones take what has the most left": (
        2,
        [a_pod("one", asks=resources(gpus=1)), a_pod("two", gpus="0:500")],
        (500, 0),
    ),
    "an annotation takes the place of the requests": (
        2,
        [a_pod("one", asks=resources(gpus=1), gpus="1:1000")],
        (1000, 0),
    ),
    "more than there is": (1, [a_pod("one", asks=resources(gpus=3)), a_pod("two", gpus="0:900")], (0,)),
}


@pytest.mark.parametrize(("count", "pods", "left"), LEFT.values(), ids=LEFT.keys())
def test_the_free_part_of_each_gpu_is_computed(count: int, pods: list[ClusterPod], left: tuple[int, ...]) -> None:
    assert gpu_left(count, pods, ("nvidia.com/gpu",)) == (left, [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0:",
        "a:500",
        "0:0",
        "0:1001",
        "0:500,",
        "0:100,0:100",
        "-1:500",
        "0:5.5",
        "9" * 5000 + ":1",
        "0:\u0665",
    ],
)
def test_a_malformed_annotation_is_refused(text: str) -> None:
    with pytest.raises(GpuAllocationError, match=r"write|name"):
        gpu_shares(text)


def test_a_malformed_annotation_does_not_affect_other_pods() -> None:
    pods = [a_pod("bad", gpus="9" * 5000 + ":500"), a_pod("good", gpus="1:500")]
    left, (problem,) = gpu_left(2, pods, ("nvidia.com/gpu",))
    assert left == (1000, 500)
    assert len(problem) < 250


def test_an_annotation_may_have_spaces() -> None:
    assert gpu_shares("1:1000, 0:500") == {1: 1000, 0: 500}
