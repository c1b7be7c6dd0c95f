"""Random faults, people, pauses and crashes around the loop and its writes: properties of all accepted writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    DeadlineError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    ServerError,
    ThrottledError,
    UnknownOutcomeError,
)
from recommender.decisions.constraints.brakes import step_limit
from recommender.decisions.policy_settings import MaxStep
from recommender.decisions.record import TargetReference
from tests.recommender.configuration.files import entry, whole
from tests.recommender.running.polls.writing_loop import KilledError, SizeWrite, WritingHarness, WritingProcess

if TYPE_CHECKING:
    from collections.abc import Callable

LISTED, BY_SERIES = "listed", "by-series"
LOWEST, HIGHEST = 2, 40
STALE_AFTER: Final = 60.0
TARGETS: Final = tuple(TargetReference("apps/v1", "Deployment", f"team-{number}", "web") for number in range(2))
FAULTS: Final[tuple[Callable[[], KubernetesError], ...]] = (
    lambda: DeadlineError("no answer"),
    lambda: ForbiddenError("forbidden", 403),
    lambda: NotFoundError("not found", 404),
    lambda: ConflictError("conflict", 409),
    lambda: ThrottledError("too many requests", 429, 3.0),
    lambda: ServerError("failed", 503),
)
BRAKES: Final = {
    "none": (),
    "step": ("maxStep: 2",),
    "paused up": ("paused: up",),
    "paused down": ("paused: down",),
    "changes": ("maxChangesPerHour: 2",),
}


@dataclass(frozen=True)
class Turn:
    """The events between two polls."""

    nodes: int
    """The number of nodes; 0 if it is unknown."""
    nodes_age: float
    seconds: int
    faults: dict[tuple[str, str], int]
    """By method and last part of the path: the index of a fault before the call, or `len(FAULTS)` for one after it."""
    by_hand: int | None
    """The size that a person gives the first target after the poll."""
    owned: bool
    """Whether an HPA owns the second target."""
    killed_at: int | None
    """The write at which the process is killed, counted from the start of the turn."""
    clock_ahead: float
    """How far the clock of a process that starts in this turn is ahead."""


def _fault_keys() -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(st.sampled_from(["GET", "PUT", "POST"]), st.sampled_from(["scale", "web", "configmap"]))


TURNS: Final = st.lists(
    st.builds(
        Turn,
        nodes=st.sampled_from([0, 2, 6, 10, 20, 60, 200]),
        nodes_age=st.sampled_from([0.0, 0.0, 0.0, 30.0, 59.0, 61.0, -30.0]),
        seconds=st.sampled_from([1, 10, 10, 10, 30]),
        faults=st.dictionaries(_fault_keys(), st.integers(0, len(FAULTS)), max_size=2),
        by_hand=st.none() | st.sampled_from([0, 1, 5, 17, 100]),
        owned=st.sampled_from([False, False, True]),
        killed_at=st.none() | st.none() | st.integers(0, 4),
        clock_ahead=st.sampled_from([0.0, 0.0, 5.0, -5.0, 3600.0, -3600.0]),
    ),
    min_size=2,
    max_size=8,
)


def _part(path: str) -> str:
    return "configmap" if "/configmaps" in path else path.rpartition("/")[2]


def harness_with(kind: str, brake: str, sizes: tuple[int, int]) -> WritingHarness:
    lines = ("outputs: [metric, scale]", *BRAKES[brake])
    if kind == LISTED:
        targets = ", ".join(
            f"{{apiVersion: apps/v1, kind: Deployment, namespace: {each.namespace}, name: {each.name}}}"
            for each in TARGETS
        )
        lines = (f"targets: [{targets}]", *lines)
        calculated = f"proportional: {{linear: {{nodesPerReplica: 2, min: {LOWEST}, max: {HIGHEST}}}}}"
    else:
        sizes_of = f"loadPerReplica: 2, minReplicas: {LOWEST}, maxReplicas: {HIGHEST}, horizon: 2m, headroom: 0%"
        series = "forEach: {namespace: namespace, name: deployment, max: 10}"
        calculated = f"predictive: {{load: x, {sizes_of}, {series}}}"
    top = f"prometheus: {{url: 'http://p'}}\nstaleAfter: {STALE_AFTER:g}s\n"
    text = whole(entry(kind, *lines, kind=calculated), top=top)
    harness = WritingHarness(text, {(each.namespace, each.name): each for each in TARGETS})
    for target, size in zip(TARGETS, sizes, strict=True):
        harness.put(target, size)
    return harness


def run(harness: WritingHarness, turns: list[Turn]) -> list[tuple[Turn, float, list[SizeWrite]]]:
    """Return for each turn the time of its facts, and the writes in it."""
    process, found = harness.process(), []
    for turn in turns:
        known = harness.now - turn.nodes_age
        harness.nodes = Observed(turn.nodes, known) if turn.nodes else Unknown("no answer")
        harness.owners = {
            target.namespace: Observed(
                (Autoscaler(target.namespace, "hpa", {}, "apps/v1", "Deployment", "web", 1, 50, None, None, ()),)
                * (turn.owned and target is TARGETS[1]),
                harness.now,
            )
            for target in TARGETS
        }
        begun = len(harness.writes)
        _misbehave(harness, turn)
        try:
            process.poll()
            if turn.by_hand is not None:
                harness.put(TARGETS[0], turn.by_hand)
            process.write_for(turn.seconds)
        except KilledError:
            process = WritingProcess(harness, turn.clock_ahead)
        found.append((turn, known, harness.writes[begun:]))
    return found


def _misbehave(harness: WritingHarness, turn: Turn) -> None:
    writes = [0]

    def before(method: str, path: str) -> None:
        if method != "GET":
            writes[0] += 1
            if turn.killed_at == writes[0] - 1:
                raise KilledError
        number = turn.faults.get((method, _part(path)))
        if number is not None and number < len(FAULTS):
            error = FAULTS[number]()
            raise error

    def after(method: str, path: str) -> None:
        if turn.faults.get((method, _part(path))) == len(FAULTS):
            raise UnknownOutcomeError("sent, but no answer")

    harness.before, harness.after = before, after


CALM: Final = Turn(20, 0.0, 10, {}, by_hand=None, owned=False, killed_at=None, clock_ahead=0.0)


@pytest.mark.parametrize("kind", [LISTED, BY_SERIES])
def test_without_faults_each_target_gets_its_size_once(kind: str) -> None:
    harness = harness_with(kind, "none", (2, 3))
    run(harness, [CALM, CALM, CALM])
    assert {(write.target, write.before, write.after) for write in harness.writes} == {
        (TARGETS[0], 2, 10),
        (TARGETS[1], 3, 10),
    }
    assert len(harness.writes) == 2


SIZES: Final = st.tuples(st.integers(LOWEST, HIGHEST), st.integers(LOWEST, HIGHEST))


@seed(22)
@settings(max_examples=60)
@given(st.sampled_from([LISTED, BY_SERIES]), st.sampled_from(sorted(BRAKES)), SIZES, TURNS)
def test_no_write_violates_a_bound_a_brake_or_an_owner(
    kind: str, brake: str, sizes: tuple[int, int], turns: list[Turn]
) -> None:
    harness = harness_with(kind, brake, sizes)
    for turn, known, written in run(harness, turns):
        for write in written:
            assert LOWEST <= write.after <= HIGHEST
            assert not (turn.owned and write.target is TARGETS[1])
            assert turn.nodes, "of an unknown number of nodes nothing follows"
            assert write.time - known <= STALE_AFTER
            if brake == "step" and LOWEST <= write.before <= HIGHEST:
                assert abs(write.after - write.before) <= step_limit(MaxStep(replicas=2), write.before)
            if brake == "paused up":
                assert write.after <= max(write.before, LOWEST)
            if brake == "paused down":
                assert write.after >= min(write.before, HIGHEST)
    if brake == "changes":
        _check_changes(harness, turns)


def _check_changes(harness: WritingHarness, turns: list[Turn]) -> None:
    """The first size of all is not a change, and a size that a person undoes is written again without one."""
    if any(turn.by_hand is not None for turn in turns):
        return
    for target in TARGETS:
        own = [write for write in harness.writes if write.target == target]
        for position, write in enumerate(own):
            within = [each for each in own[position:] if each.time - write.time < 3600.0]
            assert len(within) <= 3
