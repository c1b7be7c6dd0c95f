"""The loads of a running recommender. Without predictive recommendations, the code for loads is not imported."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from recommender.running.loads.load_needs import LoadNeed, load_needs_of

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.foundation.cluster.values.state import Observed, Unknown
    from adapter.foundation.time.clock import Clock
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.running.loads.learning.learning_rules import RunChild
    from recommender.running.loads.load_workers import RunningLoadService
    from recommender.running.queries.backend_queries import BackendQueries

_WAIT_SECONDS: Final = 1.0


class LoadService:
    """The loads of all predictive recommendations. `load` and `use` are for any number of threads."""

    def __init__(
        self, queries: BackendQueries, state: Path, registry: CollectorRegistry, clock: Clock, run_child: RunChild
    ) -> None:
        """Begin without any loads; `state` is the folder in which histories are stored."""
        self._queries = queries
        self._state = state
        self._registry = registry
        self._clock = clock
        self._run_child = run_child
        self._lock = threading.Lock()
        self._needs: frozenset[LoadNeed] = frozenset()
        self._working: RunningLoadService | None = None

    def use(self, configuration: Configuration) -> None:
        """Follow a configuration, at the start and when it has changed."""
        needs = load_needs_of(configuration)
        with self._lock:
            self._needs = needs
            if self._working is not None:
                self._working.use(needs)

    def load(self, need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        """Return the current loads of the targets of a recommendation."""
        return self._running_service().source.load(need)

    def keep_histories(self, stop: threading.Event) -> None:
        """Download and store histories until `stop` is set."""
        if (working := self._begin_when_needed(stop)) is not None:
            working.histories.run(stop)

    def learn(self, stop: threading.Event) -> None:
        """Fit models and choose among them until `stop` is set."""
        if (working := self._begin_when_needed(stop)) is not None:
            working.learner.run(stop)

    def _begin_when_needed(self, stop: threading.Event) -> RunningLoadService | None:
        """Return the parts as soon as a recommendation needs them; None if `stop` is set first."""
        while not self._needs:
            if stop.wait(_WAIT_SECONDS):
                return None
        return self._running_service()

    def _running_service(self) -> RunningLoadService:
        working = self._working
        if working is not None:
            return working
        # This module loads numpy, which takes 20 MiB that other recommendations do not need, and a sixth of a second of
        # processor time, for which the start of a process does not wait.
        from recommender.running.loads.load_workers import RunningLoadService  # noqa: PLC0415

        with self._lock:
            if self._working is None:
                working = RunningLoadService(self._queries, self._state, self._registry, self._clock, self._run_child)
                working.use(self._needs)
                self._working = working
            return self._working
