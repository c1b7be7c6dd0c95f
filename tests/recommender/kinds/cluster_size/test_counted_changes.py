"""What counts for `maxChangesPerHour`: what was really written, once, however it ended and whoever wrote besides."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.record import Status
from recommender.kinds.cluster_size.counted_changes import changes_under_way, with_settled_changes
from recommender.kinds.cluster_size.model.groups import NodeGroups
from recommender.kinds.cluster_size.model.memory import AskedSize, ClusterSizeMemory, WrittenSize
from tests.recommender.kinds.cluster_size.counting_cloud import CountingCloud, Drain, End, Turn
from tests.recommender.kinds.cluster_size.deciding import size_memory
from tests.recommender.kinds.cluster_size.scale_down.harness import Harness, group

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRAINS: Sequence[Drain] = ("goes on", "ends", "ends", "fails")
_ENDS: Sequence[End] = (
    "done", "done", "done", "unsent", "refused", "failed", "unreachable", "conflict", "unknown", "lost", "late"
)  # fmt: skip
_ANSWERED: Sequence[End] = ("done", "refused")


def after(cloud: CountingCloud, turns: Sequence[Turn]) -> list[bool]:
    """Return whether the limit held each of the decisions."""
    return [" allowed, until" in cloud.step(turn).record.message for turn in turns]


@pytest.mark.parametrize("seed", range(10))
def test_growth_never_exceeds_the_limit(seed: int) -> None:
    random = Random(seed)
    cloud = CountingCloud(limit=seed % 3)
    for _ in range(25):
        foreign, restarts = random.choice((0, 0, 0, 0, 1, -1)), random.random() < 0.1
        problem = random.choice(("", "", "", "down"))
        pods, end, drain = random.randint(0, 7), random.choice(_ENDS), random.choice(_DRAINS)
        late = random.random() < 0.2
        cloud.step(Turn(pods, end, drain, foreign, restarts=restarts, problem=problem, sends_late=late))
        assert cloud.growths <= cloud.limit


@pytest.mark.parametrize("seed", range(4))
def test_every_written_size_counts(seed: int) -> None:
    random, cloud = Random(seed), CountingCloud(limit=99)
    for _ in range(25):
        cloud.step(Turn(random.randint(0, 7), random.choice(_ANSWERED), random.choice(_DRAINS)))
    after(cloud, [Turn(7, "refused")] * 2)
    assert cloud.growths + cloud.removals <= len(cloud.memory.changes)


@pytest.mark.parametrize(
    ("turns", "growths", "removals"),
    [
        pytest.param([Turn(5), Turn(5)], 1, 0, id="growth"),
        pytest.param([Turn(5, "unknown"), Turn(5)], 1, 0, id="growth-of-unknown-outcome"),
        pytest.param([Turn(5, "lost"), Turn(5, restarts=True)], 1, 0, id="growth-before-a-restart"),
        pytest.param([Turn(5, "failed"), Turn(5), Turn(5)], 0, 0, id="growth-that-failed"),
        pytest.param([*[Turn(5)] * 4, Turn(5, foreign=1), Turn(6)], 1, 0, id="somebody-else-grows-the-group"),
        pytest.param([Turn(0), *[Turn(0, drain="ends")] * 4], 0, 1, id="three-nodes-drained-one-by-one"),
        pytest.param([Turn(0), Turn(0), *[Turn(0, drain="ends", restarts=True)] * 4], 0, 1, id="drains-and-restarts"),
        pytest.param([Turn(2), Turn(2), Turn(2, drain="ends"), Turn(4), Turn(4)], 1, 1, id="removal-then-growth"),
    ],
)
def test_a_written_size_counts_once(turns: list[Turn], growths: int, removals: int) -> None:
    cloud = CountingCloud(9)
    after(cloud, turns)
    after(cloud, [Turn(turns[-1].pods, "unsent")] * 12)
    assert (cloud.growths, cloud.removals) == (growths, removals)
    assert len(cloud.memory.changes) == growths + removals


@pytest.mark.parametrize("end", ["refused", "failed", "unreachable", "conflict", "unsent"])
def test_removals_that_are_not_made_do_not_hold_growth(end: End) -> None:
    cloud = CountingCloud(1)
    after(cloud, [Turn(2, end)] * 30)
    after(cloud, [Turn(3, "unsent")] * 8)
    after(cloud, [Turn(4)] * 2)
    assert cloud.growths == 1


def test_drains_that_fail_do_not_hold_growth() -> None:
    cloud = CountingCloud(1)
    after(cloud, [Turn(2), Turn(2), Turn(2), Turn(2, drain="fails")] * 5)
    assert cloud.removals == 0
    after(cloud, [Turn(4, drain="fails"), Turn(4)])
    assert cloud.growths == 1


@pytest.mark.parametrize("turn", [Turn(5, "unsent"), Turn(2, "unsent")], ids=["growth", "removal"])
def test_what_is_being_written_has_its_place_and_is_not_held_by_itself(turn: Turn) -> None:
    cloud = CountingCloud(1)
    assert not any(after(cloud, [turn] * 3))
    after(cloud, [Turn(turn.pods)])
    assert after(cloud, [Turn(7)]) == [True]


@pytest.mark.parametrize(("limit", "pods"), [(0, 3), (1, 5)], ids=["the size from the start", "a written size"])
def test_a_size_that_somebody_lowers_is_not_written_again_beyond_the_limit(limit: int, pods: int) -> None:
    cloud = CountingCloud(limit)
    after(cloud, [Turn(pods)] * 4)
    after(cloud, [Turn(pods, foreign=-1), *[Turn(pods)] * 3] * 3)
    assert cloud.growths == limit


def test_a_group_that_cannot_be_written_is_remembered_as_it_is_and_counts_nothing() -> None:
    """What others have made of it meanwhile may be served after a restart."""
    cloud = CountingCloud(1)
    after(cloud, [Turn(3), Turn(7, "unsent", foreign=4, problem="down")])
    decision = cloud.step(Turn(7, "unsent", problem="down"))
    assert size_memory(decision).sizes == {"a": 7}
    assert not decision.memory.changes


def test_the_size_that_is_recommended_for_a_group_of_karpenter_is_not_held_by_other_changes() -> None:
    cloud = CountingCloud(1, has_karpenter=True)
    after(cloud, [Turn(5)])
    cloud.memory = replace(cloud.memory, changes=(cloud.now - 10.0,))
    decision = cloud.step(Turn(5))
    assert (decision.record.status, size_memory(decision).sizes) == (Status.OK, {"a": 5})


def test_growth_that_is_replaced_before_anything_was_sent_does_not_count() -> None:
    cloud = CountingCloud(2)
    assert not any(after(cloud, [Turn(pods, "unsent") for pods in (4, 5, 6)]))
    assert not any(after(cloud, [Turn(7)] * 2))
    assert (cloud.growths, len(cloud.memory.changes)) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([Turn(4, "conflict")], Turn(5, "unsent"), id="sent"),
        pytest.param([Turn(4, "conflict"), Turn(4, "unsent")], Turn(5, "unsent"), id="sent-before-the-last-decision"),
        pytest.param([Turn(4, "unsent"), Turn(5, "unsent")], Turn(5, "unsent", restarts=True), id="a-restart"),
    ],
)
def test_growth_that_may_have_been_sent_counts_when_it_is_replaced(first: list[Turn], second: Turn) -> None:
    cloud = CountingCloud(2)
    after(cloud, [*first, second])
    assert after(cloud, [Turn(7, "unsent")]) == [True]


@pytest.mark.parametrize(
    ("failed_at", "is_there", "changes"),
    [
        pytest.param(150.0, True, (), id="failed since it began"),
        pytest.param(50.0, True, (100.0,), id="another one failed before it began"),
        pytest.param(None, True, (100.0,), id="goes on"),
        pytest.param(150.0, False, (100.0,), id="its group is gone"),
    ],
)
def test_only_a_removal_that_has_failed_itself_no_longer_counts(
    failed_at: float | None, changes: tuple[float, ...], *, is_there: bool
) -> None:
    memory = ClusterSizeMemory(written={"g": WrittenSize(3, 100.0, drained_from=5)}, last_failure=failed_at)
    groups = NodeGroups((group("g", map(str, range(5))),) if is_there else ())
    settled, left = with_settled_changes(memory, memory, groups, (100.0,))
    assert (left, settled.written) == (changes, memory.written if changes else {})


@pytest.mark.parametrize(
    ("asked", "size", "sizes", "removed"),
    [
        pytest.param(AskedSize(7, 5, 100.0), 5, {"g": 7}, {}, id="growth"),
        pytest.param(AskedSize(7, 5, 100.0), 6, {}, {}, id="growth of a size that has changed since"),
        pytest.param(AskedSize(3, 5, 100.0, removes=True), 5, {}, {"g": 2}, id="two nodes"),
        pytest.param(AskedSize(3, 5, 100.0, removes=True), 4, {}, {"g": 1}, id="one of two nodes is gone"),
        pytest.param(AskedSize(3, 5, 100.0, removes=True), 2, {}, {"g": 0}, id="more nodes are gone"),
        pytest.param(AskedSize(4, 5, 100.0, removes=True, machines=("m",)), 5, {}, {"g": 1}, id="a failed machine"),
        pytest.param(AskedSize(4, 5, 100.0, removes=True, machines=("m",)), 4, {}, {}, id="a failed machine is gone"),
    ],
)
def test_what_is_left_of_a_write_is_no_further_change(
    asked: AskedSize, size: int, sizes: dict[str, int], removed: dict[str, int]
) -> None:
    memory = ClusterSizeMemory(asked={"g": asked})
    situation = Harness((), groups=(group("g", (), size=size),)).situation()
    assert changes_under_way(memory, situation) == (sizes, removed)


def test_growth_that_is_sent_while_it_is_replaced_counts_but_its_successor_does_not() -> None:
    """The successor was decided for a size that the group no longer has, so it is never sent."""
    cloud = CountingCloud(2)
    after(cloud, [Turn(4, "unsent"), Turn(5, "unsent", sends_late=True)])
    assert after(cloud, [Turn(7), Turn(9), Turn(9)]) == [False, True, True]
    assert (cloud.growths, len(cloud.memory.changes)) == (2, 2)
