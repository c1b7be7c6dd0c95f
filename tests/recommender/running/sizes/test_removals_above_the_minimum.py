"""Removals keep the minimum of a group, whatever the provider shows."""

from __future__ import annotations

import pytest

from recommender.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from tests.recommender.running.sizes.provider_harness import ProviderHarness


def test_a_deletion_that_did_not_take_effect_makes_the_node_usable_again() -> None:
    harness = ProviderHarness()
    harness.group.answers["nodes"] = [ProviderInstance("x:///1"), ProviderInstance("x:///2")]

    def unanswered() -> None:
        raise OutcomeUnknownError("no answer")

    harness.group.on_change = unanswered
    harness.resize(1, "n2")
    harness.later(100)
    assert harness.is_cordoned("n2")
    harness.later(40)
    assert harness.is_usable("n2")
    assert harness.group.changes == [("delete", ["n2"])]


def test_two_removals_keep_the_minimum_even_if_the_size_is_shown_late() -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"min_size": 1, "target_size": 2}
    harness.resize(1, "n1", known=2)
    harness.resize(1, "n2", known=2)
    harness.later(20)
    assert len(harness.group.changes) == 1
    assert harness.is_usable("n1") or harness.is_usable("n2")


@pytest.mark.parametrize(("after_seconds", "is_deleted"), [(100, False), (130, True)])
def test_a_size_that_stays_the_same_after_a_deletion_is_believed_after_two_minutes(
    after_seconds: int, *, is_deleted: bool
) -> None:
    """It may be shown late, or the group may have grown again."""
    harness = ProviderHarness()
    harness.group.answers |= {"min_size": 1, "target_size": 2}
    harness.resize(1, "n1", known=2)
    harness.later(after_seconds)
    harness.group.machines.append("x:///3")
    harness.resize(1, "n2", known=2)
    harness.later(10)
    assert harness.group.changes == [("delete", ["n1"]), ("delete", ["n2"])][: 1 + is_deleted]
    assert harness.is_usable("n2") is not is_deleted


def test_a_deletion_by_this_process_is_counted_once() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(0, "n1", "n2")
    harness.later(10)
    assert harness.group.changes == [("delete", ["n1"])]
    harness.api.pods.clear()
    harness.later(2)
    assert harness.group.changes == [("delete", ["n1"]), ("delete", ["n2"])]


@pytest.mark.parametrize(
    ("machines", "is_deleted"),
    [
        pytest.param([ProviderInstance("x:///1"), ProviderInstance("x:///2")], False, id="fewer-than-the-size"),
        pytest.param(
            [
                ProviderInstance("x:///1"),
                ProviderInstance("x:///2"),
                ProviderInstance("x:///3", InstanceState.CREATING),
                ProviderInstance("x:///4", InstanceState.DELETING),
            ],
            False,
            id="some-do-not-run",
        ),
        pytest.param([ProviderInstance(f"x:///{number}") for number in (1, 2, 3)], True, id="enough-run"),
        pytest.param([ProviderInstance(f"n{number}") for number in (1, 2, 3)], True, id="listed-by-names"),
        pytest.param([], True, id="none-is-listed"),
    ],
)
def test_machines_that_are_not_running_do_not_count_towards_the_minimum(
    machines: list[ProviderInstance], *, is_deleted: bool
) -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"min_size": 2, "target_size": 4, "nodes": machines}
    harness.resize(3, "n2", known=4)
    harness.later(20)
    assert harness.group.changes == ([("delete", ["n2"])] if is_deleted else [])


@pytest.mark.parametrize("lists_machines", [True, False])
@pytest.mark.parametrize("is_answered", [True, False])
def test_a_deletion_by_a_killed_process_counts_towards_the_minimum_even_if_the_size_is_late(
    *, is_answered: bool, lists_machines: bool
) -> None:
    harness = ProviderHarness(now=100_000.0)
    harness.group.answers |= {"min_size": 1, "target_size": 2} | ({} if lists_machines else {"nodes": []})

    def die() -> None:
        harness.permits = False
        if not is_answered:
            raise OutcomeUnknownError("the process ends")

    harness.group.on_change = die
    harness.resize(1, "n1", known=2)
    harness.resize(1, "n2", known=2)
    harness.later(10)
    assert len(harness.group.changes) == 1
    harness.group.on_change = lambda: None
    harness.permits = True
    harness.begin()
    harness.later(60)
    assert len(harness.group.changes) == 1, "the size that the provider shows may not count the first deletion"
    assert (harness.is_cordoned("n1"), harness.is_cordoned("n2")) == (True, True)
    del harness.group.answers["target_size"]
    harness.later(120)
    assert len(harness.group.changes) == 1
    assert harness.is_usable("n1") or harness.is_usable("n2")


@pytest.mark.parametrize("after_seconds", [2, 60], ids=["while it is drained", "while it is deleted"])
def test_a_clock_set_back_does_not_stop_a_removal(after_seconds: int) -> None:
    harness = ProviderHarness(now=100_000.0)
    harness.group.answers["nodes"] = [ProviderInstance("x:///1"), ProviderInstance("x:///2")]
    harness.resize(1, "n2")
    harness.later(after_seconds)
    harness.wall_ahead -= 50_000
    harness.later(1000)
    assert harness.group.changes == [("delete", ["n2"])]
    assert harness.is_usable("n2"), "its machine did not go"


def test_a_deletion_with_unknown_outcome_counts_towards_the_minimum() -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"min_size": 1, "target_size": 2}

    def unanswered() -> None:
        raise OutcomeUnknownError("no answer")

    harness.group.on_change = unanswered
    harness.resize(1, "n1", known=2)
    harness.resize(1, "n2", known=2)
    harness.later(60)
    assert len(harness.group.changes) == 1
    assert harness.is_usable("n1") or harness.is_usable("n2")


def test_a_group_that_others_shrink_after_a_deletion_keeps_its_minimum() -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"min_size": 1, "target_size": 3, "nodes": []}
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n1", "n2", known=3)
    harness.later(10)
    harness.group.answers["target_size"] = 1
    harness.api.pods.clear()
    harness.later(10)
    assert harness.group.changes == [("delete", ["n1"])]
    assert harness.is_usable("n2")
