"""Scale calls while calls fail at random, others change the target, and the wall clock jumps."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import DeadlineError, ServerError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.outputs.scale_harness import Harness, decision
from tests.support.apiserver_kinds import DEPLOYMENTS


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


def test_a_size_that_an_admission_webhook_undoes_is_written_with_a_back_off() -> None:
    """Otherwise it is written at each poll, for ever."""
    harness, times = Harness(), []

    def undone(_path: str) -> None:
        times.append(harness.now)
        harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=3))

    harness.objects.after_put = undone
    harness.objects.answer = lambda document: {**document, "spec": {"replicas": 3}}
    for _ in range(90):
        harness.decide(decision(5, current=3))
        harness.wait(10.0)
    assert set(harness.results) == {ScaleResult.ERROR}
    assert harness.outcomes[0].message == (
        "the API server answered that its size is still 3 after 5 was written: look for an admission webhook"
    )
    assert min(later - earlier for earlier, later in itertools.pairwise(times[8:])) >= 30.0
