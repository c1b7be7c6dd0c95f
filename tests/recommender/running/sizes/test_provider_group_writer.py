"""Sizes that are written through a provider: each change is requested once, whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError, ProviderInstance
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.running.sizes.provider_world import ProviderWorld

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_group_grows_by_the_difference_and_the_increase_is_not_repeated() -> None:
    world = ProviderWorld()
    outcome = world.resize(4)
    assert (outcome.result, outcome.before) == (ScaleResult.OK, 2)
    assert world.resize(4, known=2).result is ScaleResult.UNCHANGED
    assert world.group.changes == [("increase", 2)]


def test_nodes_that_never_came_are_taken_back() -> None:
    world = ProviderWorld()
    world.group.answers["target_size"] = 5
    assert world.resize(2, known=5).result is ScaleResult.OK
    assert world.group.changes == [("decrease", -3)]


def test_machines_that_exist_are_never_taken_back() -> None:
    world = ProviderWorld()
    outcome = world.resize(1, known=2)
    assert (outcome.result, world.group.changes) == (ScaleResult.REFUSED, [])
    assert outcome.message.startswith("2 of its machines exist")


REFUSALS: dict[str, tuple[Callable[[ProviderWorld], object], str]] = {
    "another size by now": (
        lambda world: world.group.answers.update(target_size=3, nodes=[]),
        "its size is now 3, but 4 was decided at 2",
    ),
    "a lower maximum by now": (
        lambda world: world.group.answers.update(max_size=3),
        "4 is outside of its limits, which are 0 to 3",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_change_since_the_decision_stops_the_resize(change: Callable[[ProviderWorld], object], message: str) -> None:
    world = ProviderWorld()
    change(world)
    outcome = world.resize(4)
    assert (outcome.result, outcome.message, world.group.changes) == (ScaleResult.REFUSED, message, [])


def test_a_group_below_its_minimum_grows_towards_it() -> None:
    world = ProviderWorld()
    world.group.answers["min_size"] = 4
    assert world.resize(3).result is ScaleResult.OK


def test_a_group_above_its_maximum_loses_nodes_that_never_came() -> None:
    world = ProviderWorld()
    world.group.answers |= {"target_size": 5, "max_size": 1}
    assert world.resize(3, known=5).result is ScaleResult.OK
    assert world.group.changes == [("decrease", -2)]
    assert world.resize(6, known=3).message == "6 is outside of its limits, which are 0 to 1"


def _raise_unknown_outcome() -> None:
    raise OutcomeUnknownError("NodeGroupIncreaseSize: DEADLINE_EXCEEDED")


def test_an_unanswered_change_that_took_effect_is_not_repeated() -> None:
    world = ProviderWorld()
    world.group.on_change = _raise_unknown_outcome
    outcome = world.resize(4)
    assert (outcome.result, outcome.is_of_the_server) == (ScaleResult.ERROR, False)
    world.later(30)
    assert world.outcomes[-1].result is ScaleResult.UNCHANGED
    assert world.group.changes == [("increase", 2)]


def test_an_unanswered_change_is_not_repeated_until_its_wait_ends() -> None:
    world = ProviderWorld()
    world.group.answers["target_size"] = 2
    world.group.on_change = _raise_unknown_outcome
    world.resize(4)
    world.later(59)
    assert world.group.changes == [("increase", 2)]
    assert "nothing is asked again" in world.outcomes[0].message
    assert "the end of the last call is not known" in world.outcomes[-1].message
    assert world.outcomes[-1].result is ScaleResult.ERROR
    world.now += 300.0
    world.group.on_change = lambda: None
    assert world.resize(4, known=2).result is ScaleResult.OK


@pytest.mark.parametrize(("set_by", "changes"), [(-86_400.0, 2), (3600.0, 1)], ids=["back", "forward"])
def test_setting_the_clock_does_not_change_the_wait_after_an_unanswered_change(set_by: float, changes: int) -> None:
    world = ProviderWorld(wall_ahead=1e6)
    world.group.answers["target_size"] = 2
    world.group.on_change = _raise_unknown_outcome
    world.resize(4)
    world.wall_ahead += set_by
    world.now += 301.0 if changes > 1 else 200.0
    world.resize(4, known=2)
    assert len(world.group.changes) == changes


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["ok", "refused", "unknown"])), max_size=8))
def test_no_node_is_requested_twice_whatever_the_outcome_of_calls(calls: list[tuple[bool, str]]) -> None:
    world = ProviderWorld()
    left, ends = list(calls), []

    def increase(delta: int) -> None:
        takes_effect, end = left.pop(0) if left else (True, "ok")
        ends.append(end)
        if end == "ok" or (end == "unknown" and takes_effect):
            world.group.machines += [f"x:///new-{number}" for number in range(delta)]
        if end == "refused":
            raise ValueError("out of quota")
        if end == "unknown":
            raise OutcomeUnknownError("no answer")

    world.group.increase_size = increase  # type: ignore[method-assign]
    for _ in range(5):
        world.resize(4, known=2)
        world.later(50)
    assert len(world.group.machines) <= 4
    assert [end for end in ends if end != "refused"][1:] == [], "only a refusal is followed by another call"


def test_a_refusal_by_the_provider_is_a_failure_of_the_group() -> None:
    world = ProviderWorld()

    def refuse() -> None:
        raise ValueError("out of quota")

    world.group.on_change = refuse
    outcome = world.resize(4)
    assert (outcome.result, outcome.message, outcome.is_of_the_server) == (
        ScaleResult.ERROR,
        "ValueError: out of quota",
        False,
    )


def test_an_unreachable_provider_before_the_change_is_not_a_failure_of_the_group() -> None:
    world = ProviderWorld()
    world.provider.on_refresh = _raise_unknown_outcome
    outcome = world.resize(4)
    assert (outcome.result, outcome.is_of_the_server, world.group.changes) == (ScaleResult.ERROR, True, [])


def test_a_change_is_not_sent_while_a_former_process_may_still_send_it() -> None:
    world = ProviderWorld()
    assert world.resize(4, waits_until=world.now + 15.0).result is ScaleResult.FENCED
    world.group.machines += ["x:///3", "x:///4"]
    world.later(59)
    assert world.outcomes[-1].result is ScaleResult.UNCHANGED
    assert world.group.changes == []


@pytest.mark.parametrize("lack", ["permits", "stores"])
def test_no_change_is_sent_without_the_lease_or_a_stored_memory(lack: str) -> None:
    world = ProviderWorld()
    setattr(world, lack, False)
    world.resize(4)
    assert world.group.changes == []


def test_a_group_that_no_longer_exists_is_not_resized() -> None:
    world = ProviderWorld()
    world.group.name = "other"
    assert "there is no group 'small' any more" in world.resize(4).message


def test_a_machine_that_is_being_created_counts_as_existing() -> None:
    world = ProviderWorld()
    world.group.answers |= {"target_size": 3, "nodes": [ProviderInstance(each) for each in ("a", "b", "c")]}
    assert world.resize(2, known=3).result is ScaleResult.REFUSED
