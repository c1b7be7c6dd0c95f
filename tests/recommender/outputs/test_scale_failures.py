"""Scale calls while calls fail at random, others change the target, and the wall clock jumps."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import DeadlineError, ServerError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.outputs.scale_harness import WEB, Harness, decision
from tests.support.apiserver_kinds import DEPLOYMENTS

if TYPE_CHECKING:
    from collections.abc import Callable


class Chaos:
    """A cluster in which calls fail at random, others change the target, and the wall clock jumps."""

    def __init__(self, seed: int, staleness: float) -> None:
        self.chance = random.Random(seed)
        self.staleness = staleness
        self.harness = Harness()
        self.wanted, self.valid_until = 3, 0.0
        self.written: list[tuple[str, int]] = []
        """The writer and the size of each write."""
        self.harness.objects.before, self.harness.objects.after_put = self.before, self.after_put
        self.harness.writer._fence = Fence(2.0, self.permit)

    def before(self, method: str, _path: str) -> None:
        self.harness.now += self.chance.choice([0.0, 0.1, 2.0])
        if method == "PUT" and self.chance.random() < 0.2:
            self.change_by_others()
        if self.chance.random() < 0.25:
            raise self.chance.choice([ServerError("500", 500), DeadlineError("no answer")])

    def after_put(self, _path: str) -> None:
        self.written.append(("ours", self.harness.size()))
        assert self.harness.size() == self.wanted
        if self.chance.random() < 0.3:
            raise UnknownOutcomeError("sent, no answer")

    def permit(self, _seconds: float) -> bool:
        assert self.harness.wall() < self.valid_until, "a permit is requested for a decision that is too old"
        return self.chance.random() < 0.9

    def change_by_others(self) -> None:
        size = self.chance.randrange(6)
        self.harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=size))
        self.written.append(("others", size))

    def step(self) -> None:
        if self.chance.random() < 0.3:
            self.wanted, self.valid_until = self.chance.randrange(6), self.harness.wall() + self.staleness
            self.harness.decide(decision(self.wanted), self.staleness)
        if self.chance.random() < 0.1:
            self.change_by_others()
        self.harness.wall_ahead += self.chance.choice([0.0] * 9 + [-50.0, 50.0])
        self.harness.wait(self.chance.choice([0.25, 1.0, 5.0]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), staleness=st.sampled_from([1.0, 5.0, 60.0]))
def test_random_failures_never_lead_to_a_wrong_call(seed: int, staleness: float) -> None:
    """A wrong call repeats a write without a cause, has a decision that is too old, or has a wrong size."""
    chaos = Chaos(seed, staleness)
    for _ in range(60):
        chaos.step()
    for (_, one), (who, other) in itertools.pairwise([("others", 3), *chaos.written]):
        assert who == "others" or one != other, f"the size {other} was written twice in a row: {chaos.written}"


class Undoing(Harness):
    """A cluster with an admission webhook that leaves the size of the Deployment `web` as it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_undoing = True
        self.times: list[float] = []
        self.found = 3
        self.objects.before = self.note
        self.objects.after_put = self.undo
        self.objects.answer = lambda document: {**document, "spec": {"replicas": self.size()}}

    def note(self, method: str, _path: str) -> None:
        if method == "PUT":
            self.found = self.size()
            self.times.append(self.now)

    def undo(self, _path: str) -> None:
        if self.is_undoing:
            self.set(self.found)

    def set(self, replicas: int) -> None:
        self.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=replicas))

    def poll(self, replicas: int, polls: int = 1) -> None:
        """Decide this size at each poll, as long as the Deployment has another one."""
        for _ in range(polls):
            current = self.size()
            self.decide(decision(None if current == replicas else replicas, current=current))
            self.wait(10.0)


def test_a_size_that_an_admission_webhook_undoes_is_written_with_a_back_off() -> None:
    """Otherwise it is written at each poll, for ever."""
    harness = Undoing()
    harness.poll(5, 90)
    assert set(harness.results) == {ScaleResult.ERROR}
    assert harness.outcomes[0].message == (
        "its size is still 3 after 5 was written: "
        "look for an admission webhook, or a controller of this kind, that changes it"
    )
    assert min(later - earlier for earlier, later in itertools.pairwise(harness.times[8:])) >= 30.0


def test_another_size_is_written_at_once_after_one_that_a_webhook_has_undone() -> None:
    """A webhook may forbid to shrink, and a peak of the load must not wait for that."""
    harness = Undoing()
    harness.poll(1, 30)
    began, harness.is_undoing = harness.now, False
    harness.decide(decision(50, current=3))
    assert (harness.times[-1], harness.size()) == (began, 50)


def test_sizes_that_alternate_and_are_undone_are_tried_once_a_decision() -> None:
    harness = Undoing()
    for number in range(60):
        harness.poll(5 + number % 2, 1)
    assert len(harness.times) <= 65


def test_a_size_is_written_within_the_back_off_once_no_webhook_undoes_it() -> None:
    harness = Undoing()
    harness.poll(5, 30)
    harness.is_undoing = False
    harness.poll(5, 7)
    assert (harness.size(), harness.results[-1]) == (5, ScaleResult.OK)


@pytest.mark.parametrize("meanwhile", [1, 4, 9], ids=["smaller", "larger", "beyond"])
def test_the_same_size_is_written_at_once_after_somebody_has_changed_the_one_that_it_replaces(meanwhile: int) -> None:
    harness = Undoing()
    harness.poll(5, 30)
    harness.set(meanwhile)
    began, harness.is_undoing = harness.now, False
    harness.decide(decision(5, current=meanwhile))
    assert (harness.times[-1], harness.size()) == (began, 5)


def test_a_size_that_somebody_has_set_meanwhile_is_not_written_again() -> None:
    harness = Undoing()
    harness.poll(5, 30)
    harness.set(5)
    tried = len(harness.times)
    harness.poll(5, 30)
    assert (len(harness.times), harness.size()) == (tried, 5)


@pytest.mark.parametrize("replicas", [5, 6], ids=["the same size", "another size"])
def test_why_a_call_failed_is_known_while_calls_fail(replicas: int) -> None:
    harness = Undoing()
    harness.poll(5)
    harness.poll(replicas)
    assert list(harness.writer.failures()) == [("web", WEB)]


def succeed(harness: Undoing) -> None:
    harness.is_undoing = False
    harness.poll(5, 7)


def set_by_hand(harness: Undoing) -> None:
    harness.set(5)
    harness.poll(5)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(succeed, id="it succeeds"),
        pytest.param(set_by_hand, id="somebody else sets the size"),
        pytest.param(lambda harness: harness.writer.retain(()), id="the recommendation is removed"),
        pytest.param(lambda harness: harness.writer.clear(), id="another process leads"),
    ],
)
def test_why_a_call_failed_is_forgotten_with_its_decision(end: Callable[[Undoing], object]) -> None:
    harness = Undoing()
    harness.poll(5)
    end(harness)
    assert harness.writer.failures() == {}
