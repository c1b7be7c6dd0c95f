"""A learner whose child processes are called in this process, and the histories that it learns from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from prometheus_client import CollectorRegistry

from recommender.child_processes.child_errors import ChildDeadlineError
from recommender.decisions.loads.control_delays import ControlDelays, Delay, DelaySource
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.predictive_settings import ModelName
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.learning.learner import Learner
from recommender.running.loads.learning.learning_rules import LearningServices
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from tests.recommender.running.loads.load_harness import Clocks, need

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.child_processes.parent import ChildLimits
    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

DAY = 86_400.0
STEP = 600.0
END = 1_700_000_400.0
AUTO = replace(need("load", model=ModelName.AUTO, horizon_seconds=1200.0), poll_interval_seconds=STEP)
LIGHT = {"largest-hour", "conformal", "percentile", "linear", "polynomial", "seasonal", "seasonal-held"}
VERDICT = SeriesVerdict("linear", "auto: it is better", Blend(0.1, (Part("linear", 1.0, 1.0),)))
HEAVY = {"holt-winters", "state-space", "quantile", "boosted", "boosted-conformal"}


def daily(wanted: LoadNeed, days: float, targets: tuple[Target, ...] = (None,)) -> TargetHistory:
    """Return a history of a load that rises within an hour every morning."""
    history, count = TargetHistory(wanted, len(targets)), int(days * DAY / STEP)
    assert history.step_seconds == STEP
    numbers = np.arange(round(END / STEP) - count + 1, round(END / STEP) + 1)
    hour = (numbers * STEP % DAY) / 3600
    values = (100 + 900 * np.clip(hour - 8, 0, 1) * (hour < 18)).astype(np.float32)
    history.note(dict.fromkeys(targets, float(values[-1])), END)
    history.restore(int(numbers[0]), np.ones(count, dtype=bool))
    factors = np.arange(1, len(targets) + 1, dtype=np.float32)[:, np.newaxis]
    history.restore_rows(int(numbers[0]), targets, values * factors)
    history.is_downloaded = True
    return history


class SetDelays(DelayMeter):
    """Delays with a given scrape delay."""

    scrape_seconds: float | None = None

    def delays(self, need: LoadNeed) -> ControlDelays:
        found, seconds = super().delays(need), self.scrape_seconds
        return found if seconds is None else replace(found, scrape=Delay(seconds, DelaySource.MEASURED))


@dataclass
class Harness:
    """A learner whose child processes are called in this process."""

    history: TargetHistory
    clocks: Clocks = field(default_factory=lambda: Clocks(END))
    learned_models: LearnedModels = field(default_factory=LearnedModels)
    failing: set[str] = field(default_factory=set)
    answers: dict[str, Callable[[Any], object]] = field(default_factory=dict)
    """The functions that replace the real ones, by name of the child process; each gets the series' past."""
    is_choice_skipped: bool = False
    delays: SetDelays = field(default_factory=SetDelays)
    ran: list[str] = field(default_factory=list)
    proofs: list[tuple[SeriesProof | None, ...]] = field(default_factory=list)
    """The proofs from which each choice continues."""
    saved: dict[str, dict[Target, SeriesVerdict]] = field(default_factory=dict)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self._telemetry = LoadTelemetry(self.registry)
        self.learner = self.learner_of(())

    def learner_of(self, histories: tuple[TargetHistory, ...]) -> Learner:
        """Return a learner for these histories, by default for the history of this harness."""
        services = LearningServices(
            self.delays, self.learned_models, self.run_child, self._telemetry, self.clocks.clock(), self.save
        )
        return Learner(lambda: histories or (self.history,), services)

    def save(self, need: LoadNeed, learned: Learned) -> None:
        self.saved[need.name] = dict(learned.verdicts)

    def run_child(
        self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits
    ) -> Any:  # noqa: ANN401 - what the function returns
        assert limits.seconds <= 1800.0
        self.ran.append(name)
        if name == "choice":
            self.proofs.append(arguments[0].proofs)
        if name in self.failing:
            raise ChildDeadlineError(f"{name}: killed after 60 s")
        if name == "choice" and self.is_choice_skipped:
            return tuple(np.empty((1, 0)) for _ in arguments[2]), tuple(VERDICT for _ in arguments[1].values)
        past = next(each for each in arguments if isinstance(each, LoadHistory))
        return self.answers[name](past) if name in self.answers else function(*arguments)
