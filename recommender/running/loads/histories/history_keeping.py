"""Keeps the histories of all loads: restores them at the start, downloads missing parts, and stores them."""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from recommender.running.loads.histories.downloads import Downloads
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.histories.sample_times import step_of
from recommender.running.queries.backend_workers import BackendWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.clock import Clock
    from recommender.running.loads.histories.history_files import LoadFiles
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed
    from recommender.running.loads.load_telemetry import LoadTelemetry


_log = logging.getLogger(__name__)

_LOOP_SECONDS: Final = 0.5
SAVE_SECONDS: Final = 600.0
_SAVE_LARGE_SECONDS: Final = 3_600.0
_LARGE_BYTES: Final = 16 << 20
_COVERAGE_SECONDS: Final = 30.0


class HistoryKeeper:
    """Keeps all histories. `note`, `get` and `use` are for any number of threads, `run` for one."""

    def __init__(
        self,
        client: Callable[[LoadNeed], PrometheusClient | None],
        files: LoadFiles,
        telemetry: LoadTelemetry,
        clock: Clock,
    ) -> None:
        self._files = files
        self._telemetry = telemetry
        self._clock = clock
        self._downloads = Downloads(client, telemetry.count_download, clock.monotonic, clock.wall)
        self._lock = threading.Lock()
        self._used: Mapping[str, LoadNeed] | None = None
        """The loads in use, by recommendation; None before the first call of `use`."""
        self._histories: dict[str, TargetHistory] = {}
        self._first: dict[str, tuple[LoadNeed, Mapping[Target, float], float]] = {}
        """The newest loads of recommendations that have no history yet."""
        self._states = StateLog(_log)
        self._saved: dict[str, float] = {}
        self._shown: dict[str, float] = {}

    def use(self, needs: frozenset[LoadNeed]) -> None:
        """Keep the histories of these loads, and forget all others."""
        by_name = {need.name: need for need in needs}
        with self._lock:
            self._used = by_name
            gone = [name for name, each in self._histories.items() if not _is_of(each, by_name.get(name))]
            for name in gone:
                del self._histories[name]
            self._first = {name: each for name, each in self._first.items() if by_name.get(name) == each[0]}
            for name, history in self._histories.items():
                history.need = by_name[name]
        for name in gone:
            self._telemetry.forget(name)

    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one poll; never waits for a disk or for Prometheus."""
        with self._lock:
            if not self._is_used(need):
                # The recommendation was removed or changed while its query was under way.
                return
            history = self._histories.get(need.name)
            if history is None or not _is_of(history, need):
                self._first[need.name] = (need, values, time)
                return
        history.note(values, time)

    def get(self, need: LoadNeed) -> TargetHistory | None:
        """Return the history of a load; None if it has not begun yet."""
        with self._lock:
            history = self._histories.get(need.name)
        return history if history is not None and _is_of(history, need) else None

    def all(self) -> tuple[TargetHistory, ...]:
        """Return all histories, in the order of their names."""
        with self._lock:
            return tuple(self._histories[name] for name in sorted(self._histories))

    def run(self, stop: threading.Event) -> None:
        """Keep histories until `stop` is set, and then store them."""
        while not stop.wait(_LOOP_SECONDS):
            self.work(stop.is_set)
        for history in self.all():
            self._files.save(history)

    def work(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Begin new histories, download a piece of each, and store those that are due."""
        self._begin()
        names = {history.need.name for history in self.all()}
        self._downloads.keep(names)
        self._saved = {name: time for name, time in self._saved.items() if name in names}
        self._shown = {name: time for name, time in self._shown.items() if name in names}
        for history in self.all():
            if is_stopping():
                return
            if self.get(history.need) is not history:
                # It was removed or replaced during the work for the others; its file must not come back.
                continue
            name = history.need.name
            try:
                self._keep(history)
            except Exception as error:  # noqa: BLE001 - the supervisor: one history must not stop the others
                message = f"the history of {name} is not stored because of an internal error"
                self._states.failed(name, message, problem=f"{type(error).__name__}: {error}")
            else:
                self._states.recovered(name, f"the history of {name} is kept again")

    def _is_used(self, need: LoadNeed) -> bool:
        """Return whether the history of a load is wanted. The lock is held."""
        if self._used is None:
            return True
        used = self._used.get(need.name)
        return used is not None and _asked_by(used) == _asked_by(need)

    def _keep(self, history: TargetHistory) -> None:
        goes_on = self._downloads.step(history)
        self._show(history)
        if not goes_on:
            self._save(history)

    def _begin(self) -> None:
        with self._lock:
            new, self._first = self._first, {}
        for need, values, time in new.values():
            history = TargetHistory(need, len(values))
            # A downloaded history is stored as soon as it is complete.
            self._saved[need.name] = self._clock.monotonic() if self._files.restore(history) else -math.inf
            history.note(values, time)
            with self._lock:
                if self._is_used(need):
                    self._histories[need.name] = history
        # With many more targets than at the start, the memory suffices only for a coarser grid.
        for history in self.all():
            self._coarsen(history)

    def _coarsen(self, history: TargetHistory) -> None:
        need = history.need
        step = step_of(need.settings.history_seconds, need.poll_interval_seconds, len(history.targets()))
        if step <= history.step_seconds:
            return
        self._files.save(history)
        coarser = TargetHistory(need, len(history.targets()))
        self._files.restore(coarser)
        with self._lock:
            self._histories[need.name] = coarser

    def _save(self, history: TargetHistory) -> None:
        name, now = history.need.name, self._clock.monotonic()
        every = SAVE_SECONDS if history.size_bytes < _LARGE_BYTES else _SAVE_LARGE_SECONDS
        if now - self._saved.get(name, -math.inf) >= every:
            self._saved[name] = now
            self._files.save(history)

    def _show(self, history: TargetHistory) -> None:
        name, now = history.need.name, self._clock.monotonic()
        if now - self._shown.get(name, -_COVERAGE_SECONDS) >= _COVERAGE_SECONDS:
            self._shown[name] = now
            self._telemetry.set_coverage(name, history.coverage(self._clock.wall()))


def _is_of(history: TargetHistory, need: LoadNeed | None) -> bool:
    """Return whether a history has the samples for a need, which depend only on the settings of the query."""
    return need is not None and _asked_by(history.need) == _asked_by(need)


def _asked_by(need: LoadNeed) -> object:
    settings = need.settings
    return need.source, settings.load, settings.for_each, settings.history_seconds, need.poll_interval_seconds


class BackendHistories:
    """All histories. `run` is for one thread, everything else for any number."""

    def __init__(self, make: Callable[[], HistoryKeeper]) -> None:
        """`make` returns the keeper of the histories of one backend."""
        self._keepers = BackendWorkers("loads", make, lambda _backend, keeper, stop: keeper.run(stop))

    def use(self, needs: frozenset[LoadNeed]) -> None:
        """Keep the histories of these loads, and forget all others."""
        backends = {need.backend for need in needs}
        for backend, keeper in self._keepers.workers().items():
            if backend not in backends:
                keeper.use(frozenset())
        self._keepers.keep(backends)
        for backend in backends:
            self._keepers.of(backend).use(frozenset(need for need in needs if need.backend == backend))

    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one poll; never waits for a disk or for Prometheus."""
        keeper = self._keepers.workers().get(need.backend)
        if keeper is not None:
            keeper.note(need, values, time)

    def get(self, need: LoadNeed) -> TargetHistory | None:
        """Return the history of a load; None if it has not begun yet."""
        keeper = self._keepers.workers().get(need.backend)
        return None if keeper is None else keeper.get(need)

    def all(self) -> tuple[TargetHistory, ...]:
        """Return all histories, in the order of their names."""
        found = [history for keeper in self._keepers.workers().values() for history in keeper.all()]
        return tuple(sorted(found, key=lambda history: history.need.name))

    def run(self, stop: threading.Event) -> None:
        """Download and store histories until `stop` is set."""
        self._keepers.run(stop)
