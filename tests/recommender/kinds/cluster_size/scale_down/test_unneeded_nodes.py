"""Which unneeded nodes are sought and go first, and how long each of them waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from recommender.kinds.cluster_size.model.answer import ScaleUp
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings, SizeLimits
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import NOW, Harness, due, group, kept, waits

WHOLE = GroupOptions(zero_or_max=True)
NOT_READY = {"Ready": "Unknown"}


def unneeded(seconds: dict[str, float], options: GroupOptions | None = None) -> Harness:
    """Return nodes without pods that have been unneeded for these seconds."""
    return Harness(
        nodes=tuple(map(node, seconds)),
        groups=(group("g", seconds, options=options),),
        waits=True,
        memory=ClusterSizeMemory(unneeded_since={name: NOW - its for name, its in seconds.items()}),
    )


def numbered(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number:02}" for number in range(count)]


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        pytest.param(10.0, 40, id="twice the parallelism more than before"),
        pytest.param(300.0, 30, id="all that can be removed before they are decided about again"),
        pytest.param(1200.0, 20, id="decided less often than nodes become unneeded"),
        pytest.param(-10.0, 40, id="the clock was set back"),
    ],
)
def test_the_search_for_unneeded_nodes_goes_on_with_each_decision(seconds: float, found: int) -> None:
    """Ten nodes are removed at a time, each after ten minutes."""
    harness = unneeded(dict.fromkeys(numbered(60), 0.0))
    harness = replace(harness, memory=ClusterSizeMemory())
    assert len(harness.after(seconds, harness.decide()).decide().removals) == found


@pytest.mark.parametrize("prefixes", [("a", "b"), ("b", "a")], ids=["before single nodes", "after them"])
def test_a_group_that_is_removed_as_a_whole_does_not_count_in_the_search(prefixes: tuple[str, str]) -> None:
    whole, single = numbered(3, prefixes[0]), numbered(40, prefixes[1])
    harness = replace(
        unneeded(dict.fromkeys([*whole, *single], 0.0)),
        groups=(group("whole", whole, options=WHOLE), group("single", single)),
        memory=ClusterSizeMemory(),
    )
    removals = harness.decide().removals
    assert [sum(one.group == name for one in removals) for name in ("whole", "single")] == [3, 20]


@pytest.mark.parametrize(
    ("own", "is_ready", "expected"),
    [
        pytest.param(GroupOptions(), True, {"long"}, id="the settings for all"),
        pytest.param(GroupOptions(unneeded_seconds=60.0), True, {"short", "long"}, id="a shorter time"),
        pytest.param(GroupOptions(unneeded_seconds=1200.0), True, set(), id="a longer time"),
        pytest.param(GroupOptions(unready_seconds=60.0), True, {"long"}, id="a time of nodes that are not ready"),
        pytest.param(GroupOptions(unready_seconds=60.0), False, {"short", "long"}, id="not ready"),
        pytest.param(GroupOptions(unneeded_seconds=60.0), False, set(), id="not ready, and a time of those that are"),
        pytest.param(GroupOptions(unneeded_seconds=0.0), True, {"now", "short", "long"}, id="no time"),
    ],
)
def test_a_group_may_have_its_nodes_wait_for_a_time_of_their_own(
    own: GroupOptions, expected: set[str], *, is_ready: bool
) -> None:
    harness = unneeded({"now": 0.0, "short": 61.0, "long": 601.0}, own)
    if not is_ready:
        harness = replace(harness, nodes=tuple(node(one.name, conditions=NOT_READY) for one in harness.nodes))
    assert set(due(harness.decide())) == expected


def test_of_nodes_that_are_alike_those_that_have_been_unneeded_for_longest_go_first() -> None:
    harness = unneeded({"a": 700.0, "b": 900.0, "c": 800.0})
    only_one = replace(harness, settings=ScaleDownSettings(max_parallelism=1))
    assert due(only_one.decide()) == ["b"]


@pytest.mark.parametrize(("increase", "gone"), [(1, []), (0, ["a"]), (-1, ["a"])])
def test_a_single_new_node_that_is_needed_holds_all_removals(increase: int, gone: list[str]) -> None:
    """A size that is corrected downwards, since requested nodes have not come, needs no node."""
    assert due(unneeded({"a": 700.0}).decide(ScaleUp({"g": increase}))) == gone


def test_a_node_that_has_become_empty_is_removed_although_its_pods_fitted_nowhere_a_moment_ago() -> None:
    harness = unneeded({"a": 700.0})
    harness = replace(harness, memory=structs.replace(harness.memory, unremovable_until={"a": NOW + 100.0}))
    assert due(harness.decide()) == ["a"]


def test_a_clock_that_was_ahead_delays_the_next_simulation_of_a_node_by_at_most_five_minutes() -> None:
    harness = replace(
        unneeded({"a": 700.0}),
        nodes=(node("a"), node("stays")),
        pods=(pod("web", "1", "1Gi", node="a", controller="web"),),
        memory=ClusterSizeMemory(unremovable_until={"a": NOW + 86_400.0}),
    )
    first = harness.decide()
    assert kept(first)["a"] == "RecentlyUnremovable"
    assert first.unremovable_until == {"a": NOW + 300.0}
    assert waits(harness.after(301.0, first).decide()) == {"a": "NotUnneededLongEnough"}


def test_a_node_that_states_no_capacity_yet_stays_and_lets_others_go_down_to_the_minimum() -> None:
    bare = replace(node("bare"), capacity={}, allocatable={})
    limits = SizeLimits(min_cores=4, min_memory_bytes=16 << 30)
    decision = Harness((node("a"), node("b"), node("c"), bare), limits=limits).decide()
    assert len(due(decision)) == 2
    assert kept(decision)["bare"] == "UnexpectedError"


def test_the_nodes_of_a_group_that_is_left_out_stay() -> None:
    left_out = group("g", ["a"], problem="its size is unknown")
    harness = Harness((node("a"), node("b")), groups=(left_out, group("other", ["b"])))
    decision = harness.decide()
    assert (due(decision), kept(decision)) == (["b"], {"a": "NotAutoscaled"})
