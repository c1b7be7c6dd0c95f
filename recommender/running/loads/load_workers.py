"""Assembles the parts that provide loads, and those that work in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.history_keeping import BackendHistories, HistoryKeeper
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choice_files import LearnedFiles
from recommender.running.loads.learned.model_choices import Learned, LearnedModels
from recommender.running.loads.learning.learner import Learner
from recommender.running.loads.learning.learning_rules import LearningServices, RunChild
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from recommender.running.loads.predictions.poll_loads import LoadSource, queries_of
from recommender.running.loads.predictions.predicting import Predictor

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.foundation.time.clock import Clock
    from recommender.running.loads.load_needs import LoadNeed
    from recommender.running.queries.backend_queries import BackendQueries

FOLDER: Final = "loads"
"""The folder of histories in the folder that the configuration calls `state`."""


class RunningLoadService:
    """The parts of a load service that is in use. `use` is for one thread at a time."""

    def __init__(
        self, queries: BackendQueries, state: Path, registry: CollectorRegistry, clock: Clock, run_child: RunChild
    ) -> None:
        self._telemetry = telemetry = LoadTelemetry(registry)
        self.learned_models = LearnedModels()
        self._files = LoadFiles(state / FOLDER)
        asking = queries_of(queries)

        def keeper() -> HistoryKeeper:
            # Files are read and written by one thread each.
            files = LoadFiles(state / FOLDER)
            return HistoryKeeper(lambda need: asking(need).client(), files, telemetry, clock)

        self.histories = BackendHistories(keeper)
        self._predictor = Predictor(self.learned_models)
        self._delays = DelayMeter()
        self._of_objects: frozenset[str] = frozenset()
        self.source = LoadSource(asking, self.histories, self._delays, self._predictor, telemetry)

        self._stored = LearnedFiles(state / FOLDER, clock.wall)
        services = LearningServices(self._delays, self.learned_models, run_child, telemetry, clock, self._stored.save)
        self.learner = Learner(self.histories.all, services)

    def use(self, needs: frozenset[LoadNeed]) -> None:
        """Follow the loads that a configuration needs, and forget all others."""
        names = {need.name for need in needs}
        # First, so that nothing of a new recommendation is left uncounted.
        self._telemetry.keep(names)
        self.histories.use(needs)
        self.learned_models.keep(names)
        self._predictor.keep(names)
        self._delays.keep(names)
        for gone in self._of_objects - names:
            # Objects come and go: files that they leave behind would fill the disk.
            self._files.remove(gone)
            self._stored.remove(gone)
        self._of_objects = frozenset(need.name for need in needs if need.namespace)
        for need in needs:
            if self.learned_models.get(need) is None and (verdicts := self._stored.restore(need)):
                self.learned_models.put(need, Learned(task_of(need, self._delays.delays(need)), verdicts=verdicts))
