"""The histories of all loads, kept by backend: a backend that hangs does not delay the histories of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.running.queries.backend_workers import BackendWorkers

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from recommender.running.loads.histories.history_keeping import HistoryKeeper
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed


class BackendHistories:
    """All histories. `run` is for one thread, everything else for any number."""

    def __init__(self, make: Callable[[], HistoryKeeper]) -> None:
        """`make` returns the keeper of the histories of one backend."""
        self._keepers = BackendWorkers("loads", make, lambda _backend, keeper, stop: keeper.run(stop))

    def use(self, needs: frozenset[LoadNeed]) -> None:
        """Keep the histories of these loads, and forget all others."""
        backends = {need.backend for need in needs}
        for backend, keeper in self._keepers.known().items():
            if backend not in backends:
                keeper.use(frozenset())
        self._keepers.keep(backends)
        for backend in backends:
            self._keepers.of(backend).use(frozenset(need for need in needs if need.backend == backend))

    def note(self, need: LoadNeed, values: Mapping[Target, float], time: float) -> None:
        """Take the loads of one poll; never waits for a disk or for Prometheus."""
        keeper = self._keepers.known().get(need.backend)
        if keeper is not None:
            keeper.note(need, values, time)

    def get(self, need: LoadNeed) -> TargetHistory | None:
        """Return the history of a load; None if it has not begun yet."""
        keeper = self._keepers.known().get(need.backend)
        return None if keeper is None else keeper.get(need)

    def all(self) -> tuple[TargetHistory, ...]:
        """Return all histories, in the order of their names."""
        found = [history for keeper in self._keepers.known().values() for history in keeper.all()]
        return tuple(sorted(found, key=lambda history: history.need.name))

    def run(self, stop: threading.Event) -> None:
        """Download and store histories until `stop` is set."""
        self._keepers.run(stop)
