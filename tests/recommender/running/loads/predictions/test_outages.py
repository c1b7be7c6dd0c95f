"""Polls without an answer say nothing about the time between decisions, so no outage shrinks a workload at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from recommender.decisions.inputs import Inputs
from recommender.decisions.loads.control_delays import Delay, DelaySource
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.kinds.predictive.calculate import calculate_predictive
from recommender.kinds.predictive.predictive_settings import ScaleDown
from recommender.running.loads.learned.model_choices import LearnedModels
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predictions.delay_measurement import SCRAPE_SECONDS, DelayMeter
from recommender.running.loads.predictions.poll_loads import LoadSource
from recommender.running.loads.predictions.predicting import Predictor
from tests.recommender.running.loads.load_harness import need

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.loads.load_inputs import LoadInput
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

INTERVAL: Final = 10.0
START: Final = 1_000_000.0
NEED: Final = need("load", scale_down=ScaleDown(decay_ratio=0.05))
"""One replica serves 10; capacity goes down by at most 5% in 10 s."""
KEPT_OF_A_MINUTE: Final = 0.95**6
NO_ANSWER: Final = Unknown("Prometheus has no value: no answer")


class NoHistory:
    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Keep nothing."""

    def get(self, need: LoadNeed) -> None:
        """Return None, since nothing is kept."""


@dataclass
class Polls:
    """The polls of one recommendation, for whose query Prometheus answers what the test says."""

    now: float = START
    memory: Memory = field(default_factory=Memory)
    answer: Observed[tuple[Sample, ...]] | Unknown = NO_ANSWER

    def __post_init__(self) -> None:
        telemetry = LoadTelemetry(CollectorRegistry())
        self.source = LoadSource(lambda _need: self, NoHistory(), DelayMeter(), Predictor(LearnedModels()), telemetry)  # type: ignore[arg-type,return-value]  # a scripted one

    def samples(self, query: str, by: tuple[str, ...] = ()) -> Observed[tuple[Sample, ...]] | Unknown:
        """Return the scripted answer, in place of a Prometheus."""
        del query, by
        return self.answer

    def poll(self, load: float | None) -> tuple[int | None, LoadInput | None]:
        """Return the size at the next poll, and the load; None stands for a poll without an answer."""
        self.now += INTERVAL
        self.answer = NO_ANSWER if load is None else Observed((Sample({}, load, self.now),), self.now)
        loads = self.source.load(NEED)
        calculate = calculate_predictive(NEED.settings, NEED.name)
        inputs = Inputs(loads={NEED.name: loads if isinstance(loads, Unknown) else loads.value})
        decision = decide(RecommendationPolicy(NEED.name, "predictive"), calculate, inputs, self.memory, self.now)
        self.memory = decision.memory
        found = None if isinstance(loads, Unknown) else loads.value[None]
        return decision.record.replicas, found.value if isinstance(found, Observed) else None


@pytest.mark.parametrize("polls", [1, 5, 8, 30])
@pytest.mark.parametrize("missed", [3, 12, 55])
def test_the_time_without_answers_is_not_the_time_between_decisions(polls: int, missed: int) -> None:
    process = Polls()
    for _ in range(polls):
        process.poll(1000.0)
    for _ in range(missed):
        process.poll(None)
    _, found = process.poll(1000.0)
    assert found is not None
    assert found.delays is not None
    assert found.delays.refresh.seconds == INTERVAL


@pytest.mark.parametrize("polls", [5, 8, 30])
@pytest.mark.parametrize("missed", [12, 31, 55])
def test_capacity_falls_by_no_more_than_a_minute_of_decay_after_an_outage(polls: int, missed: int) -> None:
    process = Polls()
    for _ in range(polls):
        before, _ = process.poll(1000.0)
    for _ in range(missed):
        process.poll(None)
    after, _ = process.poll(100.0)
    assert before is not None
    assert after is not None
    assert after >= before * KEPT_OF_A_MINUTE


@pytest.mark.parametrize("seconds", [61.0, 240.0, 590.0])
def test_a_pause_of_the_process_is_not_the_time_between_decisions(seconds: float) -> None:
    """As while another process led, or while this one was stopped."""
    meter, time = DelayMeter(), START
    for poll in range(12):
        time += seconds if poll in {4, 8} else INTERVAL
        delays = meter.take_loads(NEED, total=1000.0, time=time)
    assert delays.refresh == Delay(INTERVAL, DelaySource.MEASURED)


@pytest.mark.parametrize("is_noted", [True, False])
@pytest.mark.parametrize("seconds", [90.0, 400.0])
def test_an_outage_is_not_the_time_between_two_changes_of_the_load(
    seconds: float,
    is_noted: bool,  # noqa: FBT001 - whether the process ran meanwhile
) -> None:
    """As when a load of a few sessions changes only now and then."""
    meter, time = DelayMeter(), START
    for poll in range(18):
        is_outage = poll % 3 == 2
        if is_outage and is_noted:
            meter.note_unanswered(NEED)
        time += seconds if is_outage else INTERVAL
        delays = meter.take_loads(NEED, total=float((poll + 1) // 3), time=time)
    assert delays.scrape == Delay(SCRAPE_SECONDS, DelaySource.ASSUMED)
