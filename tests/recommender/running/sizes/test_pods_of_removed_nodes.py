"""How long the removal of a node waits for its pods, and for which of them it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from recommender.running.sizes.removal_progress import FirstPods
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize(
    ("deleted", "phrase"),
    [("1970-01-01T00:01:00Z", ""), ("1970-01-01T00:02:00Z", "shop/dead has not ended within")],
    ids=["long over when the removal began", "over only since then"],
)
def test_only_a_pod_whose_end_was_long_overdue_when_the_removal_began_is_not_waited_for_to_the_end(
    deleted: str, phrase: str
) -> None:
    """The kubelet of a dead node never ends its pods, so the removal would fail for ever."""
    harness = ProviderHarness()
    harness.api.add_pod("dead", "n2", deletionTimestamp=deleted)
    if not phrase:
        harness.api.pods["dead"]["spec"]["terminationGracePeriodSeconds"] = 30
    harness.resize(1, "n2")
    harness.later(170)
    assert harness.group.changes == []
    harness.later(20)
    assert bool(harness.group.changes) is not bool(phrase)
    harness.later(610)
    assert harness.api.evicted == []
    assert [name for name, _ in harness.group.changes] == ([] if phrase else ["delete"])
    assert [event.reason for event in harness.events] == (["RemovalFailed"] if phrase else ["NodeRemoved"])
    assert phrase in harness.events[-1].message


@pytest.mark.parametrize(
    ("evicted_after", "grace"),
    [(0, 30), (110, 30), (0, 300)],
    ids=["terminating before", "evicted late", "deleted with a longer period than its own"],
)
def test_a_wall_clock_that_is_ahead_cuts_no_grace_period(evicted_after: int, grace: int) -> None:
    harness = ProviderHarness(wall_ahead=1200.0)
    harness.api.add_pod("web", "n2")
    harness.api.pods["web"]["spec"]["terminationGracePeriodSeconds"] = 30
    harness.api.budget = {"web"}
    harness.resize(1, "n2")
    harness.later(evicted_after)
    # By the clock of the API server, the pod has its grace period from now on.
    ends = datetime.fromtimestamp(harness.now + grace, UTC).isoformat()
    harness.api.pods["web"]["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace}
    harness.later(grace - 2)
    assert harness.group.changes == []
    del harness.api.pods["web"]
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]


@pytest.mark.parametrize(
    ("priority", "cutoff", "reason"),
    [(-11, -10, "NodeRemoved"), (-10, -10, "RemovalFailed"), (-11, -20, "RemovalFailed")],
)
def test_a_pod_below_the_priority_cutoff_is_no_obstacle_to_a_removal(priority: int, cutoff: int, reason: str) -> None:
    harness = ProviderHarness()
    harness.rules = replace(harness.rules, expendable_pods_priority_cutoff=cutoff)
    harness.api.add_pod("cheap", "n2", owner="")
    harness.api.pods["cheap"]["spec"]["priority"] = priority
    harness.resize(1, "n2")
    harness.later(10)
    assert [event.reason for event in harness.events] == [reason]
    assert harness.api.evicted == (["cheap"] if reason == "NodeRemoved" else [])


def test_a_pod_below_the_priority_cutoff_is_waited_for_no_longer_than_evictions_are_tried() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("cheap", "n2")
    harness.api.pods["cheap"]["spec"]["priority"] = -11
    harness.api.budget = {"cheap"}
    harness.resize(1, "n2")
    harness.later(119)
    assert harness.group.changes == []
    harness.later(5)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_refused_eviction_is_tried_again_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.budget = {"web"}
    evict, tried = harness.api.create, []

    def count(collection: str, document: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        tried.append(harness.now)
        return evict(collection, document, seconds=seconds)

    monkeypatch.setattr(harness.api, "create", count)
    harness.resize(1, "n2")
    harness.later(20)
    assert tried == [1001.0, 1006.0, 1011.0, 1016.0]


@pytest.mark.parametrize(("away_seconds", "grace", "reason"), [(700, 30, "NodeRemoved"), (700, 60, ""), (200, 600, "")])
def test_no_pod_is_evicted_too_late_for_its_end_to_be_waited_for(away_seconds: int, grace: int, reason: str) -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.pods["web"]["spec"]["terminationGracePeriodSeconds"] = grace
    harness.resize(1, "n2")
    harness.permits = False
    harness.later(away_seconds)
    harness.permits = True
    harness.begin()
    harness.later(10)
    assert harness.api.evicted == (["web"] if reason else [])
    assert [event.reason for event in harness.events] == [reason or "RemovalFailed"]
    assert harness.is_usable("n2") is not bool(reason)


@pytest.mark.parametrize(
    ("tolerated", "is_awaited"),
    [("", False), ("node.kubernetes.io/unschedulable", True)],
    ids=["everything", "the cordon alone"],
)
def test_a_pod_that_returns_to_the_node_since_it_tolerates_the_removal_ends_with_the_node(
    monkeypatch: pytest.MonkeyPatch, tolerated: str, *, is_awaited: bool
) -> None:
    harness = ProviderHarness()
    evict = harness.api.create

    def return_to_the_node(
        collection: str, document: Mapping[str, Any], *, seconds: float | None = None
    ) -> dict[str, Any]:
        answer = evict(collection, document, seconds=seconds)
        add(f"operator-{len(harness.api.evicted)}")
        return answer

    def add(name: str) -> None:
        harness.api.add_pod(name, "n2")
        harness.api.pods[name]["spec"]["tolerations"] = [{"key": tolerated, "operator": "Exists"}]

    add("operator")
    monkeypatch.setattr(harness.api, "create", return_to_the_node)
    harness.resize(1, "n2")
    harness.later(20)
    # Pods that were being bound may come for five seconds; those of this time are evicted once more.
    assert (len(harness.api.evicted) <= 7) is not is_awaited
    assert harness.group.changes == ([] if is_awaited else [("delete", ["n2"])])


@pytest.mark.parametrize("is_new", [True, False], ids=["a new process", "the former leader"])
def test_a_pod_that_came_while_no_recommender_was_there_keeps_the_node_by_its_budget(*, is_new: bool) -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n2")
    harness.later(10)
    harness.permits = False
    harness.later(60)
    harness.api.pods.clear()
    harness.api.add_pod("operator", "n2", creationTimestamp=datetime.fromtimestamp(harness.now, UTC).isoformat())
    harness.api.pods["operator"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    harness.api.budget = {"operator"}
    harness.now += 3 * 3600.0
    harness.permits = True
    if is_new:
        harness.begin()
    harness.later(10)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def test_a_pod_that_comes_to_the_node_and_must_not_be_moved_ends_the_removal_even_if_it_tolerates_it() -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    harness.api.add_pod("alone", "n2", owner="", creationTimestamp="1970-01-01T01:00:00Z")
    harness.api.pods["alone"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    harness.later(10)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def test_a_node_that_pods_have_come_to_during_a_long_time_without_a_recommender_is_not_deleted() -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    harness.permits = False
    harness.later(1000)
    created = datetime.fromtimestamp(harness.now, UTC).isoformat()
    harness.api.add_pod("operator", "n2", creationTimestamp=created)
    harness.api.pods["operator"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    harness.permits = True
    harness.later(10)
    assert (harness.is_usable("n2"), harness.group.changes, harness.api.evicted) == (True, [], [])


def test_a_node_that_is_removed_again_has_the_first_pods_of_its_new_removal() -> None:
    first = FirstPods()
    web, operator = ({"metadata": {"uid": name}} for name in ("web", "operator"))
    assert first.of("n2", 1000.0, [web], 4.0) is None
    assert first.of("n2", 1000.0, [web], 5.0) == frozenset({"web"})
    assert first.of("n2", 1000.0, [operator], 9.0) == frozenset({"web"})
    assert first.of("n2", 2000.0, [operator], 5.0) == frozenset({"operator"})
    first.keep(())
    assert first.of("n2", 1000.0, [operator], 9.0) == frozenset({"operator"})
