"""Sizes that are written through a provider: each change is requested once, whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError, ProviderInstance
from recommender.kinds.cluster_size.requested_sizes import INHERITED_SECONDS
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_group_grows_by_the_difference_and_the_increase_is_not_repeated() -> None:
    harness = ProviderHarness()
    outcome = harness.resize(4)
    assert (outcome.result, outcome.before) == (ScaleResult.OK, 2)
    assert harness.resize(4, known=2).result is ScaleResult.UNCHANGED
    assert harness.group.changes == [("increase", 2)]


def test_nodes_that_never_came_are_taken_back() -> None:
    harness = ProviderHarness()
    harness.group.answers["target_size"] = 5
    assert harness.resize(2, known=5).result is ScaleResult.OK
    assert harness.group.changes == [("decrease", -3)]


def test_machines_that_exist_are_never_taken_back() -> None:
    harness = ProviderHarness()
    outcome = harness.resize(1, known=2)
    assert (outcome.result, harness.group.changes) == (ScaleResult.REFUSED, [])
    assert outcome.message.startswith("2 of its machines exist")


REFUSALS: dict[str, tuple[Callable[[ProviderHarness], object], str]] = {
    "another size by now": (
        lambda harness: harness.group.answers.update(target_size=3, nodes=[]),
        "its size is now 3, but 4 was decided at 2",
    ),
    "a lower maximum by now": (
        lambda harness: harness.group.answers.update(max_size=3),
        "4 is outside of its limits, which are 0 to 3",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_change_since_the_decision_stops_the_resize(
    change: Callable[[ProviderHarness], object], message: str
) -> None:
    harness = ProviderHarness()
    change(harness)
    outcome = harness.resize(4)
    assert (outcome.result, outcome.message, harness.group.changes) == (ScaleResult.REFUSED, message, [])


def test_a_group_below_its_minimum_grows_towards_it() -> None:
    harness = ProviderHarness()
    harness.group.answers["min_size"] = 4
    assert harness.resize(3).result is ScaleResult.OK


def test_a_group_above_its_maximum_loses_nodes_that_never_came() -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"target_size": 5, "max_size": 1}
    assert harness.resize(3, known=5).result is ScaleResult.OK
    assert harness.group.changes == [("decrease", -2)]
    assert harness.resize(6, known=3).message == "6 is outside of its limits, which are 0 to 1"


def _raise_unknown_outcome() -> None:
    raise OutcomeUnknownError("NodeGroupIncreaseSize: DEADLINE_EXCEEDED")


def test_an_unanswered_change_that_took_effect_is_not_repeated() -> None:
    harness = ProviderHarness()
    harness.group.on_change = _raise_unknown_outcome
    outcome = harness.resize(4)
    assert (outcome.result, outcome.is_of_the_server) == (ScaleResult.ERROR, False)
    harness.later(30)
    assert harness.outcomes[-1].result is ScaleResult.UNCHANGED
    assert harness.group.changes == [("increase", 2)]


def test_an_unanswered_change_is_not_repeated_until_its_wait_ends() -> None:
    harness = ProviderHarness()
    harness.group.answers["target_size"] = 2
    harness.group.on_change = _raise_unknown_outcome
    harness.resize(4)
    harness.later(59)
    assert harness.group.changes == [("increase", 2)]
    assert "nothing is asked again" in harness.outcomes[0].message
    assert "the end of the last call is not known" in harness.outcomes[-1].message
    assert harness.outcomes[-1].result is ScaleResult.ERROR
    harness.now += 300.0
    harness.group.on_change = lambda: None
    assert harness.resize(4, known=2).result is ScaleResult.OK


def test_a_group_grows_again_once_another_size_shows_the_end_of_an_unanswered_change() -> None:
    harness = ProviderHarness()
    harness.group.answers["target_size"] = 2
    harness.group.on_change = _raise_unknown_outcome
    harness.resize(4)
    harness.group.on_change = lambda: None
    harness.group.answers["target_size"] = 3
    harness.resize(4, known=3)
    harness.later(30)
    assert harness.group.changes == [("increase", 2), ("increase", 1)]


@pytest.mark.parametrize("size", [4, 5])
def test_an_accepted_change_is_not_sent_again_while_the_former_size_is_shown(size: int) -> None:
    """A decision that began before the change was accepted requests the same nodes again."""
    harness = ProviderHarness()
    harness.group.answers["target_size"] = 2
    harness.resize(4)
    outcome = harness.resize(size, known=2)
    harness.later(30)
    assert (outcome.result, harness.group.changes) == (ScaleResult.FENCED, [("increase", 2)])
    harness.group.answers["target_size"] = 4
    harness.resize(5, known=4)
    harness.later(60)
    assert harness.group.changes == [("increase", 2), ("increase", 1)]


def test_an_accepted_change_that_is_never_shown_may_be_sent_again() -> None:
    harness = ProviderHarness()
    harness.group.answers["target_size"] = 2
    harness.resize(4)
    harness.now += INHERITED_SECONDS
    assert harness.resize(4, known=2).result is ScaleResult.OK


@pytest.mark.parametrize(("set_by", "changes"), [(-86_400.0, 2), (3600.0, 1)], ids=["back", "forward"])
def test_setting_the_clock_does_not_change_the_wait_after_an_unanswered_change(set_by: float, changes: int) -> None:
    harness = ProviderHarness(wall_ahead=1e6)
    harness.group.answers["target_size"] = 2
    harness.group.on_change = _raise_unknown_outcome
    harness.resize(4)
    harness.wall_ahead += set_by
    harness.now += 301.0 if changes > 1 else 200.0
    harness.resize(4, known=2)
    assert len(harness.group.changes) == changes


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["ok", "refused", "unknown"])), max_size=8))
def test_no_node_is_requested_twice_whatever_the_outcome_of_calls(calls: list[tuple[bool, str]]) -> None:
    harness = ProviderHarness()
    left, ends = list(calls), []

    def increase(delta: int) -> None:
        takes_effect, end = left.pop(0) if left else (True, "ok")
        ends.append(end)
        if end == "ok" or (end == "unknown" and takes_effect):
            harness.group.machines += [f"x:///new-{number}" for number in range(delta)]
        if end == "refused":
            raise ValueError("out of quota")
        if end == "unknown":
            raise OutcomeUnknownError("no answer")

    harness.group.increase_size = increase  # type: ignore[method-assign]
    for _ in range(5):
        harness.resize(4, known=2)
        harness.later(50)
    assert len(harness.group.machines) <= 4
    assert [end for end in ends if end != "refused"][1:] == [], "only a refusal is followed by another call"


def test_a_refusal_by_the_provider_is_a_failure_of_the_group() -> None:
    harness = ProviderHarness()

    def refuse() -> None:
        raise ValueError("out of quota")

    harness.group.on_change = refuse
    outcome = harness.resize(4)
    assert (outcome.result, outcome.message, outcome.is_of_the_server) == (
        ScaleResult.ERROR,
        "ValueError: out of quota",
        False,
    )


def test_an_unreachable_provider_before_the_change_is_not_a_failure_of_the_group() -> None:
    harness = ProviderHarness()
    harness.provider.on_refresh = _raise_unknown_outcome
    outcome = harness.resize(4)
    assert (outcome.result, outcome.is_of_the_server, harness.group.changes) == (ScaleResult.ERROR, True, [])


def test_a_change_is_not_sent_while_a_former_process_may_still_send_it() -> None:
    harness = ProviderHarness()
    assert harness.resize(4, waits_until=harness.now + 15.0).result is ScaleResult.FENCED
    harness.group.machines += ["x:///3", "x:///4"]
    harness.later(59)
    assert harness.outcomes[-1].result is ScaleResult.UNCHANGED
    assert harness.group.changes == []


@pytest.mark.parametrize("lack", ["permits", "stores"])
def test_no_change_is_sent_without_the_lease_or_a_stored_memory(lack: str) -> None:
    harness = ProviderHarness()
    setattr(harness, lack, False)
    harness.resize(4)
    assert harness.group.changes == []


def test_a_group_that_no_longer_exists_is_not_resized() -> None:
    harness = ProviderHarness()
    harness.group.name = "other"
    assert "there is no group 'small' any more" in harness.resize(4).message


def test_a_machine_that_is_being_created_counts_as_existing() -> None:
    harness = ProviderHarness()
    harness.group.answers |= {"target_size": 3, "nodes": [ProviderInstance(each) for each in ("a", "b", "c")]}
    assert harness.resize(2, known=3).result is ScaleResult.REFUSED
