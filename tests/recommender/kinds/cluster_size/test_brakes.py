"""`maxStep`, `maxChangesPerHour` and `paused` on the sizes of node groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.state import ClusterState
from recommender.decisions.constraints.brakes import apply_brakes
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.decisions.targets.target_situation import Situation
from recommender.kinds.cluster_size.future.predicted_pods import FuturePods
from recommender.kinds.cluster_size.group_sizes import GroupSizes, SizeContext
from recommender.kinds.cluster_size.known_cluster import KnownCluster
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, FailedMachine, GroupSize, Removal
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup, NodeGroups
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

NOW = 1_800_000_000.0
UP, DOWN, BOTH = Pause(Direction.UP), Pause(Direction.DOWN), Pause(Direction.BOTH)


def answer(current: int | None, recommended: int, gone: int = 0) -> ClusterSizeAnswer:
    removals = tuple(Removal(f"n{number}", "a", 0.1, "unneeded", None, saved_per_hour=2.0) for number in range(gone))
    group = GroupSize("a", current, recommended, recommended - gone, 0, 100, "why")
    return ClusterSizeAnswer((group,), removals, saved_per_hour=2.0 * gone or None)


def sized(
    found: ClusterSizeAnswer,
    brakes: Brakes,
    sizes: dict[str, int] | None = None,
    changes: tuple[float, ...] = (),
    *,
    zero_or_max: bool = False,
) -> GroupSizes:
    """Return the sizes that the brakes allow, after these last sizes and changes."""
    group = NodeGroup("a", 0, 100, 3, options=GroupOptions(zero_or_max=zero_or_max))
    cluster = ClusterSituation(NOW, (), (), NodeGroups((group,)))
    settings = ClusterSizeSettings(NodeGroupSources())
    before = ClusterSizeMemory(sizes=sizes or {})
    context = SizeContext(KnownCluster(ClusterState(), NOW), cluster, settings, FuturePods(), before)
    return apply_brakes(GroupSizes(found, context), brakes, Situation(NOW, changes=changes))


@pytest.mark.parametrize(
    ("brakes", "sizes", "given", "expected"),
    [
        # (current, recommended, removals that are due) -> (recommended, after removals)
        (Brakes(), {}, (3, 9, 0), (9, 9)),
        (Brakes(max_step=MaxStep(replicas=2)), {}, (3, 9, 0), (5, 5)),
        (Brakes(max_step=MaxStep(ratio=0.5)), {}, (10, 18, 0), (15, 15)),
        (Brakes(max_step=MaxStep(replicas=2)), {}, (9, 9, 5), (9, 7)),
        (Brakes(max_step=MaxStep(replicas=2)), {}, (3, 4, 1), (4, 3)),
        (Brakes(paused=UP), {}, (3, 9, 0), (3, 3)),
        (Brakes(paused=UP), {"a": 5}, (3, 9, 0), (3, 3)),
        (Brakes(paused=UP), {"a": 2}, (3, 9, 0), (3, 3)),
        (Brakes(paused=UP), {}, (9, 9, 2), (9, 7)),
        (Brakes(paused=DOWN), {}, (9, 9, 2), (9, 9)),
        (Brakes(paused=DOWN), {"a": 12}, (9, 9, 0), (9, 9)),
        (Brakes(paused=DOWN), {"a": 12}, (9, 7, 0), (9, 9)),
        (Brakes(paused=DOWN), {}, (3, 9, 0), (9, 9)),
        (Brakes(paused=BOTH), {"a": 5}, (3, 9, 0), (3, 3)),
        (Brakes(paused=BOTH), {"a": 12}, (9, 9, 0), (9, 9)),
        (Brakes(paused=BOTH), {}, (9, 9, 2), (9, 9)),
        (Brakes(paused=Pause(Direction.BOTH, NOW - 1)), {}, (3, 9, 1), (9, 8)),
        # Of a group whose size is not known, the last recommendation is held in any case.
        (Brakes(paused=BOTH), {"a": 5}, (None, 5, 0), (5, 5)),
        (Brakes(max_step=MaxStep(replicas=2)), {"a": 5}, (None, 5, 0), (5, 5)),
    ],
)
def test_sizes_are_limited_by_brakes(
    brakes: Brakes, sizes: dict[str, int], given: tuple[int | None, int, int], expected: tuple[int, int]
) -> None:
    found = sized(answer(*given), brakes, sizes).answer.groups[0]

    assert (found.recommended, found.after_removals) == expected


def test_removals_postponed_by_a_brake_do_not_count_as_savings_and_state_the_reason() -> None:
    found = sized(answer(9, 9, 3), Brakes(max_step=MaxStep(replicas=1))).answer

    assert [removal.is_due for removal in found.removals] == [True, False, False]
    assert "maxStep" in found.removals[1].reason
    assert found.saved_per_hour == 2.0


def test_machines_and_nodes_share_a_step_of_which_those_that_wait_take_nothing() -> None:
    waiting = Removal("n9", "a", 0.1, "unneeded for 5 s", 5.0, is_due=False)
    failed = (FailedMachine("x:///1", "a", "no quota", waits="it is locked"), FailedMachine("x:///2", "a", "no quota"))
    given = answer(9, 9, 2)
    given = replace(given, removals=(waiting, *given.removals), failed_machines=failed)
    found = sized(given, Brakes(max_step=MaxStep(replicas=2))).answer

    assert [machine.is_due for machine in found.failed_machines] == [False, True]
    assert [removal.is_due for removal in found.removals] == [False, True, False]
    assert found.removals[0] == waiting
    assert found.failed_machines[0].waits == "it is locked"


def test_too_many_changes_in_an_hour_keep_the_last_sizes() -> None:
    found = sized(answer(3, 9, 1), Brakes(max_changes_per_hour=2), {"a": 4}, (NOW - 1800, NOW - 600))

    assert (found.answer.groups[0].recommended, found.answer.groups[0].after_removals) == (4, 4)
    assert found.answer.binding == "maxChangesPerHour"
    assert found.holds == (
        "the sizes are kept: 2 changes in the last hour, and 2 are allowed, until 2027-01-15T08:30:00Z",
    )


@pytest.mark.parametrize(
    ("given", "last", "holds"),
    [((3, 4, 0), {"a": 4}, False), ((4, 4, 0), {}, False), ((3, 9, 0), {"a": 4}, True), ((4, 4, 1), {}, True)],
    ids=["as before", "as large as it is", "more nodes", "a removal"],
)
def test_too_many_changes_in_an_hour_hold_only_changes(
    given: tuple[int | None, int, int], last: dict[str, int], *, holds: bool
) -> None:
    found = sized(answer(*given), Brakes(max_changes_per_hour=1), last, (NOW - 600,))

    assert bool(found.holds) is holds


def test_a_removed_node_does_not_come_back_after_too_many_changes() -> None:
    found = sized(answer(9, 9), Brakes(max_changes_per_hour=2), {"a": 10}, (NOW - 1800, NOW - 600))

    assert found.answer.groups[0].recommended == 9


@pytest.mark.parametrize(("step", "size"), [(2, 0), (7, 0), (8, 8)])
def test_an_all_or_nothing_group_grows_within_one_step_or_not_at_all(step: int, size: int) -> None:
    found = sized(answer(0, 8), Brakes(max_step=MaxStep(replicas=step)), zero_or_max=True).answer

    assert found.groups[0].recommended == size
    assert bool(found.steps) is (size == 0)


@pytest.mark.parametrize(("step", "gone"), [(2, 0), (7, 0), (8, 8)])
def test_the_nodes_of_an_all_or_nothing_group_are_removed_within_one_step_or_not_at_all(step: int, gone: int) -> None:
    found = sized(answer(8, 8, 8), Brakes(max_step=MaxStep(replicas=step)), zero_or_max=True).answer

    assert sum(removal.is_due for removal in found.removals) == gone
    assert found.groups[0].after_removals == 8 - gone


def test_a_brake_that_changes_a_size_is_recorded_as_the_binding_step() -> None:
    found = sized(answer(3, 9), Brakes(max_step=MaxStep(replicas=2))).answer

    assert [(step.step, step.group, step.value) for step in found.steps] == [("maxStep", "a", 5)]
    assert found.binding == "maxStep"
