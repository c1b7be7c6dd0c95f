"""Removals keep the minimum of a group, whatever the provider shows."""

from __future__ import annotations

import pytest

from recommender.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from tests.recommender.running.sizes.provider_world import ProviderWorld


def test_a_deletion_that_did_not_take_effect_makes_the_node_usable_again() -> None:
    world = ProviderWorld()
    world.group.answers["nodes"] = [ProviderInstance("x:///1"), ProviderInstance("x:///2")]

    def unanswered() -> None:
        raise OutcomeUnknownError("no answer")

    world.group.on_change = unanswered
    world.resize(1, "n2")
    world.later(100)
    assert world.is_cordoned("n2")
    world.later(40)
    assert world.is_usable("n2")
    assert world.group.changes == [("delete", ["n2"])]


def test_two_removals_keep_the_minimum_even_if_the_size_is_shown_late() -> None:
    world = ProviderWorld()
    world.group.answers |= {"min_size": 1, "target_size": 2}
    world.resize(1, "n1", known=2)
    world.resize(1, "n2", known=2)
    world.later(20)
    assert len(world.group.changes) == 1
    assert world.is_usable("n1") or world.is_usable("n2")


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
    ],
)
def test_machines_that_are_not_running_do_not_count_towards_the_minimum(
    machines: list[ProviderInstance], *, is_deleted: bool
) -> None:
    world = ProviderWorld()
    world.group.answers |= {"min_size": 2, "target_size": 4, "nodes": machines}
    world.resize(3, "n2", known=4)
    world.later(20)
    assert world.group.changes == ([("delete", ["n2"])] if is_deleted else [])


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_deletion_by_a_killed_process_counts_towards_the_minimum_even_if_the_size_is_late(
    *, is_answered: bool
) -> None:
    world = ProviderWorld(now=100_000.0)
    world.group.answers |= {"min_size": 1, "target_size": 2}

    def die() -> None:
        world.permits = False
        if not is_answered:
            raise OutcomeUnknownError("the process ends")

    world.group.on_change = die
    world.resize(1, "n1", known=2)
    world.resize(1, "n2", known=2)
    world.later(10)
    assert len(world.group.changes) == 1
    world.group.on_change = lambda: None
    world.permits = True
    world.begin()
    world.later(60)
    assert len(world.group.changes) == 1, "the size that the provider shows may not count the first deletion"
    del world.group.answers["target_size"]
    world.later(120)
    assert len(world.group.changes) == 1
    assert world.is_usable("n1") or world.is_usable("n2")


@pytest.mark.parametrize("after_seconds", [2, 60], ids=["while it is drained", "while it is deleted"])
def test_a_clock_set_back_does_not_stop_a_removal(after_seconds: int) -> None:
    world = ProviderWorld(now=100_000.0)
    world.group.answers["nodes"] = [ProviderInstance("x:///1"), ProviderInstance("x:///2")]
    world.resize(1, "n2")
    world.later(after_seconds)
    world.wall_ahead -= 50_000
    world.later(1000)
    assert world.group.changes == [("delete", ["n2"])]
    assert world.is_usable("n2"), "its machine did not go"


def test_a_deletion_with_unknown_outcome_counts_towards_the_minimum() -> None:
    world = ProviderWorld()
    world.group.answers |= {"min_size": 1, "target_size": 2}

    def unanswered() -> None:
        raise OutcomeUnknownError("no answer")

    world.group.on_change = unanswered
    world.resize(1, "n1", known=2)
    world.resize(1, "n2", known=2)
    world.later(60)
    assert len(world.group.changes) == 1
    assert world.is_usable("n1") or world.is_usable("n2")
