"""Sizes begin from the size that a target has, whenever that becomes known, and after each gap in decisions."""

from __future__ import annotations

from typing import Final

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.kubernetes.errors import DeadlineError, ForbiddenError, KubernetesError, NotFoundError
from tests.recommender.configuration.files import entry, whole
from tests.recommender.running.polls.test_writing_loop import BY_SERIES, LISTED, TARGETS
from tests.recommender.running.polls.writing_loop import WritingHarness, WritingProcess

POLL_SECONDS: Final = 10
DECAY: Final = 0.05
SEVERAL: Final = "several"
"""Several listed targets, of which each is decided as if it were the only one."""
KINDS: Final = pytest.mark.parametrize("kind", [LISTED, SEVERAL, BY_SERIES])


def harness_with(
    kind: str, size: int, rules: str = f"scaleDown: {{decay: {DECAY:.0%}}}", brake: str = "paused: false"
) -> WritingHarness:
    """Return a cluster whose targets have this size, and in which a replica serves the load of two nodes."""
    sizes = "loadPerReplica: 2, minReplicas: 1, maxReplicas: 99, horizon: 2m, headroom: 0%"
    series, lines = ", forEach: {namespace: namespace, name: deployment, max: 10}", ["outputs: [metric, scale]", brake]
    targets = TARGETS[:1] if kind == LISTED else TARGETS
    if kind != BY_SERIES:
        series, head = "", "apiVersion: apps/v1, kind: Deployment"
        listed = (f"{{{head}, namespace: {each.namespace}, name: {each.name}}}" for each in targets)
        lines.append(f"targets: [{', '.join(listed)}]")
    predictive = f"predictive: {{load: x, {sizes}, {rules}{series}}}"
    text = whole(entry(kind, *lines, kind=predictive), top="prometheus: {url: 'http://p'}\nstaleAfter: 1m\n")
    by_name = {(each.namespace, each.name): each for each in targets}
    harness = WritingHarness(text, by_name, is_for_each=kind == BY_SERIES)
    for each in targets:
        harness.put(each, size)
    return harness


def turn(harness: WritingHarness, process: WritingProcess, load: int | None) -> None:
    """Poll once, with this load of each target or without an answer, and write until the next poll."""
    harness.nodes = Unknown("no answer") if load is None else Observed(load, process.wall())
    harness.owners = {each.namespace: Observed((), process.wall()) for each in TARGETS}
    process.poll()
    process.write_for(POLL_SECONDS)


def fail(harness: WritingHarness, error: KubernetesError, namespace: str = "team-") -> None:
    """Answer all look-ups of targets in namespaces that begin so with this error."""

    def before(method: str, path: str) -> None:
        if method == "GET" and f"/namespaces/{namespace}" in path:
            raise error

    harness.before = before


def answer(harness: WritingHarness) -> None:
    """Answer all calls again."""
    harness.before = lambda _method, _path: None


def sizes(harness: WritingHarness) -> set[int]:
    return {harness.size(each) for each in harness.targets.values()}


def assert_gradual(harness: WritingHarness, start: float, size: int) -> None:
    """Check that no target has ever been smaller than the decay from this size since `start` allows."""
    assert harness.writes, "the size is larger than the load needs"
    for write in harness.writes:
        assert write.after >= size * (1 - DECAY) ** ((write.time - start + POLL_SECONDS) / POLL_SECONDS)


@KINDS
@pytest.mark.parametrize("unanswered", [0, 1, 3, 12])
def test_a_target_begins_at_the_size_that_is_found_however_late(kind: str, unanswered: int) -> None:
    harness = harness_with(kind, 40)
    process = harness.process()
    fail(harness, DeadlineError("no answer"))
    for _ in range(unanswered):
        turn(harness, process, 10)
    answer(harness)
    start = harness.now
    for _ in range(12):
        turn(harness, process, 10)
    assert_gradual(harness, start, 40)
    assert max(sizes(harness)) < 40


@KINDS
@pytest.mark.parametrize("unanswered", [0, 1, 12])
def test_without_a_memory_a_target_keeps_its_size_for_a_window_as_with_an_hpa(kind: str, unanswered: int) -> None:
    harness = harness_with(kind, 40, "maxGrowth: 2.0")
    process = harness.process()
    fail(harness, DeadlineError("no answer"))
    for _ in range(unanswered):
        turn(harness, process, 10)
    answer(harness)
    start = harness.now
    for _ in range(36):
        turn(harness, process, 10)
    assert sizes(harness) == {5}
    assert all(write.before == 40 and write.time - start >= 300 for write in harness.writes)


@KINDS
@pytest.mark.parametrize("minutes", [3, 30, 150])
def test_a_size_from_before_a_gap_is_not_written_again(kind: str, minutes: int) -> None:
    """As when a Deployment is created again, or was made smaller by hand, while its load was not known."""
    harness = harness_with(kind, 40)
    process = harness.process()
    for _ in range(3):
        turn(harness, process, 80)
    for _ in range(6 * minutes):
        turn(harness, process, None)
    for each in harness.targets.values():
        harness.put(each, 6)
    for _ in range(12):
        turn(harness, process, 10)
    assert all(write.after <= 6 for write in harness.writes)


@KINDS
@pytest.mark.parametrize("minutes", [3, 150])
def test_a_size_set_by_hand_during_a_gap_is_lowered_gradually(kind: str, minutes: int) -> None:
    harness = harness_with(kind, 40)
    process = harness.process()
    for _ in range(3):
        turn(harness, process, 80)
    for _ in range(6 * minutes):
        turn(harness, process, None)
    for each in harness.targets.values():
        harness.put(each, 60)
    start = harness.now
    for _ in range(12):
        turn(harness, process, 10)
    # In a gap, capacity decays as much as in a minute.
    assert_gradual(harness, start - 60.0, 60)


def test_a_target_whose_series_returns_after_hours_begins_at_its_present_size() -> None:
    harness = harness_with(BY_SERIES, 40)
    process, targets = harness.process(), harness.targets
    for _ in range(3):
        turn(harness, process, 80)
    gone = TARGETS[0]
    harness.targets = {key: each for key, each in targets.items() if each != gone}
    for _ in range(6 * 70):
        turn(harness, process, 80)
    harness.targets = targets
    harness.put(gone, 6)
    for _ in range(12):
        turn(harness, process, 10)
    assert all(write.after <= 6 for write in harness.writes if write.target == gone)


@pytest.mark.parametrize("kind", [SEVERAL, BY_SERIES])
def test_a_target_that_may_not_be_read_keeps_no_other_one_from_shrinking(kind: str) -> None:
    harness = harness_with(kind, 6)
    process, (readable, forbidden) = harness.process(), TARGETS
    fail(harness, ForbiddenError("forbidden", 403), forbidden.namespace)
    for _ in range(40):
        turn(harness, process, 2)
    assert harness.size(readable) == 1
    assert harness.size(forbidden) == 6


@KINDS
@pytest.mark.parametrize("minutes", [0.5, 10])
def test_a_workload_that_was_deleted_does_not_get_its_former_size_back(kind: str, minutes: float) -> None:
    """While it is gone its load stays known, as that of a queue does."""
    harness = harness_with(kind, 40)
    process = harness.process()
    for _ in range(3):
        turn(harness, process, 80)
    fail(harness, NotFoundError("not found", 404))
    for _ in range(int(6 * minutes)):
        turn(harness, process, 10)
    answer(harness)
    for each in harness.targets.values():
        harness.put(each, 6)
    for _ in range(12):
        turn(harness, process, 10)
    assert all(write.after <= 6 for write in harness.writes)


@KINDS
@pytest.mark.parametrize("rules", ["scaleDown: {decay: 5%}", "maxGrowth: 2.0"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_readable", [False, True], ids=["its scale alone", "readable"])
def test_a_workload_that_is_created_again_between_two_look_ups_does_not_get_its_former_size_back(
    kind: str, rules: str, *, restarts: bool, is_readable: bool
) -> None:
    harness = harness_with(kind, 40, rules)
    if not is_readable:
        harness.store.deny("get", "deployments")
    process = harness.process()
    for _ in range(3):
        turn(harness, process, 80)
    for each in harness.targets.values():
        harness.put_again(each, 6)
    if restarts:
        process = harness.process()
    for _ in range(12):
        turn(harness, process, 10)
    assert all(write.after <= 6 for write in harness.writes)


@KINDS
@pytest.mark.parametrize("brake", ["paused: down", "maxChangesPerHour: 1", "maxStep: 2"])
@pytest.mark.parametrize("way", ["at once", "absent", "during an outage"])
def test_no_brake_restores_the_size_of_a_former_workload(kind: str, brake: str, way: str) -> None:
    harness = harness_with(kind, 40, brake=brake)
    process = harness.process()
    for load in (80, 80, 84, 84):
        turn(harness, process, load)
    assert sizes(harness) == {42}
    if way == "absent":
        fail(harness, NotFoundError("not found", 404))
    harness.writes.clear()
    for _ in range(0 if way == "at once" else 9):
        turn(harness, process, None if way == "during an outage" else 10)
    answer(harness)
    for each in harness.targets.values():
        harness.put_again(each, 6)
    for _ in range(12):
        turn(harness, process, 10)
    assert all(write.after <= 6 for write in harness.writes)


@KINDS
@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_a_size_from_before_an_outage_of_unknown_length_is_not_written_again(kind: str, ahead: float) -> None:
    """If a clock was wrong, the memory does not show for how long no process ran."""
    harness = harness_with(kind, 40, "maxGrowth: 2.0")
    process = harness.process(wall_ahead=ahead)
    for _ in range(3):
        turn(harness, process, 80)
    harness.now += 1800
    for each in harness.targets.values():
        harness.put(each, 6)
    process = harness.process()
    for _ in range(3):
        turn(harness, process, 10)
    assert sizes(harness) == {6}
