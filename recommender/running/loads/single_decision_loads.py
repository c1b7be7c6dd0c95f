"""The loads of a configuration for a single decision: history, models and forecast, one after another."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.child_processes.child_errors import ChildError
from recommender.child_processes.parent import ChildLimits
from recommender.kinds.predictive.learning import LEAST_HISTORY_SECONDS, tried_and_judged
from recommender.kinds.predictive.predictive_settings import MOST_FITTED_TARGETS
from recommender.running.loads.histories.downloads import Downloads
from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choice_files import LearnedFiles
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.learning.learner import Learner
from recommender.running.loads.learning.learning_rules import (
    FIT_SECONDS,
    LONGEST_CHILD_SECONDS,
    LearningServices,
    RunChild,
    known_past,
    models_to_try,
    terms_of,
    with_verdicts,
)
from recommender.running.loads.load_needs import LoadNeed, load_needs_of
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.load_workers import FOLDER
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.poll_loads import LoadSource, queries_of
from recommender.running.loads.predictions.predicting import Predictor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.queries.backend_queries import BackendQueries
    from recommender.running.queries.query_values import QueryValues

_log = logging.getLogger(__name__)


def load_inputs_once(
    configuration: Configuration, queries: BackendQueries, run_child: RunChild, report: Callable[[str], None]
) -> Mapping[str, LoadInputs | Unknown]:
    """Return the loads by recommendation, as a recommender that has been running for a long time would see them.

    This may take a minute for each recommendation: its history is downloaded, unless a recommender has stored it in the
    folder `state` of the configuration, and its models are fitted. `report` is called with a line about each step.
    Nothing is written.
    """
    folder = configuration.state / FOLDER
    once = _SingleRun(queries_of(queries), run_child, report, LoadFiles(folder), LearnedFiles(folder, Clock().wall))
    found: dict[str, LoadInputs | Unknown] = {}
    for need in sorted(load_needs_of(configuration), key=lambda need: need.name):
        loads = once.load(need)
        found[need.name] = loads.value if isinstance(loads, Observed) else loads
    return found


def load_inputs_at_start(configuration: Configuration, queries: BackendQueries) -> Mapping[str, LoadInputs | Unknown]:
    """Return the loads by recommendation, as a recommender that has just started sees them: no model has learned."""
    found: dict[str, LoadInputs | Unknown] = {}
    for need in load_needs_of(configuration):
        source = LoadSource(queries_of(queries), _SingleHistory(), DelayMeter(), Predictor(LearnedModels()), _unread())
        loads = source.load(need)
        found[need.name] = loads.value if isinstance(loads, Observed) else loads
    return found


def _unread() -> LoadTelemetry:
    """Return telemetry that nobody reads: the log of a single decision names the series and the failures."""
    return LoadTelemetry(CollectorRegistry())


class _SingleHistory:
    """The history of the recommendation that is being processed."""

    def __init__(self) -> None:
        self._history: TargetHistory | None = None

    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one answer."""
        if self._history is None or self._history.need != need:
            self._history = TargetHistory(need, len(values))
        self._history.note(values, time)

    def get(self, need: LoadNeed) -> TargetHistory | None:
        """Return the history if it is that of this load, and None otherwise."""
        return self._history if self._history is not None and self._history.need == need else None


@dataclass(frozen=True, slots=True)
class _SingleRun:
    queries: Callable[[LoadNeed], QueryValues]
    run_child: RunChild
    report: Callable[[str], None]
    files: LoadFiles
    verdicts: LearnedFiles

    def load(self, need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        """Return the loads of one recommendation."""
        histories, learned_models, delays = _SingleHistory(), LearnedModels(), DelayMeter()
        telemetry = _unread()
        source = LoadSource(self.queries, histories, delays, Predictor(learned_models), telemetry)
        if verdicts := self.verdicts.restore(need):
            learned_models.put(need, Learned(task_of(need, delays.delays(need)), verdicts=verdicts))
        first = source.load(need)
        history = histories.get(need)
        if isinstance(first, Unknown) or history is None:
            return first
        self._fill(history)
        clock = Clock()
        known = float(history.known_seconds(history.targets(), clock.wall()).max(initial=0.0))
        if known < LEAST_HISTORY_SECONDS:
            return source.load(need)
        restored = learned_models.get(need) or Learned(task_of(need, delays.delays(need)))
        learned = self._learned_in_one_child(history, delays, clock, restored)
        if learned is None:
            services = LearningServices(delays, learned_models, self._run_child(need), telemetry, clock)
            Learner(lambda: (history,), services).learn_once(history)
        else:
            learned_models.put(need, learned)
        # The first observation is old by now.
        return source.load(need)

    def _learned_in_one_child(
        self, history: TargetHistory, delays: DelayMeter, clock: Clock, learned: Learned
    ) -> Learned | None:
        """Return the results of light models; None if a model is heavy, if there are many targets, or after a failure.

        A child takes longer to start than light models take to be tried, so all of them share one child, which also
        makes the choice among them.
        """
        need, targets, now = history.need, history.targets(), clock.wall()
        known = float(history.known_seconds(targets, now).max(initial=0.0))
        models = models_to_try(need.settings.model, len(targets), known)
        if len(targets) > MOST_FITTED_TARGETS or any(model.is_heavy for model in models):
            return None
        task = task_of(need, delays.delays(need))
        terms = terms_of(history, replace(learned, task=task), targets)
        arguments = (terms, known_past(history, targets, now), tuple(model.name for model in models))
        limits = ChildLimits(seconds=min(LONGEST_CHILD_SECONDS, FIT_SECONDS * (len(models) + len(targets))))
        try:
            trials, verdicts = self._run_child(need)("choice", tried_and_judged, arguments, limits)
        except ChildError as error:
            _log.info("recommendation %s: its models are tried one by one: %s", need.name, error)
            return None
        return with_verdicts(need, Learned(task, targets), trials, verdicts)

    def _fill(self, history: TargetHistory) -> None:
        name = history.need.name
        self.files.restore(history)
        clock = Clock()
        downloads = Downloads(
            lambda need: self.queries(need).client(), lambda _name, _result: None, clock.monotonic, clock.wall
        )

        def show(lacking_ratio: float) -> None:
            self.report(f"{name}: history of the load: {100 * (1 - lacking_ratio):.0f}%")

        downloads.all(history, show)

    def _run_child(self, need: LoadNeed) -> RunChild:
        def run(
            name: str, function: Callable[..., object], arguments: tuple[object, ...], limits: ChildLimits
        ) -> object:
            self.report(f"{need.name}: {'choosing the model' if name == 'choice' else f'fitting {name}'}")
            return self.run_child(name, function, arguments, limits)

        return run
