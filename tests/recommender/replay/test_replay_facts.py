"""What a replay takes from a recording of nodes that change: the time that nodes take to start, and their kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import parse_selector
from benchmarks.made_past import START, pod_kind
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, StaticGroup
from recommender.recording.recording import RecordedNode, RecordedPod, Recording
from recommender.replay.cluster.events import Happening, events_of
from recommender.replay.cluster.replay_facts import Scene, scene_of
from tests.recommender.kinds.cluster_size.builders import node, taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterNode

SETTINGS = ClusterSizeSettings(NodeGroupSources(static=(StaticGroup("a", 0, 9, parse_selector("pool=a")),)))
OLD = node("old", labels={"pool": "a"})
REMOVED = replace(OLD, taints=(taint("ToBeDeletedByClusterAutoscaler=1:NoSchedule"),))


def scene(lives: Sequence[tuple[ClusterNode, float, float | None]], pods: Sequence[tuple[float, float, str]]) -> Scene:
    """Return the scene of nodes with their times, and of pods that are created and bound to a node."""
    recording = Recording(
        "a test",
        START,
        START + 3600,
        tuple(RecordedNode(one, START + came, None if gone is None else START + gone) for one, came, gone in lives),
        tuple(RecordedPod(0, START + created, START + bound, None, name) for created, bound, name in pods),
        (pod_kind("web", (100, 100)),),
    )
    return scene_of(recording, SETTINGS)


def test_pods_bound_before_a_node_changed_do_not_count_as_waiting_for_it() -> None:
    found = scene(
        [(OLD, -60, 3000), (REMOVED, 3000, None)], [(100 * number, 100 * number + 1, "old") for number in range(9)]
    )
    assert found.startup_seconds == 120
    assert "is assumed to take" in found.notes[0]


def test_changes_of_a_starting_node_do_not_shorten_its_startup_time() -> None:
    young = replace(OLD, name="young", taints=(taint("node.kubernetes.io/not-ready:NoSchedule"),))
    found = scene(
        [(OLD, -60, None), (young, 100, 140), (replace(young, taints=()), 140, None)],
        [(50, 150, "young")] * 5 + [(120, 150, "young")] * 9,
    )
    assert (found.startup_seconds, found.notes[0]) == (
        100,
        "A node takes 100 s, the median wait of 5 recorded pods for a new node.",
    )


def test_taints_of_a_node_removal_do_not_keep_pods_from_its_kind() -> None:
    found = scene([(OLD, -60, 3000), (REMOVED, 3000, 3060)], [(0, 1, "old")])
    (needs,) = found.needs
    assert needs.allowed[found.kind_of_node["old"]]
    assert found.kind_of_node["old"] == found.new_kinds["a"]


@pytest.mark.parametrize(
    ("lives", "events"),
    [
        ([(-60, 1000), (1000, 2000), (2000, None)], []),
        ([(-60, 1000), (1000, 2000)], [(2000, Happening.NODE_GONE, 1)]),
        ([(100, 1000), (1000, 2000)], [(100, Happening.NODE_CAME, 1), (2000, Happening.NODE_GONE, 1)]),
        ([(-60, 1000), (1500, None)], [(1000, Happening.NODE_GONE, 1), (1500, Happening.NODE_CAME, 2)]),
    ],
)
def test_a_node_outside_all_groups_stays_if_only_its_labels_change(
    lives: Sequence[tuple[float, float | None]], events: Sequence[tuple[float, Happening, int]]
) -> None:
    changing = [node("outside", labels={"step": str(number)}) for number in range(len(lives))]
    found = scene(
        [(OLD, -60, None), *((one, came, gone) for one, (came, gone) in zip(changing, lives, strict=True))],
        [(0, 1, "old")],
    )
    assert [
        (time - START, what, number) for time, what, number in events_of(found) if what != Happening.POD_CAME
    ] == events
