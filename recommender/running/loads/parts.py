"""Puts together what answers for loads, and what works for it in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.running.loads.book import ModelBook
from recommender.running.loads.files import LoadFiles
from recommender.running.loads.keeping import HistoryKeeper
from recommender.running.loads.needs import load_needs_of
from recommender.running.loads.predicting import Predictor
from recommender.running.loads.source import LoadSource
from recommender.running.loads.telemetry import LoadTelemetry

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.cluster.state import Observed, Unknown
    from adapter.timing.clock import Clock
    from recommender.configuration.model import Configuration
    from recommender.decisions.inputs import LoadInputs
    from recommender.running.loads.needs import LoadNeed
    from recommender.running.query_values import QueryValues

FOLDER = "loads"
"""The folder of histories under that of the configuration's `state`."""


class Loads:
    """The loads of all predictive recommendations. `load` and `use` are for any number of threads."""

    def __init__(self, queries: QueryValues, state: Path, registry: CollectorRegistry, clock: Clock) -> None:
        telemetry = LoadTelemetry(registry)
        self._book = ModelBook()
        self._histories = HistoryKeeper(queries.client, LoadFiles(state / FOLDER), telemetry, clock)
        self._predictor = Predictor(self._book)
        self._source = LoadSource(queries, self._histories, self._predictor, telemetry)

    def use(self, configuration: Configuration) -> None:
        """Follow a changed configuration."""
        needs = load_needs_of(configuration)
        names = {need.name for need in needs}
        self._histories.use(needs)
        self._book.keep(names)
        self._predictor.keep(names)

    def load(self, need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        """Return the loads of a recommendation's targets now."""
        return self._source.load(need)

    def keep_histories(self, stop: threading.Event) -> None:
        """Download and store histories until the stop."""
        self._histories.run(stop)
