from __future__ import annotations

from dataclasses import replace

import pytest

from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import WriteRefusal
from recommender.decisions.loop import Decision
from recommender.decisions.memory import Memory
from recommender.decisions.record import Record, Status, TargetReference
from recommender.outputs.pending_writes import PendingWrite, RequestedSize, Resizing
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.effects.leader_effects import ClusterEffects, ResizeEffects
from recommender.running.effects.resize_effects import QUIET_SECONDS, RequestWriters
from tests.recommender.configuration.files import entry, whole

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
RESIZING = Resizing((RequestedSize("app", "cpu", 300),), 0.1, in_place=True, up=True, down=True, managers=())
WITH = read_configuration(
    whole(
        entry("sizes", "outputs: [resize]", kind="resources: {fromUsage: {}, forEach: {}}"),
        top="prometheus: {url: http://p}\n",
    ),
    "r.yaml",
)


class Writer:
    def __init__(self) -> None:
        self.writes: dict[str, list[PendingWrite]] = {}

    def clear(self) -> None:
        self.writes = {}

    def retain(self, names: set[str]) -> None:
        self.writes = {name: writes for name, writes in self.writes.items() if name in names}

    def follow_writes(self, name: str, writes: list[PendingWrite]) -> None:
        self.writes[name] = list(writes)


class Nothing:
    """Has nothing to abandon."""

    def clear(self) -> None:
        pass


class Harness:
    def __init__(self) -> None:
        self.now = 0.0
        self.writer = Writer()
        self.requests = RequestWriters(lambda: self.now)

    def polled(self, resizing: Resizing | None = RESIZING, name: str = "sizes") -> list[PendingWrite]:
        record = Record(name, "resources", 0.0, Status.OK, "")
        writes = None if resizing is None else PendingWrite(name, WEB, 0, 60.0, "why", resizing=resizing)
        self.requests.act(self.writer, WITH, [Decision(record, Memory(), writes)])  # type: ignore[arg-type]
        return self.writer.writes.get("sizes", [])

    def ended(self, result: ScaleResult, owner: str | None = None) -> None:
        [write] = self.writer.writes["sizes"]
        self.requests.note(ScaleOutcome(write, result, owner=owner, message="because"))


def test_a_decision_requests_a_resize_and_no_decision_withdraws_it() -> None:
    harness = Harness()
    [write] = harness.polled()
    assert (write.target, write.resizing, write.valid_until) == (WEB, RESIZING, 60.0)
    assert harness.polled(None) == []


def test_recommendations_without_the_resize_output_write_nothing() -> None:
    assert Harness().polled(name="other") == []


@pytest.mark.parametrize("result", [ScaleResult.UNCHANGED, ScaleResult.REFUSED])
def test_a_settled_resize_is_not_repeated_for_a_while(result: ScaleResult) -> None:
    harness = Harness()
    harness.polled()
    harness.ended(result)
    assert harness.polled() == []
    assert len(harness.polled(replace(RESIZING, sizes=(RequestedSize("app", "cpu", 400),)))) == 1
    harness.now += QUIET_SECONDS
    assert len(harness.polled()) == 1


@pytest.mark.parametrize("result", [ScaleResult.OK, ScaleResult.ERROR, ScaleResult.CONFLICT])
def test_an_unfinished_resize_is_requested_again(result: ScaleResult) -> None:
    harness = Harness()
    harness.polled()
    harness.ended(result)
    assert len(harness.polled()) == 1


def test_sizes_count_as_settled_until_the_next_write() -> None:
    harness = Harness()
    harness.polled()
    assert not harness.requests.settled()
    harness.ended(ScaleResult.UNCHANGED)
    assert harness.requests.settled() == {("sizes", WEB): RESIZING}
    harness.now += QUIET_SECONDS
    harness.polled()
    harness.ended(ScaleResult.REFUSED)
    assert not harness.requests.settled()
    harness.now += QUIET_SECONDS
    harness.polled()
    harness.ended(ScaleResult.OK)
    assert not harness.requests.settled()


def test_a_refusal_is_kept_until_a_write_succeeds_or_the_target_is_removed() -> None:
    harness = Harness()
    harness.polled()
    harness.ended(ScaleResult.REFUSED, "VerticalPodAutoscaler shop/v")
    assert harness.requests.refusals() == {("sizes", WEB): WriteRefusal("VerticalPodAutoscaler shop/v", "because")}
    harness.now += QUIET_SECONDS
    harness.polled()
    harness.ended(ScaleResult.OK)
    assert not harness.requests.refusals()
    harness.polled()
    harness.ended(ScaleResult.REFUSED)
    harness.polled(None)
    assert not harness.requests.refusals()


@pytest.mark.parametrize("result", [ScaleResult.UNCHANGED, ScaleResult.REFUSED])
def test_results_are_forgotten_when_leadership_is_lost(result: ScaleResult) -> None:
    harness, nothing = Harness(), Nothing()
    resizes = ResizeEffects(harness.writer, harness.requests)  # type: ignore[arg-type]
    effects = ClusterEffects(nothing, nothing, lambda _now, _records: None, resizes=resizes)  # type: ignore[arg-type]
    harness.polled()
    harness.ended(result)
    effects.stand_down()
    assert (dict(effects.refusals()), dict(effects.settled())) == ({}, {})
    assert len(harness.polled()) == 1
